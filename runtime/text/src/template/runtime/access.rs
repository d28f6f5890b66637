//! `value.name` and `value[key]`, with Jinja2's fallbacks and the sandbox's refusals.

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::Tuple;

use super::kind::{Kind, Native, as_int, kind, native};
use super::objects::{BoundMethod, UndefinedValue, fail_undefined};
use super::{Result, type_name};
use crate::template::methods;

/// The value under a key; numbers are equal across types, as in Python.
pub(in super::super) fn lookup(map: &IndexMap<Value, Value>, key: &Value) -> Option<Value> {
    if let Some(value) = map.get(key) {
        return Some(value.clone());
    }
    let other = match kind(key) {
        Kind::Bool(b) => Value::from(i64::from(b)),
        Kind::Int(i @ 0..=1) => return map.get(&Value::from(i == 1)).cloned(),
        Kind::Float(f) if f.fract() == 0.0 && f.abs() < 1e15 => Value::from(f as i64),
        _ => return None,
    };
    map.get(&other).cloned()
}

/// `value.name`: the attribute, else the item.
///
/// # Errors
/// When the value is undefined. What is missing or forbidden is an undefined value.
pub(in super::super) fn attribute(value: &Value, name: &str) -> Result<Value> {
    if let Kind::Undefined(what) = kind(value) {
        return fail_undefined(what);
    }
    if let Some(found) = own_attribute(value, name) {
        return Ok(found);
    }
    if let Kind::Dict(map) = kind(value)
        && let Some(found) = map.get(&Value::from(name))
    {
        return Ok(found.clone());
    }
    Ok(missing_attribute(value, name))
}

/// `value[key]`: the item, else, for a string, the attribute.
///
/// # Errors
/// When the value is undefined. What is missing or forbidden is an undefined value.
pub(in super::super) fn item(value: &Value, key: &Value) -> Result<Value> {
    let found = match kind(value) {
        Kind::Undefined(what) => return fail_undefined(what),
        Kind::Dict(map) => lookup(map, key),
        Kind::List(items) | Kind::Tuple(items) => {
            index(items.len(), key).and_then(|i| items.get(i).cloned())
        }
        Kind::Str(s) => as_int(key).and_then(|i| {
            let found = if i < 0 {
                s.chars().rev().nth(usize::try_from(-(i + 1)).ok()?)
            } else {
                s.chars().nth(usize::try_from(i).ok()?)
            };
            found.map(Value::from)
        }),
        Kind::Bytes(bytes) => {
            index(bytes.len(), key).and_then(|i| bytes.get(i)).map(|b| Value::from(*b))
        }
        Kind::Range(range) => {
            index(range.len, key).map(|i| super::kind::int(range.start + i as i128 * range.step))
        }
        _ => None,
    };
    if let Some(found) = found {
        return Ok(found);
    }
    match kind(key) {
        Kind::Str(name) => {
            Ok(own_attribute(value, name).unwrap_or_else(|| missing_attribute(value, name)))
        }
        _ => Ok(UndefinedValue::missing(format!(
            "{} object has no element {}",
            type_name(value),
            short(key)
        ))),
    }
}

/// The attribute, and never an item; what `attr` gives.
pub(in super::super) fn strict_attribute(value: &Value, name: &str) -> Result<Value> {
    if let Kind::Undefined(what) = kind(value) {
        return fail_undefined(what);
    }
    Ok(own_attribute(value, name).unwrap_or_else(|| missing_attribute(value, name)))
}

/// What Python's `getattr` finds: a method, or a value of an object of ours.
fn own_attribute(value: &Value, name: &str) -> Option<Value> {
    if name.starts_with("__") && name.ends_with("__") && name.len() > 4 {
        return Some(forbidden(value, name));
    }
    match kind(value) {
        Kind::Namespace(namespace) => {
            let found = namespace.get(name)?;
            Some(if name.starts_with('_') { forbidden(value, name) } else { found })
        }
        Kind::Function(function) => match name {
            "current" => function.cycle(name),
            "next" | "reset" if function.cycle("current").is_some() => Some(bound(value, name)),
            _ => None,
        },
        Kind::Other => match (native(value), name) {
            (Native::Loop, "cycle" | "changed") => Some(bound(value, name)),
            (Native::Loop, "previtem" | "nextitem") => {
                let found = value.get_attr(name).ok()?;
                let message = match name {
                    "previtem" => "there is no previous item",
                    _ => "there is no next item",
                };
                Some(if found.is_undefined() { UndefinedValue::missing(message) } else { found })
            }
            (Native::Macro, "arguments") => {
                let names = value.get_attr(name).ok()?.try_iter().ok()?;
                Some(Value::from(Tuple::from(names.collect::<Vec<_>>())))
            }
            (Native::Loop | Native::Macro, _) => {
                value.get_attr(name).ok().filter(|found| !found.is_undefined())
            }
            _ => None,
        },
        Kind::Int(_) if matches!(name, "real" | "numerator") => Some(value.clone()),
        Kind::Int(_) if name == "imag" => Some(Value::from(0)),
        Kind::Int(_) if name == "denominator" => Some(Value::from(1)),
        Kind::Float(_) if name == "real" => Some(value.clone()),
        Kind::Float(_) if name == "imag" => Some(Value::from(0.0)),
        Kind::Tuple([grouper, list])
            if value.downcast_object_ref::<super::objects::Group>().is_some() =>
        {
            match name {
                "grouper" => Some(grouper.clone()),
                "list" => Some(list.clone()),
                _ => None,
            }
        }
        _ if methods::forbidden(value, name) => Some(forbidden(value, name)),
        _ if methods::exists(value, name) => Some(bound(value, name)),
        _ => None,
    }
}

fn bound(value: &Value, name: &str) -> Value {
    Value::from_object(BoundMethod { receiver: value.clone(), name: name.to_owned() })
}

fn forbidden(value: &Value, name: &str) -> Value {
    UndefinedValue::forbidden(format!(
        "access to attribute '{name}' of '{}' object is unsafe.",
        type_name(value)
    ))
}

fn missing_attribute(value: &Value, name: &str) -> Value {
    UndefinedValue::missing(format!("'{} object' has no attribute '{name}'", type_name(value)))
}

/// An index from the front, from one that may count from the back.
fn index(len: usize, key: &Value) -> Option<usize> {
    let i = as_int(key)?;
    let i = if i < 0 { i.checked_add(len as i128)? } else { i };
    usize::try_from(i).ok().filter(|i| *i < len)
}

fn short(key: &Value) -> String {
    key.to_string().chars().take(40).collect()
}
