//! Values of expressions over a config.
//!
//! The compiler's interpreter, its folding and generated code all call these, so that `specc check
//! --model` and a load say the same of the same config. Integers are checked. Of floats, `+ - *` are
//! those of IEEE 754; the other operations have a finite value or none.

use std::ops::Range;

use serde_json::Value;

/// An operation that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoValue(String);

impl NoValue {
    /// One that says `why`.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

fn overflow(a: i64, operator: &str, b: i64) -> NoValue {
    NoValue(format!("{a} {operator} {b} overflows"))
}

/// `a + b`
///
/// # Errors
/// On overflow.
pub fn plus(a: i64, b: i64) -> Result<i64, NoValue> {
    a.checked_add(b).ok_or_else(|| overflow(a, "+", b))
}

/// `a - b`
///
/// # Errors
/// On overflow.
pub fn minus(a: i64, b: i64) -> Result<i64, NoValue> {
    a.checked_sub(b).ok_or_else(|| overflow(a, "-", b))
}

/// `a * b`
///
/// # Errors
/// On overflow.
pub fn times(a: i64, b: i64) -> Result<i64, NoValue> {
    a.checked_mul(b).ok_or_else(|| overflow(a, "*", b))
}

/// `-a`
///
/// # Errors
/// On overflow.
pub fn int_neg(a: i64) -> Result<i64, NoValue> {
    a.checked_neg().ok_or_else(|| NoValue(format!("-({a}) overflows")))
}

/// `abs(a)`
///
/// # Errors
/// On overflow.
pub fn int_abs(a: i64) -> Result<i64, NoValue> {
    a.checked_abs().ok_or_else(|| NoValue(format!("abs({a}) overflows")))
}

/// `a ** b`
///
/// # Errors
/// On overflow, and for a negative power.
pub fn int_pow(a: i64, b: i64) -> Result<i64, NoValue> {
    let power = u32::try_from(b).ok();
    power.and_then(|power| a.checked_pow(power)).ok_or_else(|| overflow(a, "**", b))
}

/// `a // b`, rounded down.
///
/// # Errors
/// When `b` is 0, and on overflow.
pub fn floor_div(a: i64, b: i64) -> Result<i64, NoValue> {
    let quotient = a.checked_div_euclid(b).ok_or_else(|| undefined(a, "//", b))?;
    // Euclid rounds a negative divisor's quotient up.
    Ok(if b < 0 && a.rem_euclid(b) != 0 { quotient - 1 } else { quotient })
}

/// `a % b`, of the sign of `b`.
///
/// # Errors
/// When `b` is 0, and on overflow.
pub fn floor_mod(a: i64, b: i64) -> Result<i64, NoValue> {
    let rest = a.checked_rem_euclid(b).ok_or_else(|| undefined(a, "%", b))?;
    Ok(if b < 0 && rest != 0 { rest + b } else { rest })
}

fn undefined(a: i64, operator: &str, b: i64) -> NoValue {
    NoValue(format!("{a} {operator} {b} has no value"))
}

fn finite(value: f64, what: impl FnOnce() -> String) -> Result<f64, NoValue> {
    if value.is_finite() { Ok(value) } else { Err(NoValue(format!("{} has no value", what()))) }
}

/// `a / b`
///
/// # Errors
/// When it is not finite.
pub fn float_div(a: f64, b: f64) -> Result<f64, NoValue> {
    finite(a / b, || format!("{a} / {b}"))
}

/// `a // b`, rounded down.
///
/// # Errors
/// When it is not finite.
pub fn float_floor_div(a: f64, b: f64) -> Result<f64, NoValue> {
    finite((a / b).floor(), || format!("{a} // {b}"))
}

/// `a % b`, of the sign of `b`.
///
/// # Errors
/// When it is not finite.
pub fn float_mod(a: f64, b: f64) -> Result<f64, NoValue> {
    let rest = a % b;
    let rest = if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest };
    finite(rest, || format!("{a} % {b}"))
}

/// `a ** b`
///
/// # Errors
/// When it is not finite.
pub fn float_pow(a: f64, b: f64) -> Result<f64, NoValue> {
    finite(a.powf(b), || format!("{a} ** {b}"))
}

/// `sqrt(a)`
///
/// # Errors
/// When it is not finite.
pub fn float_sqrt(a: f64) -> Result<f64, NoValue> {
    finite(a.sqrt(), || format!("sqrt({a})"))
}

/// `log(a)`
///
/// # Errors
/// When it is not finite.
pub fn float_log(a: f64) -> Result<f64, NoValue> {
    finite(a.ln(), || format!("log({a})"))
}

/// `floor(a)`
///
/// # Errors
/// When it names no single integer.
pub fn float_floor(a: f64) -> Result<i64, NoValue> {
    whole(a.floor(), "floor", a)
}

/// `ceil(a)`
///
/// # Errors
/// When it names no single integer.
pub fn float_ceil(a: f64) -> Result<i64, NoValue> {
    whole(a.ceil(), "ceil", a)
}

/// `int(a)`, the fraction cut off.
///
/// # Errors
/// When it names no single integer.
pub fn float_int(a: f64) -> Result<i64, NoValue> {
    whole(a.trunc(), "int", a)
}

/// The greatest magnitude of an integer that [`float_int`] and its like give.
pub const WHOLE: i64 = 9_000_000_000_000_000;

fn whole(value: f64, function: &str, a: f64) -> Result<i64, NoValue> {
    // Beyond 2^53 a float names no single integer.
    if value.abs() <= WHOLE as f64 {
        return Ok(value as i64);
    }
    Err(NoValue(format!("{function}({a}) has no value")))
}

/// More rounds than any model has; a larger number in a config is a mistake or an attack.
const MAX_ROUNDS: i64 = 1 << 16;

/// Bounds of a loop lie within ±2^31, as a config's integers do.
const MAX_INDEX: i64 = 1 << 31;

/// The rounds of a loop over the config's numbers.
///
/// # Errors
/// When there would be more than 65,536, and for bounds beyond 2^31.
pub fn rounds_of(from: i64, to: i64) -> Result<Range<i64>, NoValue> {
    let indices = -MAX_INDEX..=MAX_INDEX;
    if !indices.contains(&from) || !indices.contains(&to) || to - from > MAX_ROUNDS {
        return Err(NoValue(format!("{from}..{to} are more rounds than {MAX_ROUNDS}")));
    }
    Ok(from..to)
}

/// `value` rounded to bfloat16.
pub fn bf16(value: f64) -> f64 {
    half::bf16::from_f64(value).to_f64()
}

/// The least of a list.
///
/// # Errors
/// When the list is empty.
pub fn min_int(list: &[i64], name: &str) -> Result<i64, NoValue> {
    list.iter().copied().min().ok_or_else(|| empty(name))
}

/// The greatest of a list.
///
/// # Errors
/// When the list is empty.
pub fn max_int(list: &[i64], name: &str) -> Result<i64, NoValue> {
    list.iter().copied().max().ok_or_else(|| empty(name))
}

/// The least of a list.
///
/// # Errors
/// When the list is empty.
pub fn min_float(list: &[f64], name: &str) -> Result<f64, NoValue> {
    list.iter().copied().reduce(f64::min).ok_or_else(|| empty(name))
}

/// The greatest of a list.
///
/// # Errors
/// When the list is empty.
pub fn max_float(list: &[f64], name: &str) -> Result<f64, NoValue> {
    list.iter().copied().reduce(f64::max).ok_or_else(|| empty(name))
}

fn empty(name: &str) -> NoValue {
    NoValue(format!("{name} is empty"))
}

/// The value of a nullable key.
///
/// # Errors
/// When it is none; `name` is what the manifest calls it.
pub fn given<T>(value: Option<T>, name: &str) -> Result<T, NoValue> {
    value.ok_or_else(|| NoValue(format!("config.json gives no value for {name}")))
}

/// The element `list[i]`.
///
/// # Errors
/// When there is none; `name` is the list's.
pub fn at<'a, T>(list: &'a [T], i: i64, name: &str) -> Result<&'a T, NoValue> {
    usize::try_from(i)
        .ok()
        .and_then(|i| list.get(i))
        .ok_or_else(|| NoValue(format!("{name}[{i}]: there are {} entries", list.len())))
}

/// The letter `text[i]`.
///
/// # Errors
/// When there is none.
pub fn letter(text: &str, i: i64) -> Result<&str, NoValue> {
    let at = usize::try_from(i).ok();
    let found = at.and_then(|at| text.char_indices().nth(at));
    found
        .and_then(|(start, letter)| text.get(start..start + letter.len_utf8()))
        .ok_or_else(|| NoValue(format!("{text:?} has no letter {i}")))
}

/// A JSON value as an integer.
///
/// # Errors
/// When it is something else.
pub fn json_int(value: &Value) -> Result<i64, NoValue> {
    value.as_i64().ok_or_else(|| NoValue(format!("expected an integer, found {value}")))
}

/// A JSON value as a number.
///
/// # Errors
/// When it is something else.
pub fn json_float(value: &Value) -> Result<f64, NoValue> {
    value.as_f64().ok_or_else(|| NoValue(format!("expected a number, found {value}")))
}

/// A JSON value as a bool.
///
/// # Errors
/// When it is something else.
pub fn json_bool(value: &Value) -> Result<bool, NoValue> {
    value.as_bool().ok_or_else(|| NoValue(format!("expected true or false, found {value}")))
}

/// A JSON value as a word.
///
/// # Errors
/// When it is something else.
pub fn json_str(value: &Value) -> Result<&str, NoValue> {
    value.as_str().ok_or_else(|| NoValue(format!("expected a string, found {value}")))
}

/// The element `list[i]` of a JSON list.
///
/// # Errors
/// When there is none.
pub fn json_at(value: &Value, i: i64) -> Result<&Value, NoValue> {
    let found = usize::try_from(i).ok().and_then(|i| value.as_array()?.get(i));
    found.ok_or_else(|| NoValue(format!("{value} has no element {i}")))
}

/// How many entries a JSON list or table has, or letters a word.
///
/// # Errors
/// When it is something else.
pub fn json_len(value: &Value) -> Result<i64, NoValue> {
    Ok(match value {
        Value::Array(items) => items.len() as i64,
        Value::Object(entries) => entries.len() as i64,
        Value::String(text) => text.chars().count() as i64,
        other => return Err(NoValue(format!("expected a list or a word, found {other}"))),
    })
}

/// The entry `object[key]` of a JSON object, null where there is none.
pub fn json_key<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.get(key).unwrap_or(&Value::Null)
}

fn json_numbers(list: &Value) -> Result<Vec<f64>, NoValue> {
    list.as_array().into_iter().flatten().map(json_float).collect()
}

/// The least of a JSON list of numbers.
///
/// # Errors
/// When it is something else, or empty.
pub fn json_min(list: &Value, name: &str) -> Result<f64, NoValue> {
    min_float(&json_numbers(list)?, name)
}

/// The greatest of a JSON list of numbers.
///
/// # Errors
/// When it is something else, or empty.
pub fn json_max(list: &Value, name: &str) -> Result<f64, NoValue> {
    max_float(&json_numbers(list)?, name)
}

/// Whether two JSON values are equal; an integer equals a float of its value.
pub fn json_is(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x == y,
            _ => x.as_f64() == y.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_is(a, b))
        }
        _ => a == b,
    }
}

/// Whether a JSON list holds a value, or a JSON word a part.
///
/// # Errors
/// When it is something else.
pub fn json_holds(list: &Value, value: &Value) -> Result<bool, NoValue> {
    match (list, value) {
        (Value::Array(items), _) => Ok(items.iter().any(|item| json_is(item, value))),
        (Value::String(text), Value::String(part)) => Ok(text.contains(part)),
        (list, value) => Err(NoValue(format!("{list} cannot hold {value}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_have_the_sign_of_the_divisor() {
        for (a, b, rest) in [(7, 4, 3), (-7, 4, 1), (7, -4, -1), (-7, -4, -3), (8, -4, 0)] {
            assert_eq!(floor_mod(a, b), Ok(rest), "{a} % {b}");
            assert_eq!(float_mod(a as f64, b as f64), Ok(rest as f64), "{a} % {b}");
            let quotient = floor_div(a, b);
            assert_eq!(quotient.map(|quotient| quotient * b + rest), Ok(a), "{a} // {b}");
            assert_eq!(float_floor_div(a as f64, b as f64), Ok((a - rest) as f64 / b as f64));
        }
    }

    #[test]
    fn what_has_no_value_is_an_error() {
        assert!(plus(i64::MAX, 1).is_err() && minus(i64::MIN, 1).is_err());
        assert!(times(i64::MAX, 2).is_err() && int_neg(i64::MIN).is_err());
        assert!(int_abs(i64::MIN).is_err() && int_pow(2, 63).is_err() && int_pow(2, -1).is_err());
        for b in [0, -1] {
            assert!(floor_div(i64::MIN, b).is_err() && floor_mod(i64::MIN, b).is_err());
        }
        for a in [0.0, 1.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(float_div(a, 0.0).is_err() && float_floor_div(a, 0.0).is_err());
            assert!(float_mod(a, 0.0).is_err() && float_pow(0.0, -1.0).is_err());
        }
        assert!(float_sqrt(-1.0).is_err() && float_log(0.0).is_err() && float_log(-1.0).is_err());
        for function in [float_int, float_floor, float_ceil] {
            for a in [9.1e15, -9.1e15, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
                assert!(function(a).is_err(), "{a}");
            }
        }
    }
}
