//! `[method]`: how a family that denoises resolves its canvases.

use super::reader::{Fields, expr, word, wrong};
use super::tree::{Key, Node, NodeKind};
use super::{Family, Method};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::Expr;

/// `[method]` of a family that denoises.
#[derive(Debug, Clone)]
pub struct Denoising {
    /// Positions of the longest canvas.
    pub canvas_length: Expr,
    /// The key of that expression.
    pub canvas_length_key: Span,
    /// Positions that a canvas has at least; 1 where nothing is said.
    pub min_canvas_length: i64,
    /// Steps of a canvas, at least 1.
    pub steps: i64,
    /// The temperature that the last step comes near to, above 0.
    pub least: f64,
    /// The temperature of the first step, at least `least`.
    pub most: f64,
    /// What decides which positions stay.
    pub sampler: CanvasSampler,
    /// The probability from which on a position stays, within 0 to 1.
    pub threshold: Option<f64>,
    /// The entropy that the positions which stay share, at least 0.
    pub bound: Option<f64>,
    /// Ends a canvas before its last step: after so many canvases alike, below this mean entropy.
    pub stopping: Option<(i64, f64)>,
    /// Ids that end a text.
    pub stop_ids: Vec<u32>,
}

/// What decides which positions of a canvas stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanvasSampler {
    /// The probability of each.
    Confidence,
    /// The entropy of all that stay.
    Entropy,
}

/// The JSON Schema of `[method]`.
pub(crate) fn method_schema() -> serde_json::Value {
    use serde_json::json;
    let table = |properties: serde_json::Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let number = json!({ "type": "number" });
    let integer = json!({ "type": "integer" });
    table(json!({
        "canvas_length": { "description": "Positions of the longest canvas (an expression over the config)", "type": ["string", "number"] },
        "min_canvas_length": integer,
        "steps": integer,
        "temperature": table(json!({ "least": number, "most": number })),
        "sampler": { "enum": ["confidence", "entropy"] },
        "confidence": table(json!({ "threshold": number })),
        "entropy": table(json!({ "bound": number })),
        "stopping": table(json!({ "canvases": integer, "entropy": number })),
        "stop_ids": { "anyOf": [integer, { "type": "array", "items": integer }] },
    }))
}

/// Reads `[method]`, which families that denoise have and others have not.
pub(super) fn denoising(
    entry: Option<&(Key, Node)>,
    family: Option<&Family>,
    diags: &mut Vec<Diagnostic>,
) -> Option<Denoising> {
    let denoises = family.is_none_or(|family| family.method.node == Method::Denoising);
    let Some((key, node)) = entry else {
        if let Some(family) = family.filter(|_| denoises) {
            diags.push(
                Diagnostic::error(
                    Code::MissingKey,
                    family.name.span,
                    "a family that denoises needs [method]",
                )
                .label(family.method.span, "its method")
                .help(
                    "write `[method]` with `canvas_length`, `steps`, `temperature` and `sampler`",
                ),
            );
        }
        return None;
    };
    if let Some(family) = family.filter(|_| !denoises) {
        diags.push(
            Diagnostic::error(
                Code::UnknownKey,
                key.name.span,
                "[method] is for families that denoise, and this one does not",
            )
            .label(family.method.span, "its method")
            .help("leave it out (`method = { remove = true }` where it is inherited), or write `method = \"denoising\"` under [family]"),
        );
        return None;
    }
    let Some(table) = node.as_table() else {
        return wrong(node, key, "a table", diags);
    };
    let mut fields = Fields::new(table, node.span, "[method]");
    let before = diags.len();
    let canvas = fields.entry("canvas_length").map(|(key, node)| {
        // Only a number as it stands can be out of range before a config is read.
        if matches!(node.kind, NodeKind::Int(_)) {
            integer(node, key, 1, diags);
        }
        (key.name.span, expr(node, key, diags))
    });
    if canvas.is_none() {
        fields.missing("canvas_length", "canvas_length = \"canvas_length\"", diags);
    }
    let least_length = fields.entry("min_canvas_length");
    let least_length = least_length.map_or(Some(1), |(key, node)| integer(node, key, 1, diags));
    let steps = match fields.entry("steps") {
        Some((key, node)) => integer(node, key, 1, diags),
        None => {
            fields.missing("steps", "steps = 48", diags);
            None
        }
    };
    let temperature = temperature(&mut fields, diags);
    let (threshold, bound) = (
        number_of(&mut fields, "confidence", "threshold", 0.0..=1.0, "from 0 to 1", diags),
        number_of(&mut fields, "entropy", "bound", 0.0..=f64::MAX, "of at least 0", diags),
    );
    let sampler = sampler(&mut fields, threshold.is_some(), bound.is_some(), diags);
    let stopping = stopping(&mut fields, diags);
    let stop_ids = stop_ids(&mut fields, diags);
    fields.finish(diags);
    if diags.len() > before {
        return None;
    }
    let (canvas_length_key, canvas_length) = canvas?;
    let (least, most) = temperature?;
    Some(Denoising {
        canvas_length: canvas_length?,
        canvas_length_key,
        min_canvas_length: least_length?,
        steps: steps?,
        least,
        most,
        sampler: sampler?,
        threshold: threshold.flatten(),
        bound: bound.flatten(),
        stopping,
        stop_ids,
    })
}

/// `temperature = { least = 0.4, most = 0.8 }`
fn temperature(fields: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> Option<(f64, f64)> {
    const EXAMPLE: &str = "temperature = { least = 0.4, most = 0.8 }";
    if fields.get("temperature").is_none() {
        fields.missing("temperature", EXAMPLE, diags);
        return None;
    }
    let (table, span) = fields.table("temperature", diags)?;
    let mut own = Fields::new(table, span, "`temperature`");
    let mut one = |name: &'static str, diags: &mut Vec<Diagnostic>| {
        let Some((key, node)) = own.entry(name) else {
            own.missing(name, EXAMPLE, diags);
            return None;
        };
        // Logits are divided by it.
        number(node, key, f64::MIN_POSITIVE..=f64::MAX, "above 0", diags)
            .map(|value| (value, node.span))
    };
    let (least, most) = (one("least", diags), one("most", diags));
    own.finish(diags);
    let ((least, at), (most, most_at)) = (least?, most?);
    if least > most {
        diags.push(
            Diagnostic::error(
                Code::WrongValue,
                at,
                format!("`least` must be at most `most`, found {least:?} above {most:?}"),
            )
            .label(most_at, "`most`"),
        );
        return None;
    }
    Some((least, most))
}

/// `sampler`, and that what it goes by is said.
fn sampler(
    fields: &mut Fields<'_>,
    threshold: bool,
    bound: bool,
    diags: &mut Vec<Diagnostic>,
) -> Option<CanvasSampler> {
    let words = [("confidence", CanvasSampler::Confidence), ("entropy", CanvasSampler::Entropy)];
    if fields.get("sampler").is_none() {
        fields.missing("sampler", "sampler = \"confidence\"", diags);
        return None;
    }
    let text = fields.text("sampler", diags)?;
    let sampler = word(&text, "sampler", &words, diags)?;
    let (said, name, example) = match sampler {
        CanvasSampler::Confidence => (threshold, "confidence", "confidence = { threshold = 0.9 }"),
        CanvasSampler::Entropy => (bound, "entropy", "entropy = { bound = 0.1 }"),
    };
    if !said {
        fields.missing(name, example, diags);
        return None;
    }
    Some(sampler)
}

/// The one number of a table: outside `None` without the table, inside `None` after a report.
fn number_of(
    fields: &mut Fields<'_>,
    table: &'static str,
    name: &'static str,
    range: std::ops::RangeInclusive<f64>,
    shown: &str,
    diags: &mut Vec<Diagnostic>,
) -> Option<Option<f64>> {
    fields.get(table)?;
    let Some((inner, span)) = fields.table(table, diags) else { return Some(None) };
    let mut own = Fields::new(inner, span, format!("`{table}`"));
    let found = match own.entry(name) {
        Some((key, node)) => number(node, key, range, shown, diags),
        None => {
            own.missing(name, &format!("{table} = {{ {name} = 0.5 }}"), diags);
            None
        }
    };
    own.finish(diags);
    Some(found)
}

/// `stopping = { canvases = 2, entropy = 0.1 }`
fn stopping(fields: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> Option<(i64, f64)> {
    const EXAMPLE: &str = "stopping = { canvases = 2, entropy = 0.1 }";
    let (table, span) = fields.table("stopping", diags)?;
    let mut own = Fields::new(table, span, "`stopping`");
    let canvases = match own.entry("canvases") {
        Some((key, node)) => integer(node, key, 1, diags),
        None => {
            own.missing("canvases", EXAMPLE, diags);
            None
        }
    };
    let entropy = match own.entry("entropy") {
        Some((key, node)) => number(node, key, 0.0..=f64::MAX, "of at least 0", diags),
        None => {
            own.missing("entropy", EXAMPLE, diags);
            None
        }
    };
    own.finish(diags);
    Some((canvases?, entropy?))
}

/// `stop_ids = [1, 106]`
fn stop_ids(fields: &mut Fields<'_>, diags: &mut Vec<Diagnostic>) -> Vec<u32> {
    let Some((key, node)) = fields.entry("stop_ids") else { return Vec::new() };
    let mut ids = Vec::new();
    for item in node.items() {
        match item.kind {
            NodeKind::Int(id) if (0..=i64::from(i32::MAX)).contains(&id) => ids.push(id as u32),
            _ => {
                let expected = "an id from 0 to 2147483647, or a list of ids";
                let _: Option<()> = wrong(item, key, expected, diags);
            }
        }
    }
    ids
}

/// An integer from `least` to the largest of 31 bits.
fn integer(node: &Node, key: &Key, least: i64, diags: &mut Vec<Diagnostic>) -> Option<i64> {
    match node.kind {
        NodeKind::Int(value) if (least..=i64::from(i32::MAX)).contains(&value) => Some(value),
        _ => wrong(node, key, &format!("an integer of at least {least}"), diags),
    }
}

fn number(
    node: &Node,
    key: &Key,
    range: std::ops::RangeInclusive<f64>,
    shown: &str,
    diags: &mut Vec<Diagnostic>,
) -> Option<f64> {
    let value = match node.kind {
        NodeKind::Int(value) => value as f64,
        NodeKind::Float(value) => value,
        _ => return wrong(node, key, "a number", diags),
    };
    // Not a number lies in no range.
    if range.contains(&value) {
        return Some(value);
    }
    wrong(node, key, &format!("a number {shown}"), diags)
}
