//! Python's methods of strings, lists, tuples and dicts.
//!
//! minijinja's own collection of Python methods (`pycompat`) stands behind these for the methods
//! that are not written here.

mod collections;
mod search;
mod strings;

use minijinja::{State, Value};

use super::runtime::kind::{Kind, Native, kind, native};
pub(super) use search::split_lines;

use super::runtime::{Arguments, Result, security, type_name, undefined};

const STRING: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];
const LIST: &[&str] = &["copy", "count", "index"];
const LIST_CHANGES: &[&str] =
    &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];
const DICT: &[&str] = &["copy", "fromkeys", "get", "items", "keys", "values"];
const DICT_CHANGES: &[&str] = &["clear", "pop", "popitem", "setdefault", "update"];

/// Whether the value has a method of this name.
pub(super) fn exists(value: &Value, name: &str) -> bool {
    match kind(value) {
        Kind::Str(_) => STRING.contains(&name),
        Kind::List(_) => LIST.contains(&name) || LIST_CHANGES.contains(&name),
        Kind::Tuple(_) => ["count", "index"].contains(&name),
        Kind::Range(_) => ["count", "index"].contains(&name),
        Kind::Dict(_) => DICT.contains(&name) || DICT_CHANGES.contains(&name),
        Kind::Float(_) => ["as_integer_ratio", "conjugate", "hex", "is_integer"].contains(&name),
        Kind::Int(_) | Kind::Bool(_) => {
            ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "is_integer"]
                .contains(&name)
        }
        Kind::Function(super::runtime::objects::Function::Named("dict")) => name == "fromkeys",
        _ => false,
    }
}

/// Whether the sandbox hides a method because it changes its object.
pub(super) fn forbidden(value: &Value, name: &str) -> bool {
    match kind(value) {
        Kind::List(_) => LIST_CHANGES.contains(&name),
        Kind::Dict(_) => DICT_CHANGES.contains(&name),
        _ => false,
    }
}

/// Calls a method.
pub(super) fn call(
    state: &mut State<'_, '_>,
    receiver: &Value,
    name: &str,
    values: &[Value],
) -> Result<Value> {
    if forbidden(receiver, name) {
        return security(format!(
            "access to attribute '{name}' of '{}' object is unsafe.",
            type_name(receiver)
        ));
    }
    let args = Arguments::new(name, values);
    let done = match kind(receiver) {
        Kind::Str(s) => {
            super::runtime::charge(state, s.len())?;
            match search::call(state, receiver, s, args)? {
                Some(value) => Some(value),
                None => strings::call(state, receiver, s, Arguments::new(name, values))?,
            }
        }
        Kind::List(items) | Kind::Tuple(items) => collections::sequence(items, receiver, args)?,
        Kind::Dict(map) => collections::dict(state, map, receiver, args)?,
        Kind::Float(_) | Kind::Int(_) | Kind::Bool(_) => collections::number(receiver, args)?,
        Kind::Function(function) => match name {
            "fromkeys" => Some(collections::from_keys(state, args)?),
            _ => function.cycle(name),
        },
        Kind::Other if native(receiver) == Native::Loop => {
            if name == "cycle" && values.is_empty() {
                return super::runtime::type_error("no items for cycling given");
            }
            return receiver.call_method(state, name, values);
        }
        _ => None,
    };
    match done {
        Some(value) => Ok(value),
        None => match minijinja_contrib::pycompat::unknown_method_callback(
            state, receiver, name, values,
        ) {
            Err(e) if e.kind() == minijinja::ErrorKind::UnknownMethod => {
                undefined(format!("'{} object' has no attribute '{name}'", type_name(receiver)))
            }
            other => other,
        },
    }
}
