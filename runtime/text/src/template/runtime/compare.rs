//! Equality and order.

use std::cmp::Ordering;

use minijinja::{State, Value};

use super::kind::{Kind, kind};
use super::objects::fail_undefined;
use super::{Result, iterate, type_error, type_name};

/// `a == b`: numbers by value across types, containers by their items.
pub(in super::super) fn equal(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => return a.compare(b) == Some(Ordering::Equal),
        (None, None) => {}
        _ => return false,
    }
    match (kind(a), kind(b)) {
        (Kind::Undefined(_), Kind::Undefined(_)) | (Kind::None, Kind::None) => true,
        (Kind::Str(a), Kind::Str(b)) => a == b,
        (Kind::Bytes(a), Kind::Bytes(b)) => a == b,
        (Kind::List(a), Kind::List(b)) | (Kind::Tuple(a), Kind::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Kind::Dict(a), Kind::Dict(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| {
                    super::access::lookup(b, key).is_some_and(|other| equal(value, &other))
                })
        }
        (Kind::Range(a), Kind::Range(b)) => {
            a.len == b.len
                && (a.len == 0 || (a.start == b.start && (a.len == 1 || a.step == b.step)))
        }
        (Kind::View(a), Kind::View(b)) => std::ptr::eq(a, b),
        _ => same(a, b),
    }
}

/// `a is b`, as far as values have an identity here.
pub(in super::super) fn same(a: &Value, b: &Value) -> bool {
    match (kind(a), kind(b)) {
        (Kind::None, Kind::None) => true,
        (Kind::Bool(a), Kind::Bool(b)) => a == b,
        (Kind::Int(a), Kind::Int(b)) => a == b,
        (Kind::Str(a), Kind::Str(b)) => a == b,
        (Kind::List(a), Kind::List(b)) | (Kind::Tuple(a), Kind::Tuple(b)) => std::ptr::eq(a, b),
        (Kind::Dict(a), Kind::Dict(b)) => std::ptr::eq(a, b),
        (Kind::Generator(a), Kind::Generator(b)) => std::ptr::eq(a, b),
        (Kind::Namespace(a), Kind::Namespace(b)) => std::ptr::eq(a, b),
        (Kind::Function(a), Kind::Function(b)) => std::ptr::eq(a, b),
        (Kind::Other, Kind::Other) => a == b,
        _ => false,
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Int(a), Self::Float(b)) => int_with_float(a, b),
            (Self::Float(a), Self::Int(b)) => int_with_float(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares exactly, not through rounding.
fn int_with_float(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    if b >= i128::MAX as f64 {
        return Some(Ordering::Less);
    }
    if b < i128::MIN as f64 {
        return Some(Ordering::Greater);
    }
    let whole = b.floor();
    Some(a.cmp(&(whole as i128)).then(if b > whole { Ordering::Less } else { Ordering::Equal }))
}

fn number(value: &Value) -> Option<Number> {
    match kind(value) {
        Kind::Int(i) => Some(Number::Int(i)),
        Kind::Bool(b) => Some(Number::Int(i128::from(b))),
        Kind::Float(f) => Some(Number::Float(f)),
        _ => None,
    }
}

/// The order of two values; `None` where a NaN is in it.
///
/// # Errors
/// Python's TypeError for types without an order between them.
pub(in super::super) fn order(a: &Value, b: &Value, op: &str) -> Result<Option<Ordering>> {
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return Ok(a.compare(b));
    }
    match (kind(a), kind(b)) {
        (Kind::Undefined(what), _) | (_, Kind::Undefined(what)) => fail_undefined(what),
        (Kind::Str(a), Kind::Str(b)) => Ok(Some(a.cmp(b))),
        (Kind::Bytes(a), Kind::Bytes(b)) => Ok(Some(a.cmp(b))),
        (Kind::List(a), Kind::List(b)) | (Kind::Tuple(a), Kind::Tuple(b)) => {
            for (a, b) in a.iter().zip(b) {
                if !equal(a, b) {
                    return order(a, b, op);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        _ => type_error(format!(
            "'{op}' not supported between instances of '{}' and '{}'",
            type_name(a),
            type_name(b)
        )),
    }
}

/// One comparison.
pub(in super::super) fn compare(
    state: &State<'_, '_>,
    a: &Value,
    op: &str,
    b: &Value,
) -> Result<bool> {
    let ordered = |wanted: fn(Ordering) -> bool| Ok(order(a, b, op)?.is_some_and(wanted));
    match op {
        "==" => Ok(equal(a, b)),
        "!=" => Ok(!equal(a, b)),
        "<" => ordered(Ordering::is_lt),
        "<=" => ordered(Ordering::is_le),
        ">" => ordered(Ordering::is_gt),
        ">=" => ordered(Ordering::is_ge),
        "in" => iterate::contains(state, b, a),
        "not in" => Ok(!iterate::contains(state, b, a)?),
        _ => type_error(format!("unknown comparison {op}")),
    }
}

/// Sorts (key, value) pairs stably by key, as Python's `sorted`; also keys without a total order.
pub(in super::super) fn sort_by_keys(
    state: &State<'_, '_>,
    keyed: Vec<(Value, Value)>,
    reverse: bool,
) -> Result<Vec<(Value, Value)>> {
    let n = keyed.len();
    super::charge(state, n * (usize::BITS - n.leading_zeros()) as usize * 8)?;
    let mut runs: Vec<Vec<(Value, Value)>> = keyed.into_iter().map(|pair| vec![pair]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            merged.push(match rest.next() {
                Some(right) => merge(left, right, reverse)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge(
    left: Vec<(Value, Value)>,
    right: Vec<(Value, Value)>,
    reverse: bool,
) -> Result<Vec<(Value, Value)>> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let ordering = if reverse { order(a, b, "<")? } else { order(b, a, "<")? };
        let take_right = ordering == Some(Ordering::Less);
        out.extend(if take_right { right.next() } else { left.next() });
    }
    out.extend(left);
    out.extend(right);
    Ok(out)
}
