//! Functions of expressions.

use super::value::Value;

/// Functions on values alone.
pub const NAMES: [&str; 12] =
    ["sqrt", "log", "floor", "ceil", "min", "max", "len", "abs", "int", "float", "bf16", "is_list"];

/// `a // b`, rounded down; none for 0 and on overflow.
pub(crate) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div_euclid(b)?;
    // Euclid rounds a negative divisor's quotient up.
    Some(if b < 0 && a.rem_euclid(b) != 0 { quotient - 1 } else { quotient })
}

/// `a % b`, of the sign of `b`; none for 0 and on overflow.
pub(super) fn floor_mod(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem_euclid(b)?;
    Some(if b < 0 && rest != 0 { rest + b } else { rest })
}

/// Calls a function; none when the name is none of [`NAMES`].
pub(super) fn call(name: &str, args: &[Value]) -> Option<Result<Value, String>> {
    NAMES.contains(&name).then(|| apply(name, args))
}

fn apply(name: &str, args: &[Value]) -> Result<Value, String> {
    if matches!(name, "min" | "max") {
        return extreme(name, args);
    }
    let [arg] = args else {
        return Err(format!("`{name}` takes 1 argument, found {}", args.len()));
    };
    let arg = arg.clone().settled();
    if name == "len" {
        let len = match &arg {
            Value::List(items) => items.len(),
            Value::Str(text) => text.chars().count(),
            Value::Json(serde_json::Value::Array(items)) => items.len(),
            Value::Json(serde_json::Value::Object(entries)) => entries.len(),
            other => return Err(format!("`len` needs a list or a word, found {}", other.kind())),
        };
        return Ok(Value::Int(len as i64));
    }
    if name == "is_list" {
        let list = matches!(arg, Value::List(_) | Value::Json(serde_json::Value::Array(_)));
        return Ok(Value::Bool(list));
    }
    if let (Value::Int(value), "abs" | "int" | "floor" | "ceil") = (&arg, name) {
        let result = if name == "abs" { value.checked_abs() } else { Some(*value) };
        return result.map(Value::Int).ok_or_else(|| format!("abs({value}) overflows"));
    }
    let number = match (&arg, name) {
        (Value::Bool(value), "int" | "float") => f64::from(u8::from(*value)),
        _ => arg.as_f64().ok_or_else(|| format!("`{name}` needs a number, found {arg}"))?,
    };
    let undefined = || format!("{name}({number:?}) has no value");
    let whole = |value: f64| {
        // Beyond 2^53 a float names no single integer.
        (value.abs() < 9e15).then_some(Value::Int(value as i64)).ok_or_else(undefined)
    };
    let float = |value: f64| value.is_finite().then_some(Value::Float(value)).ok_or_else(undefined);
    match name {
        "sqrt" => float(number.sqrt()),
        "log" => float(number.ln()),
        "floor" => whole(number.floor()),
        "ceil" => whole(number.ceil()),
        "int" => whole(number.trunc()),
        "abs" => float(number.abs()),
        "bf16" => float(bf16(number)),
        _ => float(number),
    }
}

fn extreme(name: &str, args: &[Value]) -> Result<Value, String> {
    let listed: Vec<Value>;
    let items = match args {
        [Value::List(items)] => items.as_slice(),
        [Value::Json(serde_json::Value::Array(items))] => {
            listed = items.iter().cloned().map(Value::Json).collect();
            &listed
        }
        _ => args,
    };
    let mut best: Option<Value> = None;
    let mut float = false;
    for item in items {
        let item = item.clone().settled();
        let Some(value) = item.as_f64() else {
            return Err(format!("`{name}` needs numbers, found {}", item.kind()));
        };
        float |= matches!(item, Value::Float(_));
        let better =
            best.as_ref().and_then(Value::as_f64).is_none_or(|known| match (&best, &item) {
                (Some(Value::Int(a)), Value::Int(b)) => {
                    if name == "min" {
                        b < a
                    } else {
                        b > a
                    }
                }
                _ => {
                    if name == "min" {
                        value < known
                    } else {
                        value > known
                    }
                }
            });
        if better {
            best = Some(item);
        }
    }
    match best {
        Some(Value::Int(value)) if float => Ok(Value::Float(value as f64)),
        Some(value) => Ok(value),
        None => Err(format!("`{name}` of nothing has no value")),
    }
}

/// Rounds to the nearest bfloat16.
fn bf16(value: f64) -> f64 {
    half::bf16::from_f64(value).to_f64()
}
