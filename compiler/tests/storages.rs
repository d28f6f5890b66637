//! Storages that the runtime holds as Rust are what their documents say, and a storage of one's own
//! comes with the family that uses it. `SPECC_BLESS=1` writes the Rust anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::path::{Path, PathBuf};

use specc::compile::{check, generate};
use specc::diag::has_errors;
use specc::library::{Library, Origin};

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

/// Documents with a line left out, twice or cut short: something is said or nothing is wrong, and
/// nothing panics. What is accepted comes out as Rust.
#[test]
fn damaged_documents_are_told_or_taken() {
    let whole = Library::builtin();
    let mut texts: Vec<String> = whole
        .caches()
        .values()
        .map(|layout| whole.sources.file(layout.file).text.clone())
        .collect();
    let own = root().join("examples/sinks/specs/cache/sinks.toml");
    texts.push(std::fs::read_to_string(own).unwrap());
    let (mut told, mut taken) = (0, 0);
    for text in &texts {
        let name = text.lines().find_map(|line| line.strip_prefix("name      = "));
        let name = name.unwrap().trim_matches('"');
        let renamed = text.replacen(&format!("\"{name}\""), "\"acme\"", 1);
        let lines: Vec<&str> = renamed.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            for damage in 0..4 {
                let half = line.len() / 2;
                let line = match damage {
                    0 => String::new(),
                    1 => format!("{line}\n{line}"),
                    2 => line.get(..half).unwrap_or("").to_owned(),
                    _ => line.replace(['0', '1', '2', '5', '6'], "-9999999999"),
                };
                let mut damaged = lines.clone();
                damaged[i] = &line;
                let mut library = whole.clone();
                library.add(Origin::Folder, "cache/acme.toml", "acme.toml", &damaged.join("\n"));
                if has_errors(library.diagnostics()) {
                    told += 1;
                } else if library.caches().contains_key("acme") {
                    taken += 1;
                    specc::emit::storages(&library, &["acme"]).unwrap();
                }
            }
        }
    }
    assert!(told > 500 && taken > 200, "{told} told, {taken} taken");
}
