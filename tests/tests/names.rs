//! No family is named in the compiler or the runtime: what they know of a family is its document.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::path::{Path, PathBuf};

/// Names of published formats that contain a family's name, and why each may stand there.
const FORMATS: &[(&str, &str)] = &[
    ("llama3", "a rope type of config.json"),
    ("llama-bpe", "a pre-tokenizer of GGUF files"),
    ("qwen2", "a pre-tokenizer and an architecture of GGUF files"),
    ("gpt2", "a tokenizer model of GGUF files"),
    ("gpt-2", "a pre-tokenizer of GGUF files"),
    ("llama.cpp", "the program that defines GGUF"),
    ("\"llama\"", "a tokenizer model of GGUF files"),
    ("`llama`", "a tokenizer model of GGUF files"),
    ("gemma-channel", "a thinking format of chat templates"),
    ("qwen-xml", "a tool-call format of chat templates"),
    ("deepseek_yarn", "a rope type of config.json"),
];

/// Folders in which a family's name may stand, with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("compiler/tests", "tests compile the built-in families"),
    ("compiler/src/syntax/snapshots", "tests"),
    ("runtime/text", "chat formats and templates are named after those who published them"),
    ("runtime/checkpoint/tests", "tests read checkpoints of known families"),
    ("runtime/src/gguf", "names of GGUF metadata"),
    ("runtime/tests", "tests load known families"),
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Whether a module of tests with a body begins here.
fn is_test_module(lines: &[&str]) -> bool {
    lines[0] == "#[cfg(test)]"
        && lines[1..]
            .iter()
            .find(|line| !line.starts_with("#["))
            .is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
}

#[test]
fn no_family_is_named_in_the_compiler_or_the_runtime() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let families: Vec<String> = specc_families::families()
        .iter()
        .flat_map(|family| family.model_types.iter().chain([&family.name]))
        .map(|name| (*name).to_owned())
        // Too short or too common a word to search for.
        .filter(|name| !matches!(name.as_str(), "phi" | "bert"))
        .collect();
    let mut files = Vec::new();
    for folder in ["compiler", "runtime"] {
        rust_files(&root.join(folder), &mut files);
    }
    assert!(files.len() > 50);
    let mut named = Vec::new();
    for file in files {
        let shown = file.strip_prefix(root).unwrap().display().to_string();
        if EXEMPT.iter().any(|(folder, _)| shown.starts_with(folder)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            // Tests at the end of a file may use any name.
            if is_test_module(&lines[number..]) {
                break;
            }
            let mut line = line.to_lowercase();
            for (format, _) in FORMATS {
                line = line.replace(format, "");
            }
            if let Some(family) = families.iter().find(|family| line.contains(family.as_str())) {
                named.push(format!("{shown}:{}: {family}", number + 1));
            }
        }
    }
    assert!(named.is_empty(), "{}", named.join("\n"));
}
