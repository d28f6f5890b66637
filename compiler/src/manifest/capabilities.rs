//! What `[capabilities]` declares of the graph: facts beyond those of an ordinary one.

use super::reader::word;
use super::tree::{Node, NodeKind, Table};
use crate::diag::Diagnostic;
use crate::source::{Span, Spanned};

/// What a graph may take beside tokens.
const INPUTS: [(&str, &str); 3] = [
    ("embeddings", "embeddings"),
    ("embeddings+positions", "embeddings+positions"),
    ("pixels", "pixels"),
];

/// Requests in which drafted tokens may be verified, in the order of the declaration.
pub const SPECULATION: [&str; 4] = ["adapters", "logprobs", "external_tokens", "grammar_proposals"];

/// What a manifest says about its graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capabilities {
    /// What it takes beside tokens.
    pub media: Option<Spanned<String>>,
    /// It provides a compiled decode step.
    pub compiled_decode: Option<Spanned<bool>>,
    /// Its attention picks positions.
    pub sparse_attention: Option<Spanned<bool>>,
    /// It reports the output of each layer.
    pub hidden_layer_taps: Option<Spanned<bool>>,
    /// It has a draft head of its own.
    pub native_draft: Option<Span>,
    /// Prompts are cut until the scores of attention fit a bound.
    pub bounded_workspace: bool,
    /// By [`SPECULATION`].
    pub speculation: [Option<Spanned<bool>>; 4],
}

/// Reads the section; values of wrong types are told where sections are read as data.
pub(super) fn capabilities(node: Option<&Node>, diags: &mut Vec<Diagnostic>) -> Capabilities {
    let Some(table) = node.and_then(Node::as_table) else { return Capabilities::default() };
    let media = table.get("media").and_then(Node::as_table).and_then(|media| {
        let input = media.get("input")?;
        let input = Spanned::new(input.as_str()?.to_owned(), input.span);
        let known = word(&input, "input", &INPUTS, diags)?;
        Some(Spanned::new(known.to_owned(), input.span))
    });
    let inner = |name: &str| table.get(name).and_then(Node::as_table);
    let workspace = inner("prefill").and_then(|prefill| switch(prefill, "bounded_workspace"));
    let speculation = inner("speculation");
    Capabilities {
        media,
        compiled_decode: switch(table, "compiled_decode"),
        sparse_attention: switch(table, "sparse_attention"),
        hidden_layer_taps: switch(table, "hidden_layer_taps"),
        native_draft: table.get("native_draft").map(|node| node.span),
        bounded_workspace: workspace.is_some_and(|said| said.node),
        speculation: SPECULATION.map(|name| switch(speculation?, name)),
    }
}

fn switch(table: &Table, name: &str) -> Option<Spanned<bool>> {
    let node = table.get(name)?;
    match node.kind {
        NodeKind::Bool(value) => Some(Spanned::new(value, node.span)),
        _ => None,
    }
}
