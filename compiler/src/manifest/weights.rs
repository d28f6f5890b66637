//! `[weights]`: prefixes, drops and maps.

use super::reader::{Fields, expr, text, texts, word, wrong};
use super::tree::{Key, Node, NodeKind, Table};
use super::{WeightDrop, WeightMap, Weights};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Call, Expr, ExprKind};

pub(super) fn weights(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Weights {
    let mut fields = Fields::new(table, span, "[weights]");
    let mut weights = Weights::default();
    if let Some((key, node)) = fields.entry("prefixes") {
        for item in node.items() {
            weights.prefixes.extend(prefix(key, item, diags));
        }
    }
    if let Some((key, node)) = fields.entry("drop") {
        for item in node.items() {
            weights.drops.extend(drop_rule(key, item, diags));
        }
    }
    if let Some((key, node)) = fields.entry("map") {
        for item in node.items() {
            weights.maps.extend(map(key, item, diags));
        }
    }
    fields.finish(diags);
    weights
}

fn prefix(
    key: &Key,
    node: &Node,
    diags: &mut Vec<Diagnostic>,
) -> Option<(Spanned<String>, String)> {
    let shape = ("a prefix", "from", r#"{ from = "model.language_model.", to = "model." }"#);
    let (from, to) = text_or_table(key, node, shape, diags, |fields, diags| {
        fields.text("to", diags).map(|to| to.node)
    })?;
    Some((from, to.unwrap_or_default()))
}

fn drop_rule(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<WeightDrop> {
    let shape = ("a drop", "name", r#"{ name = "lm_head.*", when = "tie_word_embeddings" }"#);
    let (pattern, when) =
        text_or_table(key, node, shape, diags, |fields, diags| fields.expr("when", diags))?;
    Some(WeightDrop { pattern, when })
}

/// A text that stands alone or, in a table with more, under a key of its own.
fn text_or_table<T>(
    key: &Key,
    node: &Node,
    (what, name, example): (&str, &'static str, &str),
    diags: &mut Vec<Diagnostic>,
    more: impl FnOnce(&mut Fields<'_>, &mut Vec<Diagnostic>) -> Option<T>,
) -> Option<(Spanned<String>, Option<T>)> {
    match &node.kind {
        NodeKind::Str { .. } => Some((text(node, key, diags)?, None)),
        NodeKind::Table(table) => {
            let mut fields = Fields::new(table, node.span, what);
            let found = fields.text(name, diags);
            let more = more(&mut fields, diags);
            if fields.get(name).is_none() {
                fields.missing(name, example, diags);
            }
            fields.finish(diags);
            Some((found?, more))
        }
        _ => wrong(node, key, &format!("texts, or tables such as `{example}`"), diags),
    }
}

fn map(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<WeightMap> {
    let NodeKind::Table(table) = &node.kind else {
        return wrong(node, key, "tables `{ from = \"..\", to = \"..\" }`", diags);
    };
    let mut fields = Fields::new(table, node.span, "a weight map");
    let mut names = |name: &'static str, diags: &mut Vec<Diagnostic>| match fields.entry(name) {
        Some((key, node)) => texts(node, key, diags),
        None => {
            fields.missing(name, "{ from = \"a.weight\", to = \"b.weight\" }", diags);
            Vec::new()
        }
    };
    let from = names("from", diags);
    let to = names("to", diags);
    let mut steps = Vec::new();
    let mut broken = false;
    if let Some((key, node)) = fields.entry("do") {
        match expr(node, key, diags) {
            Some(expr) => pipeline(expr, &mut steps, diags),
            None => broken = true,
        }
    }
    let when = fields.expr("when", diags);
    let quantised =
        fields.table("quantised", diags).and_then(|(table, span)| quantised(table, span, diags));
    fields.finish(diags);
    if broken || from.is_empty() || to.is_empty() {
        return None;
    }
    Some(WeightMap { from, to, steps, when, quantised, span: node.span })
}

/// `stack(e) |> transpose(0, 2, 1)` was parsed into `transpose(stack(e), 0, 2, 1)`: back into steps.
fn pipeline(expr: Expr, steps: &mut Vec<Expr>, diags: &mut Vec<Diagnostic>) {
    let mut rest = Some(expr);
    let start = steps.len();
    while let Some(expr) = rest.take() {
        let Expr { span, kind } = expr;
        let ExprKind::Call(Call { callee, mut args }) = kind else {
            diags.push(
                Diagnostic::error(Code::WeightStep, span, "a step of a weight map is a call")
                    .help("write `stack(e)`, `transpose(0, 2, 1)`, and `|>` between steps"),
            );
            return;
        };
        // Piped steps come first among the arguments; no step takes a call as its own first argument.
        let piped = args.first().is_some_and(|arg| arg.name.is_none() && is_step(&arg.value));
        if piped {
            rest = Some(args.remove(0).value);
        }
        let span = if piped { callee.span.to(span_end(span)) } else { span };
        steps.push(Expr { span, kind: ExprKind::Call(Call { callee, args }) });
    }
    // The outermost call is the last step.
    steps.get_mut(start..).unwrap_or_default().reverse();
}

fn span_end(span: Span) -> Span {
    Span { start: span.end, ..span }
}

fn is_step(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call(call) if crate::weights::STEPS.iter().any(|(name, _)| *name == call.callee.node))
}

fn quantised(table: &Table, span: Span, diags: &mut Vec<Diagnostic>) -> Option<(i64, i64, String)> {
    const MODES: [(&str, &str); 4] =
        [("affine", "affine"), ("mxfp4", "mxfp4"), ("mxfp8", "mxfp8"), ("nvfp4", "nvfp4")];
    let mut fields = Fields::new(table, span, "`quantised`");
    let bits = fields.int("bits", diags);
    let group_size = fields.int("group_size", diags);
    let mode = fields.text("mode", diags);
    let given = mode.is_some();
    let mode = mode.and_then(|mode| word(&mode, "mode", &MODES, diags));
    let mode = if given { mode } else { Some("affine") };
    for (name, value, good) in [
        ("bits", bits, [2, 3, 4, 5, 6, 8].as_slice()),
        ("group_size", group_size, &[16, 32, 64, 128]),
    ] {
        match value {
            None if fields.get(name).is_none() => {
                fields.missing(name, "quantised = { bits = 4, group_size = 32 }", diags);
            }
            Some(value) if !good.contains(&value) => diags.push(Diagnostic::error(
                Code::WrongValue,
                fields.get(name).map_or(span, |node| node.span),
                format!("`{name}` must be one of {good:?}, found {value}"),
            )),
            _ => {}
        }
    }
    fields.finish(diags);
    Some((bits?, group_size?, mode?.to_owned()))
}
