//! How texts read.

use super::*;
use crate::source::Sources;

#[test]
fn the_library_reads_without_errors() {
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");
    let (mut sources, mut diags) = (Sources::default(), Vec::new());
    for folder in [specs.to_owned(), format!("{specs}/std")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "graph") {
                let text = std::fs::read_to_string(&path).unwrap();
                let file = sources.add(path.display().to_string(), text.clone());
                parse_graph(file, &text, &mut diags);
            }
        }
    }
    assert_eq!(diags, []);
}

/// Every rule of the grammar is taken by some example of docs/language.md.
#[test]
fn the_document_of_the_language_shows_the_whole_grammar() {
    use pest::Parser as _;
    use std::collections::BTreeSet;

    let text = include_str!("../../../docs/language.md");
    let mut shown: BTreeSet<String> = BTreeSet::new();
    let mut take = |rule, text: &str| {
        let pairs = grammar::Grammar::parse(rule, text).unwrap_or_else(|error| panic!("{error}"));
        shown.extend(pairs.flatten().map(|pair| format!("{:?}", pair.as_rule())));
    };
    let mut fences = text.split("\n```");
    fences.next();
    while let (Some(example), Some(_)) = (fences.next(), fences.next()) {
        let (info, body) = example.split_once('\n').unwrap();
        if info.contains("error") {
            continue;
        }
        match info.split(' ').next() {
            Some("graph") => parse::pieces(body).iter().for_each(|item| {
                take(grammar::Rule::only_item, item);
            }),
            Some("body") => take(grammar::Rule::only_item, &format!("block f(x) {{\n{body}\n}}")),
            Some("expr") => body
                .lines()
                .filter_map(|line| line.split_once('#'))
                .for_each(|(expr, _)| take(grammar::Rule::only_expr, expr)),
            _ => {}
        }
    }
    // Rules whose matches leave a mark in the tree; the tokens of a text are another tree.
    let rules = include_str!("graph.pest").lines().filter_map(|line| {
        let (name, rule) = line.split_once('=')?;
        let marked = !name.starts_with(' ') && rule.trim_start().starts_with(['{', '@', '$', '!']);
        marked.then(|| name.trim())
    });
    let tokens = ["tokens", "doc", "comment", "symbol", "junk", "keyword"];
    let missing: Vec<&str> =
        rules.filter(|rule| !tokens.contains(rule) && !shown.contains(*rule)).collect();
    assert_eq!(missing, [""; 0]);
}
