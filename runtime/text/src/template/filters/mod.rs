//! Jinja2's filters.

mod markup;
mod number;
mod select;
mod sequence;
mod text;

use minijinja::{State, Value};

use super::FailureKind;
use super::runtime::{Arguments, Result, fail};

const NAMES: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "random",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "urlize",
    "wordcount",
    "wordwrap",
    "xmlattr",
];

/// Whether there is a filter of this name.
pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Applies a filter.
pub(super) fn call(
    state: &mut State<'_, '_>,
    name: &str,
    value: &Value,
    values: &[Value],
) -> Result<Value> {
    let args = || Arguments::new(name, values);
    if let Some(result) = text::call(state, value, args())? {
        return Ok(result);
    }
    if let Some(result) = sequence::call(state, value, args())? {
        return Ok(result);
    }
    if let Some(result) = select::call(state, value, args())? {
        return Ok(result);
    }
    if let Some(result) = number::call(state, value, args())? {
        return Ok(result);
    }
    match markup::call(state, value, args())? {
        Some(result) => Ok(result),
        None => fail(FailureKind::Other, format!("No filter named '{name}'.")),
    }
}
