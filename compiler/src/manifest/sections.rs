//! Sections kept as data for their readers in the generated code: their keys are known here, and
//! what is an expression in them is parsed here.

use super::Section;
use super::reader::{expr, unknown_key};
use super::tree::{Key, Node, NodeKind, Table};
use crate::diag::{Code, Diagnostic};

/// What a key of a section holds.
enum Holds {
    /// An expression over the config, or a literal.
    Expr,
    /// Data of the shape given.
    Data(Shape),
    /// A table with these keys.
    Keys(&'static [(&'static str, Holds)]),
    /// A list of tables with these keys.
    Tables(&'static [(&'static str, Holds)]),
    /// Nothing: the reason is told.
    Refused(&'static str),
    /// Any data.
    Any,
}

enum Shape {
    Text,
    Number,
    Switch,
    Texts,
    Ints,
}

use Holds::{Any, Data, Expr, Keys, Refused, Tables};
use Shape::{Ints, Number, Switch, Text, Texts};

/// Sections, their keys, and what these hold.
const SECTIONS: &[(&str, &[(&str, Holds)])] = &[
    (
        "capabilities",
        &[
            (
                "embeddings",
                Refused(
                    "pooled embedding support is declared by [embedding], not an embeddings flag",
                ),
            ),
            ("media", Keys(&[("input", Data(Text)), ("video", Data(Switch))])),
            ("compiled_decode", Data(Switch)),
            ("sparse_attention", Data(Switch)),
            ("hidden_layer_taps", Data(Switch)),
            ("native_draft", Keys(&[("kind", Data(Text)), ("num_draft_tokens", Expr)])),
            ("prefill", Keys(&[("bounded_workspace", Data(Switch))])),
            (
                "speculation",
                Keys(&[
                    ("adapters", Data(Switch)),
                    ("logprobs", Data(Switch)),
                    ("external_tokens", Data(Switch)),
                    ("grammar_proposals", Data(Switch)),
                ]),
            ),
            ("max_positions", Expr),
            ("experts", Keys(&[("count", Expr), ("chosen", Expr), ("when", Expr)])),
            ("training", Keys(&[("max_sequence_length", Expr)])),
            (
                "media_tokens",
                Keys(&[("image", Data(Texts)), ("audio", Data(Texts)), ("video", Data(Texts))]),
            ),
            ("sentinels", Data(Texts)),
        ],
    ),
    (
        "profile",
        &[
            ("graph", Data(Text)),
            ("id", Data(Text)),
            ("implements", Data(Text)),
            ("capabilities", Data(Texts)),
            ("generated", Keys(&[("id", Data(Text)), ("fingerprints", Data(Texts))])),
            (
                "artifacts",
                Tables(&[
                    ("id", Data(Text)),
                    ("artifact", Data(Text)),
                    ("fingerprint", Data(Text)),
                    ("fidelity", Data(Text)),
                    ("oracle", Data(Text)),
                    ("capabilities", Data(Texts)),
                    ("implementation", Data(Text)),
                    ("composition", Data(Text)),
                ]),
            ),
        ],
    ),
    (
        "method",
        &[
            ("canvas_length", Expr),
            ("min_canvas_length", Expr),
            ("max_canvas_length", Expr),
            ("steps", Expr),
            ("temperature", Keys(&[("least", Data(Number)), ("most", Data(Number))])),
            ("sampler", Data(Text)),
            ("confidence", Keys(&[("threshold", Data(Number))])),
            ("entropy", Keys(&[("bound", Data(Number))])),
            ("stop_ids", Data(Ints)),
            ("mask_id", Expr),
        ],
    ),
    (
        "chat",
        &[
            ("fallback", Data(Text)),
            ("thinking", Data(Text)),
            ("enable_thinking", Data(Switch)),
            ("no_think_temperature_cap", Data(Number)),
            ("tool_calls", Data(Text)),
            ("defaults", Any),
        ],
    ),
    (
        "embedding",
        &[("pooling", Data(Text)), ("normalise", Data(Switch)), ("terminator", Data(Text))],
    ),
    (
        "gguf",
        &[
            ("use", Data(Text)),
            ("architectures", Data(Texts)),
            ("present", Data(Texts)),
            ("absent", Data(Texts)),
            ("ignore", Data(Texts)),
            ("config", Any),
            ("tensors", Any),
        ],
    ),
];

/// The JSON Schema of a section.
pub(crate) fn section_schema(name: &str) -> serde_json::Value {
    let keys =
        SECTIONS.iter().find(|(known, _)| *known == name).map_or([].as_slice(), |(_, keys)| keys);
    table_schema(keys)
}

fn table_schema(keys: &[(&str, Holds)]) -> serde_json::Value {
    let allowed = keys.iter().filter(|(_, holds)| !matches!(holds, Refused(_)));
    let properties: serde_json::Map<String, serde_json::Value> =
        allowed.map(|(name, holds)| ((*name).to_owned(), key_schema(holds))).collect();
    serde_json::json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn key_schema(holds: &Holds) -> serde_json::Value {
    use serde_json::json;
    match holds {
        Expr => json!({ "type": ["string", "number", "boolean", "array"] }),
        Any | Refused(_) => json!({}),
        Keys(keys) => table_schema(keys),
        Tables(keys) => json!({ "type": "array", "items": table_schema(keys) }),
        Data(Text) => json!({ "type": "string" }),
        Data(Number) => json!({ "type": "number" }),
        Data(Switch) => json!({ "type": "boolean" }),
        Data(Texts) => {
            json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
        }
        Data(Ints) => {
            json!({ "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "integer" } }] })
        }
    }
}

/// Names of the sections kept as data.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|(name, _)| *name)
}

/// Reads a section; `None` when its name is none of [`names`].
pub(super) fn section(key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) -> Option<Section> {
    let (_, known) = SECTIONS.iter().find(|(name, _)| *name == key.name.node)?;
    let mut section = Section { name: key.name.clone(), value: node.to_toml(), exprs: Vec::new() };
    match node.as_table() {
        Some(table) => keys(table, &format!("[{}]", key.name.node), "", known, &mut section, diags),
        None => {
            let found = node.describe();
            let error = format!("`{}` must be a table, found {found}", key.name.node);
            diags.push(Diagnostic::error(Code::WrongValue, node.span, error));
        }
    }
    Some(section)
}

fn keys(
    table: &Table,
    place: &str,
    prefix: &str,
    known: &[(&str, Holds)],
    section: &mut Section,
    diags: &mut Vec<Diagnostic>,
) {
    for (key, node) in &table.entries {
        let name = key.name.node.as_str();
        let Some((_, holds)) = known.iter().find(|(known, _)| *known == name) else {
            let allowed = known.iter().filter(|(_, holds)| !matches!(holds, Refused(_)));
            let names: Vec<&str> = allowed.map(|(name, _)| *name).collect();
            diags.push(unknown_key(key, place, &names));
            continue;
        };
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        match holds {
            Expr => section.exprs.extend(expr(node, key, diags).map(|expr| (path, expr))),
            Any => {}
            Refused(why) => {
                diags.push(Diagnostic::error(Code::UnknownKey, key.name.span, *why));
            }
            Data(shape) => check(shape, key, node, diags),
            Tables(inner) => match &node.kind {
                NodeKind::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        let place = format!("`{path}[{at}]`");
                        match item.as_table() {
                            Some(table) => keys(table, &place, &path, inner, section, diags),
                            None => report(key, item, "a list of tables", diags),
                        }
                    }
                }
                _ => report(key, node, "a list of tables", diags),
            },
            Keys(inner) => match node.as_table() {
                Some(table) => keys(table, &format!("`{path}`"), &path, inner, section, diags),
                None => report(key, node, "a table", diags),
            },
        }
    }
}

fn check(shape: &Shape, key: &Key, node: &Node, diags: &mut Vec<Diagnostic>) {
    let all = |test: fn(&Node) -> bool| matches!(&node.kind, NodeKind::Array(items) if items.iter().all(test));
    let is_text = |node: &Node| node.as_str().is_some();
    let is_int = |node: &Node| matches!(node.kind, NodeKind::Int(_));
    let (fits, expected) = match shape {
        Text => (is_text(node), "text"),
        Number => (matches!(node.kind, NodeKind::Int(_) | NodeKind::Float(_)), "a number"),
        Switch => (matches!(node.kind, NodeKind::Bool(_)), "`true` or `false`"),
        Texts => (is_text(node) || all(is_text), "a list of texts"),
        Ints => (is_int(node) || all(is_int), "a list of integers"),
    };
    if !fits {
        report(key, node, expected, diags);
    }
}

fn report(key: &Key, node: &Node, expected: &str, diags: &mut Vec<Diagnostic>) {
    let message = format!("`{}` must be {expected}, found {}", key.name.node, node.describe());
    diags.push(Diagnostic::error(Code::WrongValue, node.span, message));
}
