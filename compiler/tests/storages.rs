//! Storages that the runtime holds as Rust are what their documents say, and a storage of one's own
//! comes with the family that uses it. `SPECC_BLESS=1` writes the Rust anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::path::{Path, PathBuf};

use specc::compile::{check, generate};
use specc::library::Library;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn up_to_date(file: &str, text: &str) {
    let path = root().join(file);
    if std::env::var_os("SPECC_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == text, "{file} is not what the documents say: run with SPECC_BLESS=1");
}

#[test]
fn the_storages_of_the_runtime_are_those_of_the_documents() {
    let library = Library::builtin();
    let names: Vec<&str> = library.caches().keys().map(String::as_str).collect();
    up_to_date("runtime/src/cache/storages.rs", &specc::emit::storages(&library, &names).unwrap());
}

#[test]
fn a_storage_of_ones_own_is_one_document() {
    let library = Library::with_dir(root().join("examples/sinks/specs"));
    let problems: Vec<&String> = library.diagnostics().iter().map(|found| &found.message).collect();
    assert!(problems.is_empty(), "{problems:?}");
    // The runtime's tests drive it like any storage of its own.
    let text = specc::emit::storages(&library, &["sinks"]).unwrap();
    up_to_date("runtime/src/cache/tests/sinks.rs", &text);
    let checked = check(&library, "sinks_llama").unwrap();
    let module = generate(&library, &checked).unwrap();
    assert!(module.contains("pub static SINKS: cache::StorageLayout"), "{module}");
    assert!(module.contains("CacheLayer::new(&SINKS)"), "{module}");
    assert!(module.contains("CacheLayer::new(&cache::storages::SLIDING)"), "{module}");
}
