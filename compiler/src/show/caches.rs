//! What a family's layers remember.

use std::fmt::Write as _;

use crate::expr::LayerValues;
use crate::library::Library;
use crate::manifest::{Manifest, ONLY_KIND};

/// Kinds with their storages; with layers at hand, how many of each and bytes per token.
pub fn caches(library: &Library, manifest: &Manifest, layers: Option<&[LayerValues]>) -> String {
    let mut out = String::new();
    for kind in &manifest.layers.kinds {
        let storage = &kind.storage.node;
        let params: Vec<String> = kind
            .params
            .iter()
            .map(|(name, value)| format!("{} = {}", name.node, crate::syntax::print::expr(value)))
            .collect();
        let params =
            if params.is_empty() { String::new() } else { format!(" ({})", params.join(", ")) };
        let name = if kind.name.node == ONLY_KIND { "every layer" } else { &kind.name.node };
        let count =
            layers.map(|layers| layers.iter().filter(|layer| layer.kind == kind.name.node).count());
        if count == Some(0) {
            continue;
        }
        let count = count.map_or_else(String::new, |count| format!("{count} x "));
        let doc = library.caches().get(storage).map_or("", |layout| layout.doc.as_str());
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{count}{name}: {storage}{params}: {doc}");
    }
    if let Some(shared) =
        layers.map(|layers| layers.iter().filter(|layer| !layer.donor).count()).filter(|n| *n > 0)
    {
        let _ = writeln!(out, "{shared} layers read the cache of an earlier one");
    }
    out
}
