//! Iteration, length and membership.

use minijinja::{State, Value};

use super::compare::equal;
use super::kind::{Kind, kind};
use super::objects::fail_undefined;
use super::{Result, charge, type_error, type_name};

/// The items of anything that Python can iterate over; a generator is used up.
pub(in super::super) fn items(state: &State<'_, '_>, value: &Value) -> Result<Vec<Value>> {
    let items = match kind(value) {
        Kind::Undefined(_) => vec![],
        Kind::Str(s) => {
            charge(state, s.len())?;
            s.chars().map(Value::from).collect()
        }
        Kind::Bytes(bytes) => bytes.iter().map(|b| Value::from(*b)).collect(),
        Kind::List(items) | Kind::Tuple(items) => items.to_vec(),
        Kind::Dict(map) => map.keys().cloned().collect(),
        Kind::Range(range) => range.items().map(super::kind::int).collect(),
        Kind::Generator(generator) => generator.take()?,
        Kind::View(view) => view.items.clone(),
        _ => return type_error(format!("'{}' object is not iterable", type_name(value))),
    };
    charge(state, items.len() * 8)?;
    Ok(items)
}

/// Whether `items` would work, without using anything up.
pub(in super::super) fn is_iterable(value: &Value) -> bool {
    matches!(
        kind(value),
        Kind::Undefined(_)
            | Kind::Str(_)
            | Kind::Bytes(_)
            | Kind::List(_)
            | Kind::Tuple(_)
            | Kind::Dict(_)
            | Kind::Range(_)
            | Kind::Generator(_)
            | Kind::View(_)
    )
}

/// What a `for` loop runs over; with `unpack` its items are made into something to unpack.
pub(in super::super) fn looped(
    state: &State<'_, '_>,
    value: &Value,
    unpack: bool,
) -> Result<Value> {
    if !unpack && matches!(kind(value), Kind::List(_) | Kind::Tuple(_)) {
        return Ok(value.clone());
    }
    let mut items = items(state, value)?;
    if unpack {
        for item in &mut items {
            if !matches!(kind(item), Kind::List(_) | Kind::Tuple(_)) && is_iterable(item) {
                *item = Value::from(self::items(state, item)?);
            }
        }
    }
    Ok(Value::from(items))
}

/// `len(value)`; `None` where Python has no length.
pub(in super::super) fn length(value: &Value) -> Option<usize> {
    match kind(value) {
        Kind::Undefined(_) => Some(0),
        Kind::Str(s) => Some(s.chars().count()),
        Kind::Bytes(bytes) => Some(bytes.len()),
        Kind::List(items) | Kind::Tuple(items) => Some(items.len()),
        Kind::Dict(map) => Some(map.len()),
        Kind::Range(range) => Some(range.len),
        Kind::View(view) => Some(view.items.len()),
        Kind::Other if super::kind::native(value) == super::kind::Native::Loop => {
            value.get_attr("length").ok().and_then(|n| n.as_usize())
        }
        _ => None,
    }
}

/// `needle in haystack`.
pub(in super::super) fn contains(
    state: &State<'_, '_>,
    haystack: &Value,
    needle: &Value,
) -> Result<bool> {
    match kind(haystack) {
        Kind::Undefined(Some(what)) if what.forbidden => fail_undefined(Some(what)),
        Kind::Str(s) => match kind(needle) {
            Kind::Str(part) => {
                charge(state, s.len())?;
                Ok(s.contains(part))
            }
            _ => type_error(format!(
                "'in <string>' requires string as left operand, not {}",
                type_name(needle)
            )),
        },
        Kind::Dict(map) => {
            hashable(needle)?;
            Ok(super::access::lookup(map, needle).is_some())
        }
        Kind::Range(range) => Ok(match super::kind::as_int(needle) {
            Some(i) => range.items().any(|item| item == i),
            None => false,
        }),
        _ => {
            let items = items(state, haystack)?;
            Ok(items.iter().any(|item| equal(item, needle)))
        }
    }
}

/// Fails where Python has no hash: a list or a dict as a key.
pub(in super::super) fn hashable(key: &Value) -> Result<()> {
    match kind(key) {
        Kind::List(_) | Kind::Dict(_) => {
            type_error(format!("unhashable type: '{}'", type_name(key)))
        }
        Kind::Tuple(items) => items.iter().try_for_each(hashable),
        _ => Ok(()),
    }
}
