//! The language says families that nobody shipped: each of tests/sketches compiles, generates code,
//! and fits a checkpoint of the published names and shapes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use specc::compile;
use specc::diag::render::{self, Style};
use specc::expr::{evaluate, evaluate_layers};
use specc::library::{Library, Origin};
use specc::model::{self, Model, kept};

mod common;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sketches")
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let manifests = entries.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let names: BTreeSet<String> =
        manifests.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.into_iter().collect()
}

fn text(name: &str, kind: &str) -> Option<String> {
    std::fs::read_to_string(folder().join(format!("{name}.{kind}"))).ok()
}

#[test]
fn every_sketch_compiles_and_fits_its_checkpoint() {
    let builtin = Library::builtin();
    let names = names();
    assert!(names.len() >= 18, "only {names:?}");
    for name in names {
        let mut library = builtin.clone();
        for kind in ["toml", "graph"] {
            if let Some(text) = text(&name, kind) {
                let file = format!("{name}.{kind}");
                library.add(Origin::Folder, &file, &file, &text);
            }
        }
        let shown = |library: &Library, found: &[specc::diag::Diagnostic]| {
            format!("{name}:\n{}", render::all(&library.sources, found, Style::Plain))
        };
        let checked = compile::check(&library, &name);
        let checked = checked.unwrap_or_else(|found| panic!("{}", shown(&library, &found)));
        let code = compile::generate(&library, &checked).unwrap();
        assert!(code.contains("pub static FAMILY"), "{name}");
        // A folder with the config and tensors of these names and shapes.
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), text(&name, "json").unwrap()).unwrap();
        let tensors = text(&name, "tensors").unwrap();
        let tensors: Vec<_> = tensors.lines().flat_map(common::expanded).collect();
        common::write_tensors(&dir.path().join("model.safetensors"), &tensors);
        let model = Model::open(dir.path()).unwrap_or_else(|problems| panic!("{problems:?}"));
        match model::check(&library, &checked.manifest, &checked.program, &model) {
            Ok((_, warnings)) => {
                assert!(warnings.is_empty(), "{}", shown(&library, &warnings));
            }
            Err(found) => panic!("{}", shown(&library, &found)),
        }
        let config = evaluate(&checked.manifest, &model.config).unwrap();
        let layers = evaluate_layers(&checked.manifest, &config).unwrap();
        let buffers = kept(&checked.program, &config, &layers).unwrap();
        for (layer, buffers) in layers.iter().zip(buffers) {
            let wanted = layer.donor && layer.storage != "none";
            assert_eq!(!buffers.is_empty(), wanted, "{name}: layer {}", layer.index);
        }
    }
}
