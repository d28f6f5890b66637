//! docs/language.md and docs/storages.md: each example compiles, or gives the finding that it is marked with, and no word
//! of the language is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use specc::checks::check_families;
use specc::compile;
use specc::diag::render::{self, Style};
use specc::expr::{Function, eval, evaluate};
use specc::library::{Library, Origin};
use specc::lower::{ManifestScope, manifest_scalar};
use specc::source::Sources;
use specc::syntax::{KEYWORDS, parse_expr};
use specc_checkpoint::config::ConfigFile;

/// A fenced example.
#[derive(Debug, Clone)]
struct Example {
    /// `toml`, `graph`, `body`, `expr` or `json`.
    kind: String,
    /// Of a document that stands with the others of its section.
    name: Option<String>,
    /// The finding that it must give.
    error: Option<String>,
    text: String,
    section: String,
    line: usize,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The language, and the documents of storages.
fn document() -> String {
    let read = |name: &str| std::fs::read_to_string(root().join("docs").join(name)).unwrap();
    read("language.md") + &read("storages.md")
}

fn examples(text: &str) -> Vec<Example> {
    let (mut all, mut section) = (Vec::new(), String::new());
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line.starts_with('#') {
            line.clone_into(&mut section);
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let mut words = info.split(' ');
        let kind = words.next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = words.collect();
        let (name, error) = match rest.as_slice() {
            [] => (None, None),
            ["error", code] => (None, Some((*code).to_owned())),
            [name] => (Some((*name).to_owned()), None),
            _ => panic!("line {}: {info}", at + 1),
        };
        let text = body.join("\n") + "\n";
        all.push(Example { kind, name, error, text, section: section.clone(), line: at + 1 });
    }
    all
}

fn frame(examples: &[Example]) -> String {
    examples.iter().find(|one| one.name.as_deref() == Some("frame")).unwrap().text.clone()
}

/// The documents of one trial: names and texts, and the finding that they must give.
struct Trial {
    line: usize,
    files: Vec<(String, String)>,
    error: Option<String>,
}

fn trials(examples: &[Example]) -> Vec<Trial> {
    let frame = frame(examples);
    let mut trials: Vec<Trial> = Vec::new();
    let mut open: Option<String> = None;
    for one in examples {
        let document = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let files = match (one.kind.as_str(), &one.name) {
            (_, Some(name)) if name == "frame" => vec![document("acme.toml", &one.text)],
            (_, Some(name)) => {
                // Named documents of one section stand together.
                let file = document(name, &one.text);
                if open.as_ref() == Some(&one.section) {
                    trials.last_mut().unwrap().files.push(file);
                    continue;
                }
                open = Some(one.section.clone());
                vec![file]
            }
            ("toml", None) => vec![document("acme.toml", &format!("{frame}\n{}", one.text))],
            ("graph", None) => {
                vec![document("acme.toml", &frame), document("acme.graph", &one.text)]
            }
            ("body", None) => {
                let head = "block mlp(x: [B, L, hidden_size]) -> [B, L, hidden_size] {\n";
                let block = format!("{head}{}}}\n", one.text);
                vec![document("acme.toml", &frame), document("acme.graph", &block)]
            }
            ("expr" | "json", None) => continue,
            other => panic!("line {}: {other:?}", one.line),
        };
        trials.push(Trial { line: one.line, files, error: one.error.clone() });
    }
    trials
}

#[test]
fn every_example_compiles_or_gives_its_finding() {
    let trials = trials(&examples(&document()));
    assert!(trials.len() >= 25, "only {} examples", trials.len());
    let builtin = Library::builtin();
    for trial in trials {
        let mut library = builtin.clone();
        for (name, text) in &trial.files {
            library.add(Origin::Folder, name, name, text);
        }
        let names: Vec<String> =
            library.families().filter(|name| library.is_local(name)).map(str::to_owned).collect();
        let checks = check_families(&library, &names);
        let found = render::all(&library.sources, &checks.diagnostics, Style::Plain);
        match &trial.error {
            None => {
                assert!(checks.diagnostics.is_empty(), "docs line {}:\n{found}", trial.line);
                for (name, checked) in &checks.families {
                    let code = compile::generate(&library, checked);
                    assert!(code.is_ok(), "docs line {}: {name}: {code:?}", trial.line);
                }
            }
            Some(code) => {
                let codes: Vec<&str> =
                    checks.diagnostics.iter().map(|found| found.code.as_str()).collect();
                assert_eq!(codes, [code.as_str()], "docs line {}:\n{found}", trial.line);
            }
        }
    }
}

#[test]
fn every_expression_has_the_value_beside_it() {
    let examples = examples(&document());
    let config = &examples.iter().find(|one| one.kind == "json").unwrap().text;
    let config = ConfigFile::parse(Path::new("config.json"), config.as_bytes()).unwrap();
    let mut library = Library::builtin();
    library.add(Origin::Folder, "acme.toml", "acme.toml", &frame(&examples));
    let (manifest, _) = library.load_family("acme").unwrap();
    let values = evaluate(&manifest, &config).unwrap();
    let mut count = 0;
    for line in examples.iter().filter(|one| one.kind == "expr").flat_map(|one| one.text.lines()) {
        let (text, wanted) = line.split_once('#').expect("a value stands beside it");
        let (mut sources, mut diags) = (Sources::default(), Vec::new());
        let file = sources.add("expr", text);
        let expr = parse_expr(file, 0, text, &mut diags);
        let expr = expr.unwrap_or_else(|| panic!("{line}: {diags:?}"));
        let typed = manifest_scalar(&manifest, &expr, ManifestScope::default());
        assert!(typed.is_ok(), "{line}: {typed:?}");
        // The typed form is what the generated code computes; both must be the same value.
        for expr in [&expr, &typed.unwrap().expr] {
            let value = eval(expr, &values).unwrap_or_else(|error| panic!("{line}: {error:?}"));
            assert_eq!(value.to_string(), wanted.trim(), "{line}");
        }
        count += 1;
    }
    assert!(count >= 25, "only {count} expressions");
}

/// Whether a word stands in a text on its own.
fn mentions(text: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !part(text[..at].chars().next_back()) && !part(text[at + word.len()..].chars().next())
    })
}

/// Keys and words of a JSON Schema.
fn schema_words(schema: &Value, found: &mut BTreeSet<String>) {
    let Some(object) = schema.as_object() else { return };
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, inner) in properties {
                    found.insert(name.clone());
                    schema_words(inner, found);
                }
            }
            ("enum", Value::Array(words)) => {
                found.extend(words.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            ("anyOf", Value::Array(all)) => all.iter().for_each(|one| schema_words(one, found)),
            ("items" | "additionalProperties", inner) => schema_words(inner, found),
            _ => {}
        }
    }
}

/// Keys of TOML documents, whatever tables they stand in.
fn keys(table: &toml::Table, free: &[&str], found: &mut BTreeSet<String>) {
    for (key, value) in table {
        found.insert(key.clone());
        let inner: Vec<&toml::Table> = match value {
            toml::Value::Table(table) => vec![table],
            toml::Value::Array(items) => items.iter().filter_map(toml::Value::as_table).collect(),
            _ => continue,
        };
        for table in inner {
            if free.contains(&key.as_str()) {
                // Names of the document's own; what stands under each is the language's.
                for below in table.values().filter_map(toml::Value::as_table) {
                    keys(below, free, found);
                }
            } else {
                keys(table, free, found);
            }
        }
    }
}

#[test]
fn every_word_of_the_language_is_in_the_document() {
    let text = document();
    let mut words = BTreeSet::new();
    schema_words(&specc::schema::manifest(), &mut words);
    assert!(words.len() > 100, "{words:?}");
    words.extend(specc::weights::STEPS.iter().map(|(name, _)| (*name).to_owned()));
    words.extend(Function::of_values().map(str::to_owned));
    words.extend(KEYWORDS.map(str::to_owned));
    words.extend(["any", "count", "dim", "dtype", "has", "weight"].map(str::to_owned));
    // What each storage of the library says, and the rules of the library's ops.
    for entry in std::fs::read_dir(root().join("specs/cache")).unwrap() {
        let layout = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        keys(&layout.parse().unwrap(), &["params"], &mut words);
    }
    for entry in std::fs::read_dir(root().join("specs/std")).unwrap() {
        let graph = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let rules = graph.split("-> rule ").skip(1);
        words.extend(rules.filter_map(|rest| rest.split(' ').next()).map(str::to_owned));
    }
    // A type with its question mark is told by the type.
    let missing: Vec<&String> =
        words.iter().filter(|word| !mentions(&text, word.trim_end_matches('?'))).collect();
    assert!(missing.is_empty(), "docs/language.md says nothing of {missing:?}");
}
