//! `extends`: a document laid over its base.

use super::tree::{Key, Node, NodeKind, Table};
use crate::diag::{Code, Diagnostic};

/// The element of a list that stands for the base's elements.
const INHERITED: &str = "...";

/// Lays `over` on `base`. Tables merge key by key, lists and values replace the base's; `"..."` in a
/// list stands for the base's elements, `{ remove = true }` takes a key away.
///
/// A table that restates what makes it what it is (a config key's `type`, a cache's `storage`)
/// replaces the base's instead of amending it.
pub fn merge(base: &Table, over: &Table, diags: &mut Vec<Diagnostic>) -> Table {
    let mut merged = base.clone();
    for (key, node) in &over.entries {
        let at = merged.entries.iter().position(|(known, _)| known.name.node == key.name.node);
        if removes(node) {
            match at {
                Some(at) => {
                    merged.entries.remove(at);
                }
                None => diags.push(nothing_to_remove(key, node, base)),
            }
            continue;
        }
        match at.and_then(|at| merged.entries.get_mut(at)) {
            Some((known, value)) => {
                *value = lay(Some(value), node, diags);
                *known = key.clone();
            }
            None => merged.entries.push((key.clone(), lay(None, node, diags))),
        }
    }
    merged
}

/// A document without a base: reports words that need one.
pub fn alone(table: &Table, diags: &mut Vec<Diagnostic>) -> Table {
    merge(&Table::default(), table, diags)
}

fn lay(base: Option<&Node>, over: &Node, diags: &mut Vec<Diagnostic>) -> Node {
    let kind = match &over.kind {
        NodeKind::Table(table) => {
            let below = base.and_then(Node::as_table).filter(|_| !restates(table));
            NodeKind::Table(match below {
                Some(below) => merge(below, table, diags),
                None => alone(table, diags),
            })
        }
        NodeKind::Array(items) => NodeKind::Array(elements(base, items, diags)),
        other => other.clone(),
    };
    Node { span: over.span, kind }
}

fn elements(base: Option<&Node>, items: &[Node], diags: &mut Vec<Diagnostic>) -> Vec<Node> {
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        if item.as_str() != Some(INHERITED) {
            all.push(lay(None, item, diags));
            continue;
        }
        match base {
            // The base's list, or its single value where a list may also be written as one.
            Some(base) => all.extend(base.items().iter().cloned()),
            None => diags.push(
                Diagnostic::error(
                    Code::NoBase,
                    item.span,
                    "`...` stands for the base's elements, and there are none",
                )
                .help("leave it out"),
            ),
        }
    }
    all
}

fn restates(table: &Table) -> bool {
    table.get("type").is_some() || table.get("storage").is_some()
}

/// `{ remove = true }`
fn removes(node: &Node) -> bool {
    let Some(table) = node.as_table() else { return false };
    matches!(table.entries.as_slice(), [(key, Node { kind: NodeKind::Bool(true), .. })] if key.name.node == "remove")
}

fn nothing_to_remove(key: &Key, node: &Node, base: &Table) -> Diagnostic {
    let name = &key.name.node;
    let error = Diagnostic::error(
        Code::NoBase,
        key.name.span.to(node.span),
        format!("`{name}` cannot be removed: the base has no such key"),
    );
    error.did_you_mean(name, base.names())
}
