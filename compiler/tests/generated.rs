//! The generated Rust: pinned for the first family, the same bytes each time, for every family.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use specc::compile::{check, generate};
use specc::library::Library;

fn module(library: &Library, family: &str) -> String {
    let checked = check(library, family).unwrap_or_else(|problems| {
        let messages: Vec<_> = problems.iter().map(|problem| &problem.message).collect();
        panic!("{family}: {messages:?}")
    });
    generate(library, &checked).unwrap()
}

#[test]
fn the_first_family_reads_as_if_written_by_hand() {
    insta::assert_snapshot!("llama", module(&Library::builtin(), "llama"));
}

#[test]
fn every_family_compiles_to_the_same_bytes_twice() {
    let (first, second) = (Library::builtin(), Library::builtin());
    let names: Vec<&str> = first.families().collect();
    assert!(names.len() >= 30, "only {names:?}");
    for name in names {
        assert_eq!(module(&first, name), module(&second, name), "{name}");
    }
}
