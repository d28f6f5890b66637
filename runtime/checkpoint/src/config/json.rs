//! JSON as configuration files write it: Python's `Infinity` and `NaN` are let through.

use serde_json::{Value, json};

/// How tagged non-finite floats are spelled: `{"__float__": "Infinity"}`.
const TAG: &str = "__float__";

/// Parses JSON. The bare words `Infinity`, `-Infinity` and `NaN`, which Python writes, become
/// objects `{"__float__": WORD}`, the spelling of newer files.
pub(super) fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    match serde_json::from_slice(text) {
        Ok(value) => Ok(value),
        Err(error) => match tag_words(text) {
            Some(tagged) => serde_json::from_slice(&tagged).map_err(|_| error),
            None => Err(error),
        },
    }
}

fn tag_words(text: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut out = Vec::with_capacity(text.len());
    let (mut at, mut in_string, mut changed) = (0, false, false);
    while let Some(rest) = text.get(at..)
        && let Some(&byte) = rest.first()
    {
        let word = WORDS.iter().find(|w| !in_string && rest.starts_with(w.as_bytes()));
        if let Some(word) = word {
            out.extend_from_slice(json!({ TAG: word }).to_string().as_bytes());
            at += word.len();
            changed = true;
            continue;
        }
        if in_string && byte == b'\\' {
            out.extend_from_slice(rest.get(..2).unwrap_or(rest));
            at += 2;
            continue;
        }
        in_string ^= byte == b'"';
        out.push(byte);
        at += 1;
    }
    changed.then_some(out)
}

/// The number that a value is, non-finite ones included.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::Object(map) if map.len() == 1 => match map.get(TAG)?.as_str()? {
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            "NaN" => Some(f64::NAN),
            _ => None,
        },
        _ => None,
    }
}

/// A value for an error text: shortened JSON and its type.
pub(super) fn describe(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) if number(value).is_some() => "float",
        Value::Object(_) => "object",
    };
    format!("{} ({kind})", shortened(value))
}

/// A value as JSON, cut after 60 characters.
pub(super) fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
