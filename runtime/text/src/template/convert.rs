//! JSON into template values: key order kept, integers and floats apart.

use minijinja::Value;
use serde_json::{Map, Value as Json};

/// The template value of a JSON document.
pub(super) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Value::from(i),
            (None, Some(u)) => Value::from(u),
            (None, None) => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(items) => Value::from(items.iter().map(value).collect::<Vec<_>>()),
        Json::Object(map) => map_value(map),
    }
}

/// The template value of a JSON object.
pub(super) fn map_value(map: &Map<String, Json>) -> Value {
    Value::from_pairs(map.iter().map(|(key, item)| (key.as_str(), value(item))))
}
