//! How texts read.

use super::*;
use crate::source::Sources;

#[test]
fn the_library_reads_without_errors() {
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");
    let (mut sources, mut diags) = (Sources::default(), Vec::new());
    for folder in [specs.to_owned(), format!("{specs}/std")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "graph") {
                let text = std::fs::read_to_string(&path).unwrap();
                let file = sources.add(path.display().to_string(), text.clone());
                parse_graph(file, &text, &mut diags);
            }
        }
    }
    assert_eq!(diags, []);
}
