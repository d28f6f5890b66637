//! Values of expressions.

use std::fmt;

use specc_checkpoint::config::RopeConfig;
use specc_checkpoint::scalar;

/// A value known once a config is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Absent or null.
    None,
    /// A 64-bit integer.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A switch.
    Bool(bool),
    /// A word or text.
    Str(String),
    /// Several values.
    List(Vec<Value>),
    /// How positions are rotated in.
    Rope(Box<RopeConfig>),
    /// Data whose type the config decides.
    Json(serde_json::Value),
}

impl Value {
    /// Its type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "none",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Bool(_) => "a switch",
            Value::Str(_) => "a word",
            Value::List(_) => "a list",
            Value::Rope(_) => "a rope",
            Value::Json(_) => "json",
        }
    }

    /// Whether it counts as true: none and 0 do not.
    pub fn truth(&self) -> bool {
        match self {
            Value::None => false,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Bool(value) => *value,
            Value::Json(value) => !value.is_null(),
            Value::Str(_) | Value::List(_) | Value::Rope(_) => true,
        }
    }

    /// Json that holds a number, word or switch as that; everything else as it is.
    pub(super) fn settled(self) -> Value {
        match &self {
            Value::Json(json) => match json {
                serde_json::Value::Null => Value::None,
                serde_json::Value::Bool(value) => Value::Bool(*value),
                serde_json::Value::String(text) => Value::Str(text.clone()),
                serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(value), _) => Value::Int(value),
                    (None, Some(value)) => Value::Float(value),
                    _ => self,
                },
                _ => self,
            },
            _ => self,
        }
    }

    /// As a float, where it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// As a float, where it or the json in it is a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Json(json) => json.as_f64(),
            other => other.as_f64(),
        }
    }

    /// As an integer, where it or the json in it is one.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Json(json) => json.as_i64(),
            _ => None,
        }
    }

    /// A number with its own type; json stands for an integer, as in generated code.
    pub(super) fn integer_or_float(&self) -> Result<Value, String> {
        match self {
            Value::Int(_) | Value::Float(_) => Ok(self.clone()),
            Value::Json(json) => {
                scalar::json_int(json).map(Value::Int).map_err(|error| error.to_string())
            }
            other => Err(format!("expected a number, found {}", other.kind())),
        }
    }

    /// As json, where it has such a form.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Value::None => serde_json::Value::Null,
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Bool(value) => (*value).into(),
            Value::Str(value) => value.as_str().into(),
            Value::List(items) => items.iter().map(Value::json).collect::<Option<Vec<_>>>()?.into(),
            Value::Json(value) => value.clone(),
            Value::Rope(_) => return None,
        })
    }

    /// Equal as numbers, words, switches or lists; an integer equals a float of its value.
    pub(super) fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Json(_), _) | (_, Value::Json(_)) => match (self.json(), other.json()) {
                (Some(a), Some(b)) => scalar::json_is(&a, &b),
                _ => false,
            },
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (Value::Int(a), Value::Int(b)) => a == b,
            (a, b) => match (a.as_f64(), b.as_f64()) {
                (Some(x), Some(y)) => x == y,
                _ => a == b,
            },
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("none"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Str(value) => write!(f, "{value:?}"),
            Value::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Rope(rope) => {
                match rope.theta {
                    Some(theta) => write!(f, "rope(theta = {theta:?}")?,
                    None => f.write_str("rope(no theta")?,
                }
                let scaling = format!("{:?}", rope.scaling);
                let name = scaling.split([' ', '{']).next().unwrap_or("Default");
                write!(f, ", {})", name.to_lowercase())
            }
            Value::Json(value) => write!(f, "{value}"),
        }
    }
}
