//! The tests of `is`.

use minijinja::{State, Value};

use super::runtime::arguments::required;
use super::runtime::compare::{compare, same};
use super::runtime::kind::{Kind, Native, as_int, kind, native};
use super::runtime::objects::fail_undefined;
use super::runtime::{Arguments, Result, arithmetic, fail, iterate, print, type_error, type_name};
use super::{FailureKind, filters};

const NAMES: &[&str] = &[
    "odd",
    "even",
    "divisibleby",
    "defined",
    "undefined",
    "filter",
    "test",
    "none",
    "boolean",
    "false",
    "true",
    "integer",
    "float",
    "lower",
    "upper",
    "string",
    "mapping",
    "number",
    "sequence",
    "iterable",
    "callable",
    "sameas",
    "escaped",
    "in",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    ">",
    "gt",
    "greaterthan",
    "ge",
    ">=",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
];

/// Whether there is a test of this name.
pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Runs a test.
pub(super) fn call(
    state: &mut State<'_, '_>,
    name: &str,
    value: &Value,
    values: &[Value],
) -> Result<bool> {
    if !exists(name) {
        return fail(FailureKind::Other, format!("No test named '{name}'."));
    }
    let args = Arguments::new(name, values);
    let comparison = match name {
        "==" | "eq" | "equalto" => Some("=="),
        "!=" | "ne" => Some("!="),
        ">" | "gt" | "greaterthan" => Some(">"),
        ">=" | "ge" => Some(">="),
        "<" | "lt" | "lessthan" => Some("<"),
        "<=" | "le" => Some("<="),
        "in" => Some("in"),
        _ => None,
    };
    if let Some(op) = comparison {
        let [other] = args.bind(["b"])?;
        return compare(state, value, op, &required(other, name, "b")?);
    }
    match name {
        "divisibleby" => {
            let [divisor] = args.bind(["num"])?;
            let rest = arithmetic::binary(state, "%", value, &required(divisor, name, "num")?)?;
            return Ok(super::runtime::compare::equal(&rest, &Value::from(0)));
        }
        "sameas" => {
            let [other] = args.bind(["other"])?;
            return Ok(same(value, &required(other, name, "other")?));
        }
        _ => args.none()?,
    }
    Ok(match name {
        "defined" => !matches!(kind(value), Kind::Undefined(_)),
        "undefined" => matches!(kind(value), Kind::Undefined(_)),
        "odd" => parity(value)? == 1,
        "even" => parity(value)? == 0,
        "none" => value.is_none(),
        "boolean" => matches!(kind(value), Kind::Bool(_)),
        "true" => matches!(kind(value), Kind::Bool(true)),
        "false" => matches!(kind(value), Kind::Bool(false)),
        "integer" => matches!(kind(value), Kind::Int(_)),
        "float" => matches!(kind(value), Kind::Float(_)),
        "number" => matches!(kind(value), Kind::Int(_) | Kind::Float(_) | Kind::Bool(_)),
        "string" => matches!(kind(value), Kind::Str(_)),
        "mapping" => matches!(kind(value), Kind::Dict(_)),
        "lower" | "upper" => {
            let text = Value::from(print::text(state, value)?);
            let method = if name == "lower" { "islower" } else { "isupper" };
            super::methods::call(state, &text, method, &[])?.is_true()
        }
        // A length and a way to get items; an undefined value has both in name.
        "sequence" => {
            !matches!(kind(value), Kind::View(_) | Kind::Other) && iterate::length(value).is_some()
        }
        "iterable" => iterate::is_iterable(value) || native(value) == Native::Loop,
        "callable" => {
            matches!(kind(value), Kind::Method(_) | Kind::Function(_))
                || native(value) != Native::Unknown
        }
        "escaped" => value.is_safe(),
        "filter" => match kind(value) {
            Kind::Str(name) => filters::exists(name),
            _ => false,
        },
        _ => match kind(value) {
            Kind::Str(name) => exists(name),
            _ => false,
        },
    })
}

fn parity(value: &Value) -> Result<i128> {
    match kind(value) {
        Kind::Undefined(what) => fail_undefined(what),
        Kind::Float(f) => Ok(match f.rem_euclid(2.0) {
            0.0 => 0,
            1.0 => 1,
            _ => 2,
        }),
        _ => match as_int(value) {
            Some(i) => Ok(i.rem_euclid(2)),
            None => type_error(format!(
                "unsupported operand type(s) for %: '{}' and 'int'",
                type_name(value)
            )),
        },
    }
}
