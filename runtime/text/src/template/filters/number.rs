//! Filters on numbers.

use minijinja::{State, Value};

use crate::template::FailureKind;
use crate::template::runtime::arguments::optional_integer;
use crate::template::runtime::kind::{Kind, as_int, int, kind};
use crate::template::runtime::objects::fail_undefined;
use crate::template::runtime::{Arguments, Result, fail, type_error, type_name, unsupported};
use crate::template::syntax::is_space;

/// The result, or `None` for a filter of another kind.
pub(super) fn call(
    _: &mut State<'_, '_>,
    value: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    Ok(Some(match name {
        "abs" => {
            args.none()?;
            match (as_int(value), kind(value)) {
                (Some(i), _) => int(i.saturating_abs()),
                (None, Kind::Float(f)) => Value::from(f.abs()),
                (None, Kind::Undefined(_)) => {
                    return type_error("bad operand type for abs(): 'Undefined'");
                }
                _ => {
                    return type_error(format!(
                        "bad operand type for abs(): '{}'",
                        type_name(value)
                    ));
                }
            }
        }
        "int" => {
            let [default, base] = args.bind(["default", "base"])?;
            let base = optional_integer(base.as_ref(), name)?.unwrap_or(10);
            to_int(value, base)?.unwrap_or_else(|| default.unwrap_or_else(|| Value::from(0)))
        }
        "float" => {
            let [default] = args.bind(["default"])?;
            match to_float(value)? {
                Some(f) => Value::from(f),
                None => default.unwrap_or_else(|| Value::from(0.0)),
            }
        }
        "round" => round(value, args)?,
        "filesizeformat" => {
            let [binary] = args.bind(["binary"])?;
            let Some(bytes) = to_float(value)? else {
                return type_error(format!("a file size cannot be {}", type_name(value)));
            };
            Value::from(file_size(bytes, binary.is_some_and(|b| b.is_true())))
        }
        _ => return Ok(None),
    }))
}

/// `int(value)` as the filter has it; `None` where the default stands in.
fn to_int(value: &Value, base: i128) -> Result<Option<Value>> {
    Ok(match kind(value) {
        Kind::Undefined(what) => return fail_undefined(what),
        Kind::Int(_) => Some(value.clone()),
        Kind::Bool(b) => Some(Value::from(i64::from(b))),
        Kind::Float(f) => truncated(f)?,
        Kind::Str(s) => match parse_int(s, base) {
            Some(i) => Some(int(i)),
            // Digits too many for a number here are no reason for a default.
            None if is_decimal(s) => return unsupported("an integer of more than 127 bits"),
            None => match parse_float(s) {
                Some(f) => truncated(f)?,
                None => None,
            },
        },
        _ => None,
    })
}

fn truncated(f: f64) -> Result<Option<Value>> {
    if !f.is_finite() {
        return Ok(None);
    }
    if f.abs() >= 1e38 {
        return unsupported("an integer of more than 127 bits");
    }
    Ok(Some(int(f.trunc() as i128)))
}

fn is_decimal(s: &str) -> bool {
    let digits = s.trim_matches(is_space).trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn parse_int(s: &str, base: i128) -> Option<i128> {
    let base = u32::try_from(base).ok().filter(|b| *b == 0 || (2..=36).contains(b))?;
    let s = s.trim_matches(is_space);
    let (negative, digits) = match s.as_bytes().first()? {
        b'-' => (true, s.get(1..)?),
        b'+' => (false, s.get(1..)?),
        _ => (false, s),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed = match lower.get(..2) {
        Some("0x") => Some(16),
        Some("0o") => Some(8),
        Some("0b") => Some(2),
        _ => None,
    };
    let (base, digits) = match prefixed {
        Some(radix) if base == radix || base == 0 => {
            let rest = digits.get(2..)?;
            (radix, rest.strip_prefix('_').unwrap_or(rest))
        }
        _ if base == 0 => (10, digits),
        _ => (base, digits),
    };
    if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let clean: String = digits.chars().filter(|c| *c != '_').collect();
    if clean.is_empty() || !clean.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let value = i128::from_str_radix(&clean, base).ok()?;
    Some(if negative { -value } else { value })
}

/// `float(value)`; `None` where the default stands in.
fn to_float(value: &Value) -> Result<Option<f64>> {
    Ok(match kind(value) {
        Kind::Undefined(what) => return fail_undefined(what),
        Kind::Float(f) => Some(f),
        Kind::Str(s) => parse_float(s),
        _ => as_int(value).map(|i| i as f64),
    })
}

fn parse_float(s: &str) -> Option<f64> {
    let s = s.trim_matches(is_space);
    let between_digits = |(i, _): (usize, &str)| {
        let digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_digit);
        i > 0 && digit(s.as_bytes().get(i - 1)) && digit(s.as_bytes().get(i + 1))
    };
    if !s.match_indices('_').all(between_digits) {
        return None;
    }
    let clean = s.replace('_', "");
    let body = clean.trim_start_matches(['+', '-']);
    let word = body.to_ascii_lowercase();
    let ok = body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || ["inf", "infinity", "nan"].contains(&word.as_str());
    ok.then(|| clean.parse().ok()).flatten()
}

fn round(value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [precision, method] = args.bind(["precision", "method"])?;
    let precision = optional_integer(precision.as_ref(), "round")?.unwrap_or(0);
    let method = method.as_ref().and_then(Value::as_str).unwrap_or("common").to_owned();
    if !["common", "ceil", "floor"].contains(&method.as_str()) {
        return fail(FailureKind::Other, "method must be common, ceil or floor");
    }
    let number = match (kind(value), as_int(value)) {
        (Kind::Undefined(what), _) => return fail_undefined(what),
        (Kind::Float(f), _) => f,
        (_, Some(i)) if method == "common" => return round_int(i, precision),
        (_, Some(i)) => i as f64,
        _ => {
            return type_error(format!(
                "type {} doesn't define __round__ method",
                type_name(value)
            ));
        }
    };
    let precision = i32::try_from(precision.clamp(-400, 400)).unwrap_or(0);
    if method != "common" {
        let factor = 10f64.powi(precision);
        let scaled = number * factor;
        let whole = if method == "ceil" { scaled.ceil() } else { scaled.floor() };
        return Ok(Value::from(whole / factor));
    }
    if !number.is_finite() {
        return Ok(Value::from(number));
    }
    Ok(Value::from(match usize::try_from(precision) {
        // The standard library rounds the exact value, ties to even, as Python does.
        Ok(decimals) => format!("{number:.decimals$}").parse().unwrap_or(number),
        Err(_) => {
            let factor = 10f64.powi(-precision);
            (number / factor).round_ties_even() * factor
        }
    }))
}

fn round_int(i: i128, precision: i128) -> Result<Value> {
    if precision >= 0 {
        return Ok(int(i));
    }
    let power = u32::try_from(-precision).ok().and_then(|p| 10i128.checked_pow(p));
    let Some(unit) = power else { return Ok(int(0)) };
    let (floor, rest) = (i.div_euclid(unit), i.rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && floor % 2 != 0);
    Ok(int((floor + i128::from(up)) * unit))
}

fn file_size(bytes: f64, binary: bool) -> String {
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    let prefixes = if binary {
        ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
    } else {
        ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]
    };
    if bytes == 1.0 {
        return "1 Byte".into();
    }
    if bytes < base {
        return format!("{} Bytes", bytes.trunc());
    }
    let mut unit = base;
    let mut last = "";
    for prefix in prefixes {
        unit *= base;
        last = prefix;
        if bytes < unit {
            break;
        }
    }
    format!("{:.1} {last}", base * bytes / unit)
}
