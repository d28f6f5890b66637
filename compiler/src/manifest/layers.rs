//! `[layers]` and `[layers.KIND]`.

use super::config::{is_name, value};
use super::reader::{Fields, expr, text, texts, wrong};
use super::tree::{Key, Node, NodeKind, Table};
use super::{LayerKind, LayerKindRule, Layers};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Expr, ExprKind};

/// Values every layer has; a manifest cannot give them.
const OWN: [&str; 1] = ["index"];

/// The kind of all layers where a manifest tells none apart.
pub const ONLY_KIND: &str = "layer";

/// A storage and its parameters.
type Cache = (Spanned<String>, Vec<(Spanned<String>, Expr)>);

pub(super) fn layers(
    entry: Option<&(Key, Node)>,
    whole: Span,
    diags: &mut Vec<Diagnostic>,
) -> Layers {
    let empty = Table::default();
    let (table, span) = match entry {
        Some((key, node)) => match node.as_table() {
            Some(table) => (table, key.name.span),
            None => {
                let _: Option<()> = wrong(node, key, "a table", diags);
                (&empty, node.span)
            }
        },
        None => (&empty, whole),
    };
    let mut fields = Fields::new(table, span, "[layers]");
    let count = fields.expr("count", diags).unwrap_or_else(|| default_count(span));
    let kind = fields.entry("kind").and_then(|(key, node)| kind_rule(key, node, diags));
    let donor = fields.expr("donor", diags);
    let shared_cache = fields.entry("cache").and_then(|(key, node)| cache(key, node, diags));
    // What else stands in [layers]: a table is a kind, anything else a value of every kind.
    let mut shared = Vec::new();
    let mut tables = Vec::new();
    for (key, node) in &table.entries {
        if ["count", "kind", "donor", "cache"].contains(&key.name.node.as_str()) {
            continue;
        }
        match &node.kind {
            NodeKind::Table(table) => tables.push((key, table, node.span)),
            _ => shared.extend(layer_value(key, node, diags)),
        }
    }
    let mut kinds: Vec<LayerKind> = Vec::new();
    for (key, table, _) in tables {
        kinds.extend(layer_kind(key, table, &shared_cache, &shared, diags));
    }
    if kinds.is_empty() {
        let (storage, params) =
            shared_cache.unwrap_or_else(|| (Spanned::new("none".to_owned(), span), Vec::new()));
        kinds.push(LayerKind {
            name: Spanned::new(ONLY_KIND.to_owned(), span),
            storage,
            params,
            values: shared,
        });
    }
    Layers { count, kind, donor, kinds }
}

fn default_count(span: Span) -> Expr {
    Expr { span, kind: ExprKind::Name("num_hidden_layers".to_owned()) }
}

fn kind_rule(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<LayerKindRule> {
    match &node.kind {
        NodeKind::Table(table) => {
            let mut fields = Fields::new(table, node.span, "`kind`");
            let pattern = fields.entry("pattern").map(|(key, node)| texts(node, key, diags));
            if pattern.as_ref().is_none_or(Vec::is_empty) {
                fields.missing("pattern", "kind = { pattern = [\"a\", \"a\", \"b\"] }", diags);
            }
            fields.finish(diags);
            pattern.filter(|pattern| !pattern.is_empty()).map(LayerKindRule::Pattern)
        }
        NodeKind::Str { .. } => expr(node, key, diags).map(LayerKindRule::Expr),
        _ => wrong(node, key, "an expression, or `{ pattern = [..] }`", diags),
    }
}

fn cache(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<Cache> {
    match &node.kind {
        NodeKind::Str { .. } => Some((text(node, key, diags)?, Vec::new())),
        NodeKind::Table(table) => {
            let storage = match table.entry("storage") {
                Some((key, node)) => text(node, key, diags),
                None => {
                    Fields::new(table, node.span, "`cache`").missing(
                        "storage",
                        "cache = { storage = \"sliding\", window = \"sliding_window\" }",
                        diags,
                    );
                    None
                }
            };
            let rest = table.entries.iter().filter(|(key, _)| key.name.node != "storage");
            let params =
                rest.filter_map(|(key, node)| Some((key.name.clone(), value(key, node, diags)?)));
            let params = params.collect();
            Some((storage?, params))
        }
        _ => wrong(node, key, "a storage such as \"full\", or a table with `storage`", diags),
    }
}

fn layer_value(
    key: &Key,
    node: &Node,
    diags: &mut Vec<Diagnostic>,
) -> Option<(Spanned<String>, Expr)> {
    let name = &key.name;
    if OWN.contains(&name.node.as_str()) || !is_name(&name.node) {
        let error = format!("`{}` cannot name a value of a layer", name.node);
        diags.push(Diagnostic::error(Code::WrongValue, name.span, error));
        return None;
    }
    Some((name.clone(), value(key, node, diags)?))
}

fn layer_kind(
    key: &Key,
    table: &Table,
    shared_cache: &Option<Cache>,
    shared: &[(Spanned<String>, Expr)],
    diags: &mut Vec<Diagnostic>,
) -> Option<LayerKind> {
    let name = key.name.clone();
    let mut own_cache = None;
    let mut values = shared.to_vec();
    for (key, node) in &table.entries {
        match key.name.node.as_str() {
            "cache" => own_cache = cache(key, node, diags),
            "kind" | "count" | "donor" => diags.push(
                Diagnostic::error(
                    Code::UnknownKey,
                    key.name.span,
                    format!("`{}` belongs in [layers], not in one kind", key.name.node),
                )
                .help("move it to [layers]; its expression may look at `i`"),
            ),
            _ => {
                if let Some((name, value)) = layer_value(key, node, diags) {
                    values.retain(|(known, _)| known.node != name.node);
                    values.push((name, value));
                }
            }
        }
    }
    let cache = own_cache.or_else(|| shared_cache.clone());
    if cache.is_none() && table.get("cache").is_none() {
        diags.push(
            Diagnostic::error(
                Code::NoCache,
                name.span,
                format!("layers of kind `{}` have no `cache`", name.node),
            )
            .help("write `cache = \"full\"` here or in [layers]; `cache = \"none\"` for layers that remember nothing"),
        );
    }
    // A cache that could not be read has been reported; the kind itself is known all the same.
    let nothing = || (Spanned::new("none".to_owned(), name.span), Vec::new());
    let (storage, params) = cache.unwrap_or_else(nothing);
    Some(LayerKind { name, storage, params, values })
}

/// Kinds that a rule names as words, checked against those declared.
pub(super) fn check_kinds(layers: &Layers, diags: &mut Vec<Diagnostic>) {
    let known = || layers.kinds.iter().map(|kind| kind.name.node.as_str());
    let mut check = |word: &str, span: Span| {
        if known().any(|kind| kind == word) {
            return;
        }
        let error = Diagnostic::error(
            Code::UnknownKind,
            span,
            format!("no [layers.{word}] says what such a layer is"),
        );
        diags.push(error.did_you_mean_or(word, known(), || {
            format!("declare it: [layers.{word}] cache = \"full\"")
        }));
    };
    match &layers.kind {
        Some(LayerKindRule::Pattern(words)) => {
            words.iter().for_each(|word| check(&word.node, word.span));
        }
        Some(LayerKindRule::Expr(expr)) => yielded_words(expr, &mut check),
        None => {}
    }
}

/// The string literals an expression may yield (not those it only compares with).
fn yielded_words(expr: &Expr, found: &mut impl FnMut(&str, Span)) {
    match &expr.kind {
        ExprKind::Str(word) => found(word, expr.span),
        ExprKind::If { then, otherwise, .. } => {
            let bodies = std::iter::once(then).chain(otherwise);
            for value in bodies.filter_map(|body| body.0.result.as_deref()) {
                yielded_words(value, found);
            }
        }
        _ => {}
    }
}
