//! A merged document to a [`Manifest`].

use super::reader::{Fields, unknown_key};
use super::tree::{Key, Table};
use super::{
    Manifest, Weights, capabilities, config, family, layers, method, profile, sections, values,
    weights,
};
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span, Spanned};

/// Top-level keys of a manifest.
pub(crate) const SECTIONS: [&str; 14] = [
    "family",
    "dialect",
    "config",
    "checks",
    "graph",
    "weights",
    "layers",
    "cache",
    "capabilities",
    "profile",
    "method",
    "chat",
    "embedding",
    "gguf",
];

/// A top-level key that is none of them.
pub(crate) fn unknown_section(key: &Key) -> Diagnostic {
    unknown_key(key, "a manifest", &SECTIONS)
}

/// Lowers a document whose inheritance is applied. `file` is the document's own text, `graphs` the
/// graph files of its line, the base's first.
pub(crate) fn manifest(
    file: FileId,
    table: &Table,
    graphs: Vec<Spanned<String>>,
    diags: &mut Vec<Diagnostic>,
) -> Option<Manifest> {
    let whole = Span { file, start: 0, end: 0 };
    let mut root = Fields::new(table, whole, "the manifest");
    let family = match root.table("family", diags) {
        Some((table, span)) => {
            let span = Span { file, ..own_span(span, file) };
            family::family(table, span, diags)
        }
        None => {
            diags.push(
                Diagnostic::error(Code::MissingKey, whole, "a manifest starts with [family]")
                    .help("write `[family]`, `name = \"acme\"`, `model_types = [\"acme\"]`, `label = \"Acme\"`"),
            );
            None
        }
    };
    let roots = family::roots(&mut root, diags);
    let config = config::section(root.entry("config"), diags, config::config);
    let checks = config::section(root.entry("checks"), diags, config::checks);
    let graph = config::section(root.entry("graph"), diags, config::graph);
    let weights = match root.table("weights", diags) {
        Some((table, span)) => weights::weights(table, span, diags),
        None => Weights::default(),
    };
    let mut layers = layers::layers(root.entry("layers"), whole, diags);
    values::settle(&mut layers, &config);
    layers::check_kinds(&layers, diags);
    let paging = family::paging(&mut root, diags);
    let denoising = method::denoising(root.entry("method"), family.as_ref(), diags);
    let capabilities = capabilities::capabilities(root.get("capabilities"), diags);
    let profile = profile::profile(root.get("profile"), diags);
    profile::chat(root.get("chat"), diags);
    let mut kept = Vec::new();
    for name in sections::names() {
        if let Some((key, node)) = root.entry(name) {
            kept.extend(sections::section(key, node, diags));
        }
    }
    root.finish(diags);
    Some(Manifest {
        file,
        family: family?,
        roots,
        config,
        checks,
        graph,
        weights,
        layers,
        paging,
        denoising,
        capabilities,
        profile,
        sections: kept,
        graphs,
        pinned: None,
    })
}

/// A table inherited whole stands in another text; its own document is then shown from the top.
fn own_span(span: Span, file: FileId) -> Span {
    if span.file == file { span } else { Span { file, start: 0, end: 0 } }
}
