//! `config.json` from a file's metadata.

use serde_json::{Map, Value};

use super::error::{GgufError, Result};
use super::map::{GgufMap, GgufValue};
use super::reader::{Gguf, Metadata};
use super::rope;

/// Full names of metadata keys.
pub(super) struct Keys {
    architecture: String,
}

impl Keys {
    pub(super) fn new(architecture: &str) -> Self {
        Self { architecture: architecture.to_owned() }
    }

    /// A key with its architecture before it, but for those that belong to none.
    pub(super) fn full(&self, key: &str) -> String {
        if key.starts_with("general.") || key.starts_with("tokenizer.") {
            return key.to_owned();
        }
        format!("{}.{key}", self.architecture)
    }

    /// An integer under the first of these keys that is present: one number, or equal ones.
    pub(super) fn int(&self, file: &Gguf, keys: &[&str]) -> Result<Option<i64>> {
        for key in keys.iter().map(|key| self.full(key)) {
            if let Some(value) = file.get(&key) {
                let value = one(file, &key, value)?;
                let wrong =
                    || file.metadata_error(&key, format!("expected an integer, found {value:?}"));
                return value.as_int().ok_or_else(wrong).map(Some);
            }
        }
        Ok(None)
    }
}

/// The value itself, or the one that all elements of an array are equal to.
fn one<'a>(file: &Gguf, key: &str, value: &'a Metadata) -> Result<&'a Metadata> {
    let Metadata::Array(values) = value else { return Ok(value) };
    match values.split_first() {
        Some((first, rest)) if rest.iter().all(|v| v == first) => Ok(first),
        _ => Err(file.metadata_error(key, "a list whose elements differ, expected one value")),
    }
}

/// A metadata number as JSON; a float32 as the shortest decimal that reads back to it.
pub(super) fn number(file: &Gguf, key: &str, value: &Metadata) -> Result<Value> {
    match json(file, key, value)? {
        number @ Value::Number(_) => Ok(number),
        _ => Err(file.metadata_error(key, format!("expected a number, found {}", value.kind()))),
    }
}

/// A metadata value as JSON.
fn json(file: &Gguf, key: &str, value: &Metadata) -> Result<Value> {
    let float = |x: f64| {
        serde_json::Number::from_f64(x)
            .map(Value::Number)
            .ok_or_else(|| file.metadata_error(key, format!("expected a number, found {x}")))
    };
    Ok(match value {
        Metadata::Unsigned(n) => (*n).into(),
        Metadata::Signed(n) => (*n).into(),
        // Through text: 1e-5 stays 1e-5 and does not become 9.99999974737875e-6.
        Metadata::Float(x) => float(x.to_string().parse().unwrap_or(f64::from(*x)))?,
        Metadata::Double(x) => float(*x)?,
        Metadata::Bool(b) => (*b).into(),
        Metadata::Text(s) => s.clone().into(),
        Metadata::Array(values) => {
            values.iter().map(|v| json(file, key, v)).collect::<Result<Vec<_>>>()?.into()
        }
    })
}

/// What `config.json` says about the architecture.
///
/// # Errors
/// A key that the map needs is missing or of another type.
pub(super) fn model(file: &mut Gguf, keys: &Keys, map: &GgufMap) -> Result<Map<String, Value>> {
    let mut config = Map::new();
    for (path, value) in map.config {
        let found = match value {
            GgufValue::Json(text) => Some(literal(keys, text)?),
            GgufValue::HasTensor(name) => Some(file.tensor(name).is_some().into()),
            GgufValue::LacksTensor(name) => Some(file.tensor(name).is_none().into()),
            GgufValue::Dim { tensor, axis } => Some(dimension(file, tensor, *axis)?.into()),
            GgufValue::RopeScaling => rope::scaling(file, keys)?.filter(|v| !v.is_null()),
            GgufValue::Key { keys: names, default, optional } => {
                match (lookup(file, keys, names)?, default) {
                    (Some(found), _) => Some(found),
                    (None, Some(text)) => Some(literal(keys, text)?),
                    (None, None) if *optional => None,
                    (None, None) => {
                        let key = names.first().map_or_else(String::new, |key| keys.full(key));
                        return Err(file.metadata_error(
                            &key,
                            format!("missing; `{path}` of the config comes from it"),
                        ));
                    }
                }
            }
        };
        if let Some(found) = found {
            put(&mut config, path, found);
        }
    }
    Ok(config)
}

fn lookup(file: &Gguf, keys: &Keys, names: &[&str]) -> Result<Option<Value>> {
    for key in names.iter().map(|name| keys.full(name)) {
        if let Some(value) = file.get(&key) {
            return json(file, &key, value).map(Some);
        }
    }
    Ok(None)
}

fn dimension(file: &Gguf, tensor: &str, axis: usize) -> Result<u64> {
    let Some(info) = file.tensor(tensor) else {
        return Err(file.tensor_error(tensor, "missing"));
    };
    info.shape.get(axis).copied().ok_or_else(|| {
        file.tensor_error(
            tensor,
            format!("expected more than {axis} dimensions, found {:?}", info.shape),
        )
    })
}

fn literal(keys: &Keys, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|e| GgufError::Map {
        architecture: keys.architecture.clone(),
        what: format!("`{text}` is not JSON: {e}"),
    })
}

/// Sets a dotted path, making objects on the way.
fn put(config: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            config.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = config.entry(head).or_insert_with(|| Map::new().into());
            if !inner.is_object() {
                *inner = Map::new().into();
            }
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}
