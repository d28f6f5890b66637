//! The operators `+ - * / // % **`, signs and `~`.

use minijinja::value::Tuple;
use minijinja::{State, Value};

use super::kind::{Kind, int, kind};
use super::objects::fail_undefined;
use super::{Result, charge, fail, print, type_error, type_name};
use crate::template::{FailureKind, format};

#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

fn number(value: &Value) -> Option<Number> {
    match kind(value) {
        Kind::Int(i) => Some(Number::Int(i)),
        Kind::Bool(b) => Some(Number::Int(i128::from(b))),
        Kind::Float(f) => Some(Number::Float(f)),
        _ => None,
    }
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Self::Int(i) => i as f64,
            Self::Float(f) => f,
        }
    }
}

/// `a op b`.
pub(in super::super) fn binary(
    state: &mut State<'_, '_>,
    op: &str,
    a: &Value,
    b: &Value,
) -> Result<Value> {
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return numeric(op, a, b);
    }
    match (op, kind(a), kind(b)) {
        ("%", Kind::Str(template), _) => {
            let text = format::percent::format(state, template, b)?;
            return Ok(keep_safe(a, text));
        }
        (_, Kind::Undefined(what), _) | (_, _, Kind::Undefined(what)) => fail_undefined(what)?,
        ("+", Kind::Str(left), Kind::Str(right)) => return concatenate(state, a, left, b, right),
        ("+", Kind::List(left), Kind::List(right)) => {
            charge(state, (left.len() + right.len()) * 8)?;
            return Ok(Value::from([left, right].concat()));
        }
        ("+", Kind::Tuple(left), Kind::Tuple(right)) => {
            charge(state, (left.len() + right.len()) * 8)?;
            return Ok(Value::from(Tuple::from([left, right].concat())));
        }
        ("*", _, Kind::Int(_) | Kind::Bool(_)) => {
            if let Some(value) = repeat(state, a, b)? {
                return Ok(value);
            }
        }
        ("*", Kind::Int(_) | Kind::Bool(_), _) => {
            if let Some(value) = repeat(state, b, a)? {
                return Ok(value);
            }
        }
        ("+", Kind::Str(_), _) => {
            return type_error(format!(
                "can only concatenate str (not \"{}\") to str",
                type_name(b)
            ));
        }
        _ => {}
    }
    type_error(format!(
        "unsupported operand type(s) for {op}: '{}' and '{}'",
        type_name(a),
        type_name(b)
    ))
}

/// Adds strings; next to a safe string the other is escaped, as Python's Markup does.
fn concatenate(
    state: &State<'_, '_>,
    a: &Value,
    left: &str,
    b: &Value,
    right: &str,
) -> Result<Value> {
    state.consume_fuel(((left.len() + right.len()) / 64) as u64)?;
    match (a.is_safe(), b.is_safe()) {
        (true, false) => Ok(Value::from_safe_string(left.to_owned() + &escape(right))),
        (false, true) => Ok(Value::from_safe_string(escape(left) + right)),
        (true, true) => Ok(Value::from_safe_string(left.to_owned() + right)),
        (false, false) => {
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(left);
            text.push_str(right);
            Ok(Value::from(text))
        }
    }
}

/// The text as a string that is safe if `like` is.
pub(in super::super) fn keep_safe(like: &Value, text: String) -> Value {
    if like.is_safe() { Value::from_safe_string(text) } else { Value::from(text) }
}

/// HTML escaping, as markupsafe writes it.
pub(in super::super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A sequence several times; `None` when it is not a sequence.
fn repeat(state: &State<'_, '_>, value: &Value, times: &Value) -> Result<Option<Value>> {
    let times = super::kind::as_int(times).unwrap_or(0).max(0);
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    let pay = |n: usize, unit: usize| {
        let cost = n.saturating_mul(times).saturating_mul(unit) / 64;
        state.consume_fuel(cost as u64)
    };
    Ok(match kind(value) {
        Kind::Str(s) => {
            pay(s.len(), 1)?;
            Some(keep_safe(value, s.repeat(times)))
        }
        Kind::List(items) => {
            pay(items.len(), 32)?;
            Some(Value::from(again(items, times)))
        }
        Kind::Tuple(items) => {
            pay(items.len(), 32)?;
            Some(Value::from(Tuple::from(again(items, times))))
        }
        _ => None,
    })
}

fn again(items: &[Value], times: usize) -> Vec<Value> {
    std::iter::repeat_n(items, times).flatten().cloned().collect()
}

fn numeric(op: &str, a: Number, b: Number) -> Result<Value> {
    let zero = match op {
        "/" | "//" | "%" => b.float() == 0.0,
        _ => false,
    };
    if zero {
        return fail(FailureKind::Arithmetic, "division by zero");
    }
    if op == "**" {
        return power(a, b);
    }
    if let (Number::Int(a), Number::Int(b)) = (a, b)
        && op != "/"
    {
        let result = match op {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => a.checked_div_euclid(b).map(|q| {
                // Euclid rounds towards the divisor's far side; Python rounds down.
                if b < 0 && a.rem_euclid(b) != 0 { q - 1 } else { q }
            }),
            "%" => a.checked_rem_euclid(b).map(|r| if b < 0 && r != 0 { r + b } else { r }),
            _ => None,
        };
        return match result {
            Some(i) => Ok(int(i)),
            None => too_large(),
        };
    }
    let (a, b) = (a.float(), b.float());
    Ok(Value::from(match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => floor_divide(a, b),
        _ => modulo(a, b),
    }))
}

/// Python's float modulo: the sign of the divisor.
fn modulo(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 { if (b < 0.0) == (r < 0.0) { r } else { r + b } } else { 0.0_f64.copysign(b) }
}

fn floor_divide(a: f64, b: f64) -> f64 {
    let quotient = (a - modulo(a, b)) / b;
    if quotient == 0.0 {
        return 0.0_f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

fn power(a: Number, b: Number) -> Result<Value> {
    if let (Number::Int(base), Number::Int(exponent)) = (a, b)
        && exponent >= 0
    {
        let small = match base {
            0 | 1 => Some(if exponent == 0 { 1 } else { base }),
            -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(exponent).ok().and_then(|e| base.checked_pow(e)),
        };
        return match small {
            Some(i) => Ok(int(i)),
            None => too_large(),
        };
    }
    let (a, b) = (a.float(), b.float());
    if a == 0.0 && b < 0.0 {
        return fail(FailureKind::Arithmetic, "0.0 cannot be raised to a negative power");
    }
    let result = a.powf(b);
    if result.is_nan() && !a.is_nan() && !b.is_nan() {
        return fail(FailureKind::Unsupported, "a complex number cannot be served");
    }
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return fail(FailureKind::Arithmetic, "Numerical result out of range");
    }
    Ok(Value::from(result))
}

fn too_large<T>() -> Result<T> {
    fail(FailureKind::Arithmetic, "an integer of more than 127 bits cannot be served")
}

/// `-value` or `+value`.
pub(in super::super) fn unary(op: &str, value: &Value) -> Result<Value> {
    match (number(value), op) {
        (Some(Number::Int(i)), "-") => i.checked_neg().map_or_else(too_large, |i| Ok(int(i))),
        (Some(Number::Float(f)), "-") => Ok(Value::from(-f)),
        (Some(Number::Int(i)), _) => Ok(int(i)),
        (Some(Number::Float(f)), _) => Ok(Value::from(f)),
        (None, _) => match kind(value) {
            Kind::Undefined(what) => fail_undefined(what),
            _ => type_error(format!("bad operand type for unary {op}: '{}'", type_name(value))),
        },
    }
}

/// `a ~ b ~ ...`: the texts of all, joined.
pub(in super::super) fn concat(state: &State<'_, '_>, parts: &[Value]) -> Result<Value> {
    let mut text = String::new();
    for part in parts {
        match kind(part) {
            Kind::Str(s) => {
                state.consume_fuel((s.len() / 64) as u64)?;
                text.push_str(s);
            }
            _ => text.push_str(&print::text(state, part)?),
        }
    }
    Ok(Value::from(text))
}
