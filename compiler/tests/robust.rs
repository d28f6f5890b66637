//! No text makes the front end panic, hang or run out of stack: arbitrary text, words of the
//! language in any order, and good specs with mistakes in them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use specc::expr::check_manifest;
use specc::library::{Library, Origin};
use specc::source::{Sources, Span};
use specc::syntax::{parse_expr, parse_graph, scan};

/// Parses a graph file; every span of what comes out lies within it.
fn graph(text: &str) {
    let start = Instant::now();
    let mut sources = Sources::default();
    let file = sources.add("x.graph", text);
    let mut diags = Vec::new();
    let parsed = parse_graph(file, text, &mut diags);
    for found in &diags {
        inside(text, found.primary.span);
        specc::diag::render::text(&sources, found, specc::diag::render::Style::Plain);
        specc::diag::render::json(&sources, found);
    }
    for block in parsed.blocks.iter().chain(&parsed.graphs) {
        inside(text, block.span);
    }
    let formatted = specc::format::graph(text);
    assert_eq!(specc::format::graph(&formatted), formatted, "formatting twice changes");
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{} bytes took {:?}",
        text.len(),
        start.elapsed()
    );
}

fn inside(text: &str, span: Span) {
    assert!(
        span.start <= span.end && span.end as usize <= text.len(),
        "{span:?} in {}",
        text.len()
    );
    assert!(text.get(span.range()).is_some(), "{span:?} cuts a character");
}

/// Reads a manifest and everything that follows from it alone.
fn manifest(text: &str) {
    let mut library = Library::default();
    library.add(Origin::Folder, "x.toml", "x.toml", text);
    for found in library.diagnostics() {
        inside(text, found.primary.span);
    }
    match library.load_family("x") {
        Ok((manifest, _)) => {
            for found in check_manifest(&manifest) {
                inside(text, found.primary.span);
            }
        }
        Err(found) => {
            for found in found {
                inside(text, found.primary.span);
                specc::diag::render::text(
                    &library.sources,
                    &found,
                    specc::diag::render::Style::Plain,
                );
            }
        }
    }
    let formatted = specc::format::manifest(text);
    assert_eq!(specc::format::manifest(&formatted), formatted, "formatting twice changes");
}

fn specs(end: &str) -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let mut texts = Vec::new();
    for folder in [root.clone(), root.join("std")] {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files.iter().filter(|path| path.extension().is_some_and(|own| own == end)) {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
    texts
}

/// Words of the language and of TOML, in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = [
        "block",
        "graph",
        "extern",
        "use",
        "if",
        "else",
        "match",
        "for",
        "in",
        "layers",
        "weights",
        "module",
        "x",
        "y",
        "hidden_size",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ":",
        "=",
        "==",
        "->",
        "=>",
        "|>",
        "|",
        "@",
        "?",
        "??",
        "..",
        "::",
        ".",
        "+",
        "-",
        "*",
        "**",
        "/",
        "//",
        "%",
        "not",
        "and",
        "or",
        "none",
        "true",
        "1",
        "2.5",
        "1e999",
        "99999999999999999999",
        "\"a\"",
        "'b'",
        "\"",
        "'",
        "#",
        "///",
        "\n",
        " ",
        "\t",
        "é",
        "\u{0}",
        "std",
        "rule",
        "tensor",
        "[family]\n",
        "name = ",
        "extends",
        "config",
        "\"...\"",
        "remove",
        "&&",
        "\\",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..60)
        .prop_map(|words| words.join(" "))
}

/// A part of a good spec with some of its bytes replaced, left out or doubled.
fn mutated(end: &'static str, length: usize) -> impl Strategy<Value = String> {
    let texts = specs(end);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<char>()), 0..8);
    (prop::sample::select(texts), any::<prop::sample::Index>(), edits).prop_map(
        move |(text, start, edits)| {
            let mut letters: Vec<char> = text.chars().collect();
            let start =
                if letters.len() > length { start.index(letters.len() - length) } else { 0 };
            letters = letters.into_iter().skip(start).take(length).collect();
            for (at, how, letter) in edits {
                if letters.is_empty() {
                    break;
                }
                let at = at.index(letters.len());
                match how {
                    0 => letters[at] = letter,
                    1 => {
                        letters.remove(at);
                    }
                    2 => letters
                        .insert(at, "(){}[]\"'|=,;:#\n".chars().nth(at % 15).unwrap_or(letter)),
                    _ => letters.insert(at, letters[at]),
                }
            }
            letters.into_iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_a_graph_or_told_why_not(text in any::<String>()) {
        graph(&text);
    }

    #[test]
    fn any_words_are_a_graph_or_told_why_not(text in soup()) {
        graph(&text);
    }

    #[test]
    fn mistakes_in_graphs_are_told(text in mutated("graph", 300)) {
        graph(&text);
    }

    #[test]
    fn any_text_is_a_manifest_or_told_why_not(text in any::<String>()) {
        manifest(&text);
    }

    #[test]
    fn any_words_are_a_manifest_or_told_why_not(text in soup()) {
        manifest(&text);
    }

    #[test]
    fn mistakes_in_manifests_are_told(text in mutated("toml", 2500)) {
        manifest(&text);
    }

    #[test]
    fn any_words_are_an_expression_or_told_why_not(text in soup()) {
        let mut sources = Sources::default();
        let file = sources.add("x", text.clone());
        let mut diags = Vec::new();
        let parsed = parse_expr(file, 0, &text, &mut diags);
        prop_assert_eq!(parsed.is_none(), !diags.is_empty());
    }
}

/// Long and deep texts: each is refused or read within a second in a release build.
#[test]
fn depth_and_length_are_bounded() {
    let body = |inside: &str| format!("block f(x: [B]) {{\n    {inside}\n}}\n");
    let many = 100_000;
    for text in [
        body(&format!("{}x{}", "(".repeat(many), ")".repeat(many))),
        body(&"(".repeat(many)),
        body(&format!("{}x{}", "[".repeat(many), "]".repeat(many))),
        body(&format!("{}x{}", "f(".repeat(many), ")".repeat(many))),
        body(&format!("{}{}", "{".repeat(many), "}".repeat(many))),
        body(&format!("{}x", "not ".repeat(many))),
        body(&format!("{}x", "-".repeat(many))),
        body(&format!("x{}", " ** x".repeat(many))),
        body(&format!("x{}", " + x".repeat(many))),
        body(&format!("x{}", " |> f".repeat(many))),
        body(&format!("x{}", ".a".repeat(many))),
        body(&format!("x{}", " @ \"a\"".repeat(many))),
        body(&format!("x{}", " ? x : x".repeat(many))),
        body(&format!("x{}", " ? x".repeat(many))),
        body(&"if ".repeat(many)),
        body(&"if x { ".repeat(many)),
        body(&format!("if x {{ }}{}", " else if x { }".repeat(many / 10))),
        body(&format!("match x {{ {} }}", "a => x, ".repeat(many / 10))),
        body(&"x = f(x)\n".repeat(many / 10)),
        "}".repeat(many),
        "\"".repeat(many),
        "é".repeat(many),
        "#".repeat(many),
        "extern f(x: [..S]) -> [..S] = a".repeat(many / 100),
    ] {
        let start = Instant::now();
        let mut sources = Sources::default();
        let file = sources.add("x.graph", text.as_str());
        let mut diags = Vec::new();
        parse_graph(file, &text, &mut diags);
        let shown: String = text.chars().take(40).collect();
        assert!(start.elapsed() < Duration::from_secs(20), "{shown}: {:?}", start.elapsed());
    }
    let deep = format!("a = {}1{}", "[".repeat(many), "]".repeat(many));
    manifest(&deep);
    let mut diags = Vec::new();
    let mut sources = Sources::default();
    let file = sources.add("x", "");
    parse_expr(file, 0, &"(".repeat(many), &mut diags);
    assert!(!diags.is_empty());
}

/// Every spec of the repository comes out of formatting with the same words, and twice alike.
#[test]
fn formatting_keeps_every_word() {
    let words = |text: &str| -> Vec<String> {
        scan::tokens(text).iter().map(|token| token.text(text).trim_end().to_owned()).collect()
    };
    for text in specs("graph") {
        let formatted = specc::format::graph(&text);
        assert_eq!(words(&formatted), words(&text));
        assert_eq!(specc::format::graph(&formatted), formatted);
        assert_eq!(formatted.lines().find(|line| line.ends_with(' ')), None);
    }
    for text in specs("toml") {
        let formatted = specc::format::manifest(&text);
        let value = |text: &str| text.parse::<toml::Table>().unwrap();
        assert_eq!(value(&formatted), value(&text));
        assert_eq!(specc::format::manifest(&formatted), formatted);
    }
}
