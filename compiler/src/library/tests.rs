//! What the library holds, and how families inherit.

use super::*;
use crate::diag::render::{self, Style};

#[test]
fn every_family_of_the_library_loads() {
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");
    let library = Library::with_dir(specs);
    let mut diags = library.diagnostics().to_vec();
    let mut manifests = BTreeMap::new();
    for name in library.families() {
        match library.load_family(name) {
            Ok((manifest, _)) => {
                diags.extend(crate::checks::check_manifest(&manifest));
                manifests.insert(name.to_owned(), manifest);
            }
            Err(found) => diags.extend(found),
        }
    }
    diags.extend(crate::checks::check_registry(&manifests));
    assert_eq!(render::all(&library.sources, &diags, Style::Plain), "");
}
