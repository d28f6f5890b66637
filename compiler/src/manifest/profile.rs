//! `[profile]`, and the words of `[chat]`.

use super::FidelityTier;
use super::reader::word;
use super::tree::{Node, NodeKind, Table};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};

/// Ways of marking thinking.
const THINKING: [(&str, ()); 4] =
    [("none", ()), ("think-tag", ()), ("channel", ()), ("gemma-channel", ())];

/// Ways of writing calls of tools.
const TOOL_CALLS: [(&str, ()); 6] = [
    ("none", ()),
    ("json", ()),
    ("function-tags", ()),
    ("named-elements", ()),
    ("sentinels", ()),
    ("argument-pairs", ()),
];

/// Compositions that a profile may ask for.
const COMPOSITIONS: [(&str, ()); 1] = [("default", ())];

/// What a manifest says about its profiles; nothing of it is inherited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The graph's name; the family's where left out, with `-` for `_`.
    pub graph: Option<Spanned<String>>,
    /// The id of the family's own profile.
    pub id: Option<Spanned<String>>,
    /// The id under which the graph is an implementation; the graph's name where left out.
    pub implements: Option<Spanned<String>>,
    /// What an engine needs for it.
    pub capabilities: Vec<Spanned<String>>,
    /// Configurations that run a generated graph.
    pub generated: Option<Generated>,
    /// Exact artifacts.
    pub artifacts: Vec<Artifact>,
}

/// Configurations that run a generated graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The profile's id; the graph's name and `-generated` where left out.
    pub id: Option<Spanned<String>>,
    /// Their fingerprints.
    pub fingerprints: Vec<Spanned<String>>,
}

/// One exact artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// The profile's id.
    pub id: Spanned<String>,
    /// `hf:REPOSITORY@REVISION`
    pub artifact: Spanned<String>,
    /// The fingerprint of its configuration.
    pub fingerprint: Spanned<String>,
    /// Tier and oracle, where they are others than the family's.
    pub fidelity: Option<(FidelityTier, Option<String>)>,
    /// What an engine needs beside what the family needs.
    pub capabilities: Vec<Spanned<String>>,
    /// Another implementation.
    pub implementation: Option<Spanned<String>>,
    /// How it is composed.
    pub composition: Option<Spanned<String>>,
}

/// Reads the section; values of wrong types are told where sections are read as data.
pub(super) fn profile(node: Option<&Node>, diags: &mut Vec<Diagnostic>) -> Profile {
    let Some(table) = node.and_then(Node::as_table) else { return Profile::default() };
    let generated = table.get("generated").and_then(Node::as_table).map(|generated| {
        let fingerprints = texts(generated, "fingerprints");
        fingerprints.iter().for_each(|one| check_fingerprint(one, diags));
        Generated { id: name(generated, "id", diags), fingerprints }
    });
    let items = match table.get("artifacts").map(|node| &node.kind) {
        Some(NodeKind::Array(items)) => items.as_slice(),
        _ => &[],
    };
    let tables = items.iter().filter_map(|item| Some((item.as_table()?, item.span)));
    Profile {
        graph: name(table, "graph", diags),
        id: name(table, "id", diags),
        implements: name(table, "implements", diags),
        capabilities: names(table, "capabilities", diags),
        generated,
        artifacts: tables.filter_map(|(table, span)| artifact(table, span, diags)).collect(),
    }
}

fn artifact(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<Artifact> {
    for key in ["id", "artifact", "fingerprint"] {
        if table.get(key).is_none() {
            let error = format!("an exact artifact lacks `{key}`");
            diags.push(Diagnostic::error(Code::MissingKey, span, error).help(
                "write `{ id = \"acme-4bit\", artifact = \"hf:acme/tiny@REVISION\", fingerprint = \"0123456789abcdef\" }`",
            ));
        }
    }
    let id = name(table, "id", diags);
    let artifact = text(table, "artifact");
    if let Some(artifact) = &artifact {
        check_artifact(artifact, diags);
    }
    let fingerprint = text(table, "fingerprint");
    if let Some(fingerprint) = &fingerprint {
        check_fingerprint(fingerprint, diags);
    }
    let composition = text(table, "composition");
    if let Some(composition) = &composition {
        word(composition, "composition", &COMPOSITIONS, diags);
    }
    let oracle = text(table, "oracle");
    let fidelity = text(table, "fidelity").and_then(|said| {
        let tier = word(&said, "fidelity", FidelityTier::WORDS, diags)?;
        if (tier == FidelityTier::L3) == oracle.is_some() {
            diags.push(
                Diagnostic::error(Code::Fidelity, said.span, format!("{tier} is no contract here"))
                    .help("`l1` and `l2` name an `oracle`, `l3` names none"),
            );
        }
        Some((tier, oracle.clone().map(|oracle| oracle.node)))
    });
    Some(Artifact {
        id: id?,
        artifact: artifact?,
        fingerprint: fingerprint?,
        fidelity,
        capabilities: names(table, "capabilities", diags),
        implementation: name(table, "implementation", diags),
        composition,
    })
}

/// Words of `[chat]` that the runtime knows.
pub(super) fn chat(node: Option<&Node>, diags: &mut Vec<Diagnostic>) {
    let Some(table) = node.and_then(Node::as_table) else { return };
    if let Some(thinking) = text(table, "thinking") {
        word(&thinking, "thinking", &THINKING, diags);
    }
    if let Some(calls) = text(table, "tool_calls") {
        word(&calls, "tool_calls", &TOOL_CALLS, diags);
    }
}

fn text(table: &Table, key: &str) -> Option<Spanned<String>> {
    let node = table.get(key)?;
    Some(Spanned::new(node.as_str()?.to_owned(), node.span))
}

fn texts(table: &Table, key: &str) -> Vec<Spanned<String>> {
    let items = table.get(key).map(Node::items).unwrap_or_default();
    let one = |item: &Node| Some(Spanned::new(item.as_str()?.to_owned(), item.span));
    items.iter().filter_map(one).collect()
}

fn name(table: &Table, key: &str, diags: &mut Vec<Diagnostic>) -> Option<Spanned<String>> {
    text(table, key).inspect(|name| check_name(name, key, diags))
}

fn names(table: &Table, key: &str, diags: &mut Vec<Diagnostic>) -> Vec<Spanned<String>> {
    let names = texts(table, key);
    names.iter().for_each(|name| check_name(name, key, diags));
    names
}

/// Ids are words of letters, digits, `-`, `_`, `.` and `+`.
fn check_name(name: &Spanned<String>, key: &str, diags: &mut Vec<Diagnostic>) {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.node.is_empty() || name.node.len() > 128 || !name.node.chars().all(letter) {
        let message = format!("`{key}` must be one word, found {:?}", name.node);
        diags.push(
            Diagnostic::error(Code::ProfileWords, name.span, message)
                .help("words are made of letters, digits, `-`, `_`, `.` and `+`"),
        );
    }
}

fn check_artifact(artifact: &Spanned<String>, diags: &mut Vec<Diagnostic>) {
    let parts = artifact.node.strip_prefix("hf:").and_then(|rest| rest.rsplit_once('@'));
    let good = parts.is_some_and(|(repository, revision)| {
        let part = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        part(repository) && part(revision) && !repository.contains('@')
    });
    if !good {
        let message = format!("{:?} names no exact artifact", artifact.node);
        diags.push(
            Diagnostic::error(Code::ProfileWords, artifact.span, message)
                .help("write `hf:REPOSITORY@REVISION`, such as \"hf:acme/tiny@4f2c9be\""),
        );
    }
}

fn check_fingerprint(found: &Spanned<String>, diags: &mut Vec<Diagnostic>) {
    let digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    if found.node.len() != 16 || !found.node.chars().all(digit) {
        let message = format!("{:?} is no fingerprint of a configuration", found.node);
        diags.push(
            Diagnostic::error(Code::ProfileWords, found.span, message)
                .help("it has 16 hexadecimal digits, as `specc-run info` shows them"),
        );
    }
}

impl super::Manifest {
    /// The graph's name: the one that it gives itself, else the family's.
    pub fn graph_name(&self) -> String {
        match &self.profile.graph {
            Some(graph) => graph.node.clone(),
            None => self.family.name.node.replace('_', "-"),
        }
    }

    /// The id of the family's own profile: of a targeted family its graph's, made for it.
    pub fn profile_id(&self) -> String {
        match &self.profile.id {
            Some(id) => id.node.clone(),
            None if self.family.generic => self.graph_name(),
            None => format!("{}-dedicated", self.graph_name()),
        }
    }

    /// The id under which the graph is an implementation.
    pub fn implementation(&self) -> String {
        self.profile.implements.as_ref().map_or_else(|| self.graph_name(), |id| id.node.clone())
    }

    /// What an engine needs for the family: its graph, states that recur, and what it says.
    pub fn engine_capabilities(&self) -> Vec<String> {
        let mut words = vec![format!("{}-graph", self.graph_name())];
        if self.layers.kinds.iter().any(|kind| kind.storage.node == "recurrent") {
            words.push("recurrent-state".to_owned());
        }
        words.extend(self.profile.capabilities.iter().map(|word| word.node.clone()));
        words.sort();
        words.dedup();
        words
    }

    /// Names that no other family may have: what each is, the name, and where it is said.
    pub(crate) fn profile_names(&self) -> Vec<(&'static str, String, Span)> {
        let profile = &self.profile;
        let own = self.family.name.span;
        let at = |said: &Option<Spanned<String>>| said.as_ref().map_or(own, |said| said.span);
        let mut names = vec![
            ("the graph", self.graph_name(), at(&profile.graph)),
            ("the profile", self.profile_id(), at(&profile.id)),
            ("the implementation", self.implementation(), at(&profile.implements)),
        ];
        if let Some(Generated { id, fingerprints }) = &profile.generated {
            names.extend(id.iter().map(|id| ("the profile", id.node.clone(), id.span)));
            let one = |f: &Spanned<String>| ("the fingerprint", f.node.clone(), f.span);
            names.extend(fingerprints.iter().map(one));
        }
        for artifact in &profile.artifacts {
            names.push(("the profile", artifact.id.node.clone(), artifact.id.span));
            let named = &artifact.artifact;
            names.push(("the artifact", named.node.clone(), named.span));
        }
        names
    }
}
