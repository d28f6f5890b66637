//! A configuration as canonical text, its hash, and the first key in which two differ.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{BENIGN_KEYS, ConfigFile, json};

/// How weights are stored. Modules say it again one by one, and no graph depends on it.
const STORAGE_KEYS: [&str; 2] = ["quantization", "quantization_config"];

/// The first key in which a configuration is not the one that a graph was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDifference {
    /// Its dotted path.
    pub key: String,
    /// The value the graph was made for: shortened JSON and its type, or `nothing`.
    pub expected: String,
    /// The value of this configuration, told alike.
    pub found: String,
}

/// The keys of a configuration that say how a model computes, in canonical JSON.
///
/// Left out, at any depth: [`BENIGN_KEYS`] but for `model_type`, how weights are stored
/// (`quantization`, `quantization_config`), and nulls. Keys are sorted by their bytes; there is no
/// white space; a number that is whole is written as an integer (`10000.0` and `1e4` are `10000`),
/// any other as the shortest text that reads back as it.
pub fn canonical_config(config: &ConfigFile) -> String {
    let mut out = String::new();
    write(config.json(), &mut out);
    out
}

/// Which model a configuration describes: the first 16 hexadecimal digits of the SHA-256 sum of its
/// [`canonical_config`]. Two configurations have the same fingerprint when they agree in every key
/// that says how a model computes, however they spell it and however the weights are stored.
pub fn config_fingerprint(config: &ConfigFile) -> String {
    fingerprint_of(&canonical_config(config))
}

/// The fingerprint of a text of [`canonical_config`].
pub fn fingerprint_of(canonical: &str) -> String {
    let sum = Sha256::digest(canonical.as_bytes());
    sum.iter().take(8).fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The first key, by its path, in which `config` is not `expected`; `None` where their fingerprints
/// are the same. `expected` is a text of [`canonical_config`].
///
/// # Errors
/// `expected` is no JSON.
pub fn config_difference(
    expected: &str,
    config: &ConfigFile,
) -> Result<Option<ConfigDifference>, serde_json::Error> {
    let expected: Value = serde_json::from_str(expected)?;
    Ok(differ("", Some(&expected), Some(config.json())))
}

/// Whether a key is part of the canonical form.
fn meaningful(key: &str, value: &Value) -> bool {
    let told = key == "model_type" || !BENIGN_KEYS.contains(&key);
    told && !STORAGE_KEYS.contains(&key) && !value.is_null()
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => {
            let _ = match (whole(number), number.as_f64()) {
                (Some(whole), _) => write!(out, "{whole}"),
                (None, Some(float)) => write!(out, "{float:?}"),
                (None, None) => write!(out, "{number}"),
            };
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().filter(|(key, v)| meaningful(key, v)).collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (at, (key, value)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write(value, out);
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// A number's integer, where it is one; beyond 2^53 a float names no single integer.
fn whole(number: &serde_json::Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    integer.or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i128)
    })
}

fn differ(path: &str, expected: Option<&Value>, found: Option<&Value>) -> Option<ConfigDifference> {
    if let (Some(Value::Object(a)), Some(Value::Object(b))) = (expected, found) {
        let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
        keys.sort();
        keys.dedup();
        return keys.into_iter().find_map(|key| {
            let of = |map: &serde_json::Map<String, Value>| {
                map.get(key).filter(|value| meaningful(key, value)).cloned()
            };
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            differ(&inner, of(a).as_ref(), of(b).as_ref())
        });
    }
    let text = |value: Option<&Value>| {
        value.map(|value| {
            let mut out = String::new();
            write(value, &mut out);
            out
        })
    };
    let told = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), json::describe);
    (text(expected) != text(found)).then(|| ConfigDifference {
        key: path.to_owned(),
        expected: told(expected),
        found: told(found),
    })
}
