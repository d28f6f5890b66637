//! `specc fmt`

use std::path::{Path, PathBuf};

use specc::diag::Diagnostic;
use specc::source::Sources;

use super::{Failure, FmtArgs, Format, Outcome, output};

pub fn run(args: &FmtArgs) -> Outcome {
    let mut files = Vec::new();
    let given =
        if args.paths.is_empty() { vec![PathBuf::from("specs")] } else { args.paths.clone() };
    for path in &given {
        if path.is_file() {
            files.push(path.clone());
        } else if path.is_dir() {
            collect(path, &mut files)?;
        } else {
            return Err(Failure::Usage(format!(
                "{} is neither a file nor a folder",
                path.display()
            )));
        }
    }
    files.sort();
    let mut sources = Sources::default();
    let mut diags: Vec<Diagnostic> = Vec::new();
    let mut changed = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))?;
        let file = sources.add(path.display().to_string(), text.clone());
        let before = diags.len();
        let formatted = if path.extension().is_some_and(|end| end == "graph") {
            specc::syntax::parse_graph(file, &text, &mut diags);
            specc::format::graph(&text)
        } else {
            specc::manifest::tree::parse(file, &text, &mut diags);
            specc::format::manifest(&text)
        };
        // A file with syntax errors stays as it is.
        if diags.len() == before && formatted != text {
            changed.push((path, formatted));
        }
    }
    for (path, text) in &changed {
        if args.check {
            output::print(&format!("{}\n", path.display()))?;
        } else {
            std::fs::write(path, text)
                .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))?;
        }
    }
    output::report(&sources, &diags, Format::Text)?;
    if args.check && !changed.is_empty() { Err(Failure::Found) } else { Ok(()) }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let spec = path.extension().is_some_and(|end| end == "graph" || end == "toml");
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            collect(&path, files)?;
        } else if spec && name != "Cargo.toml" {
            files.push(path);
        }
    }
    Ok(())
}
