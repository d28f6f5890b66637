//! No text makes the compiler panic, hang or run out of stack or memory: arbitrary text and bytes,
//! words of the language in any order, and good specs with mistakes in them. 32,500 texts in a run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::sync::LazyLock;

use proptest::prelude::*;
use specc::checks::check_manifest;
use specc::compile;
use specc::diag::Diagnostic;
use specc::library::{Library, Origin};
use specc::source::{Sources, Span};
use specc::syntax::{parse_expr, parse_graph, scan};

mod common;

/// What comes out is bounded by what goes in: a tree, findings, their text.
fn bounded(text: &str, tree: &str, found: &[Diagnostic], shown: usize) {
    let length = text.len() + 16;
    assert!(tree.len() <= 2_000 * length, "{} bytes of tree for {length}", tree.len());
    assert!(found.len() <= length, "{} findings for {length} bytes", found.len());
    // Each finding shows a few lines, which may be as long as the text.
    let most = (found.len() + 1) * (4 * length + 2_000);
    assert!(shown <= most, "{shown} bytes shown for {length}");
}

/// Parses a graph file; every span of what comes out lies within it.
fn graph(text: &str) {
    let watched = common::Watched::new(text);
    let mut sources = Sources::default();
    let file = sources.add("x.graph", text);
    let mut diags = Vec::new();
    let parsed = parse_graph(file, text, &mut diags);
    let mut shown = 0;
    for found in &diags {
        inside(text, found.primary.span);
        shown +=
            specc::diag::render::text(&sources, found, specc::diag::render::Style::Plain).len();
        specc::diag::render::json(&sources, found);
    }
    for block in parsed.blocks.iter().chain(&parsed.graphs) {
        inside(text, block.span);
    }
    let formatted = specc::format::graph(text);
    assert_eq!(specc::format::graph(&formatted), formatted, "formatting twice changes");
    assert!(formatted.len() <= 64 * (text.len() + 16), "{} bytes", formatted.len());
    drop(watched);
    bounded(text, &format!("{parsed:?}"), &diags, shown);
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
    let watched = common::Watched::new(text);
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
    drop(watched);
}

/// A family of the library under another name, its manifest and its own graph changed.
#[derive(Debug, Clone)]
struct Changed {
    manifest: String,
    graph: Option<String>,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::builtin);

/// Families of the library as documents of their own, `acme`, with the graph that each has.
fn families() -> Vec<Changed> {
    let library = &*LIBRARY;
    let document = |name: &str| {
        let mut documents = library.documents(name).into_iter();
        let (_, manifest) = documents.next().expect("a family has a manifest");
        let own = format!("{name}.graph");
        let graph = documents.next().filter(|(shown, _)| *shown == own).map(|(_, text)| text);
        let manifest = manifest
            .replacen(&format!("\"{name}\""), "\"acme\"", 2)
            .replace("tier        = \"generic\"", "label = \"Acme\"");
        Changed { manifest, graph }
    };
    library.families().map(document).collect()
}

/// Some edits: replaced, left out, inserted or doubled letters, and words exchanged for others.
fn edited(text: &str, edits: &[(prop::sample::Index, u8, char)]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (at, how, letter) in edits {
        if letters.is_empty() {
            break;
        }
        let at = at.index(letters.len());
        match how % 4 {
            0 => letters[at] = *letter,
            1 => {
                letters.remove(at);
            }
            2 => letters.insert(at, "(){}[]\"'|=,;:#+-*/.\n".chars().nth(at % 20).unwrap()),
            _ => {
                // A word of the text stands where another one stood.
                let words: Vec<&str> =
                    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
                let word = words[at % words.len()];
                let end = letters[at..].iter().position(|c| !c.is_alphanumeric() && *c != '_');
                letters.splice(at..at + end.unwrap_or(0), word.chars());
            }
        }
    }
    letters.into_iter().collect()
}

fn changed() -> impl Strategy<Value = Changed> {
    let edits =
        || prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<char>()), 0..4);
    (prop::sample::select(families()), edits(), edits()).prop_map(|(family, first, second)| {
        Changed {
            manifest: edited(&family.manifest, &first),
            graph: family.graph.map(|graph| edited(&graph, &second)),
        }
    })
}

/// Checks a family and, where nothing is wrong with it, generates its code.
fn compiled(family: &Changed) {
    let mut library = LIBRARY.clone();
    let watched = common::Watched::new(&family.manifest);
    library.add(Origin::Folder, "acme.toml", "acme.toml", &family.manifest);
    if let Some(graph) = &family.graph {
        library.add(Origin::Folder, "acme.graph", "acme.graph", graph);
    }
    let length = family.manifest.len() + family.graph.as_ref().map_or(0, String::len) + 4_000;
    match compile::check(&library, "acme") {
        Ok(checked) => {
            let code = compile::generate(&library, &checked);
            let code = code.unwrap_or_else(|error| panic!("{error}"));
            assert!(code.len() < 200 * length, "{} bytes of code", code.len());
        }
        Err(found) => {
            assert!(!found.is_empty());
            assert!(found.len() <= length, "{} findings", found.len());
            for one in &found {
                let style = specc::diag::render::Style::Plain;
                specc::diag::render::text(&library.sources, one, style);
            }
        }
    }
    drop(watched);
}

fn specs(end: &str) -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    let mut texts = Vec::new();
    let sketches = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sketches");
    let folders = [root.clone(), root.join("std"), root.join("cache"), root.join("gguf"), sketches];
    for folder in folders {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let wanted = |path: &&std::path::PathBuf| {
            path.extension().is_some_and(|own| own == end)
                && path.file_name().is_some_and(|name| name != "Cargo.toml")
        };
        for path in files.iter().filter(wanted) {
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
    fn any_bytes_are_a_spec_or_told_why_not(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
        let text = String::from_utf8_lossy(&bytes);
        graph(&text);
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

proptest! {
    // Each is a whole compilation.
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mistakes_in_families_are_told(family in changed()) {
        compiled(&family);
    }
}

/// Long and deep texts are refused or read.
#[test]
fn depth_and_length_are_bounded() {
    let body = |inside: &str| format!("block f(x: [B]) {{\n    {inside}\n}}\n");
    let many = 20_000;
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
        let watched = common::Watched::new(&text);
        let mut sources = Sources::default();
        let file = sources.add("x.graph", text.as_str());
        let mut diags = Vec::new();
        parse_graph(file, &text, &mut diags);
        drop(watched);
        assert!(diags.len() < 1 + text.len(), "{} findings", diags.len());
    }
    let deep = format!("a = {}1{}", "[".repeat(many), "]".repeat(many));
    manifest(&deep);
    let mut diags = Vec::new();
    let mut sources = Sources::default();
    let file = sources.add("x", "");
    parse_expr(file, 0, &"(".repeat(many), &mut diags);
    assert!(!diags.is_empty());
}

/// Every spec of the repository is laid out as `specc fmt` does it, which keeps every word.
#[test]
fn the_repository_is_formatted() {
    let words = |text: &str| -> Vec<String> {
        scan::tokens(text).iter().map(|token| token.text(text).trim_end().to_owned()).collect()
    };
    for text in specs("graph") {
        let formatted = specc::format::graph(&text);
        assert_eq!(formatted, text, "run `specc fmt specs compiler/tests/sketches`");
        // The same words come out of a text whose blanks are others.
        let crowded: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        assert_eq!(words(&specc::format::graph(&crowded)), words(&crowded));
        assert_eq!(formatted.lines().find(|line| line.ends_with(' ')), None);
    }
    for text in specs("toml") {
        let formatted = specc::format::manifest(&text);
        assert_eq!(formatted, text, "run `specc fmt specs compiler/tests/sketches`");
        let value = |text: &str| text.parse::<toml::Table>().unwrap();
        // Texts over several lines are left as they are.
        let parts = text.split("'''").enumerate();
        let parts = parts.map(|(at, part)| match at % 2 {
            0 => part.replace("\n\n", "\n\n\n \n"),
            _ => part.to_owned(),
        });
        let loose = parts.collect::<Vec<_>>().join("'''") + "\n\n";
        assert_eq!(value(&specc::format::manifest(&loose)), value(&text));
    }
}
