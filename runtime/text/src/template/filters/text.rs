//! Filters on text.

use indexmap::IndexMap;
use minijinja::value::Tuple;
use minijinja::{State, Value};

use crate::template::runtime::arguments::{flag, integer, optional_integer, required, string};
use crate::template::runtime::arithmetic::{binary, escape, keep_safe};
use crate::template::runtime::json::{Style, dumps};
use crate::template::runtime::kind::{Kind, as_int, kind};
use crate::template::runtime::objects::fail_undefined;
use crate::template::runtime::{
    Arguments, Result, charge, fail, iterate, print, type_error, type_name,
};
use crate::template::syntax::is_space;
use crate::template::{FailureKind, methods};

/// The result, or `None` for a filter of another kind.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    Ok(Some(match name {
        "upper" | "lower" | "capitalize" => {
            args.none()?;
            let text = soft(state, value)?;
            methods::call(state, &text, name, &[])?
        }
        "title" => {
            args.none()?;
            let text = soft(state, value)?;
            keep_safe(&text, title(text.as_str().unwrap_or_default()))
        }
        "trim" => {
            let [chars] = args.bind(["chars"])?;
            let text = soft(state, value)?;
            let chars = chars.unwrap_or_else(|| Value::from(()));
            methods::call(state, &text, "strip", &[chars])?
        }
        "center" => {
            let [width] = args.bind(["width"])?;
            let text = soft(state, value)?;
            let width = width.unwrap_or_else(|| Value::from(80));
            methods::call(state, &text, "center", &[width])?
        }
        "replace" => {
            let [old, new, most] = args.bind(["old", "new", "count"])?;
            let text = Value::from(print::text(state, value)?);
            let old = print::text(state, &required(old, name, "old")?)?;
            let new = print::text(state, &required(new, name, "new")?)?;
            let most = optional_integer(most.as_ref(), name)?.unwrap_or(-1);
            let args = [Value::from(old), Value::from(new), Value::from(most)];
            methods::call(state, &text, "replace", &args)?
        }
        "string" => {
            args.none()?;
            soft(state, value)?
        }
        "safe" => {
            args.none()?;
            Value::from_safe_string(print::text(state, value)?)
        }
        "e" | "escape" => {
            args.none()?;
            if value.is_safe() {
                value.clone()
            } else {
                Value::from_safe_string(escape(&print::text(state, value)?))
            }
        }
        "forceescape" => {
            args.none()?;
            Value::from_safe_string(escape(&print::text(state, value)?))
        }
        "indent" => indent(state, value, args)?,
        "format" => {
            let text = soft(state, value)?;
            if !args.keywords.is_empty() && !args.positional.is_empty() {
                return fail(
                    FailureKind::Other,
                    "can't handle positional and keyword arguments at the same time",
                );
            }
            let values = if args.keywords.is_empty() {
                Value::from(Tuple::from(args.positional))
            } else {
                let map: IndexMap<Value, Value> =
                    args.keywords.into_iter().map(|(k, v)| (Value::from(k), v)).collect();
                Value::from_object(map)
            };
            binary(state, "%", &text, &values)?
        }
        "join" => join(state, value, args)?,
        "tojson" => to_json(state, value, args)?,
        "wordcount" => {
            args.none()?;
            let text = print::text(state, value)?;
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            Value::from(text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count())
        }
        "truncate" => truncate(state, value, args)?,
        _ => return Ok(None),
    }))
}

/// The value as text, still safe if it was.
fn soft(state: &State<'_, '_>, value: &Value) -> Result<Value> {
    match kind(value) {
        Kind::Str(_) => Ok(value.clone()),
        _ => Ok(Value::from(print::text(state, value)?)),
    }
}

/// Words begin after blanks and some brackets, not after every mark as with `str.title`.
fn title(s: &str) -> String {
    let separates = |c: char| matches!(c, '-' | '(' | '{' | '[' | '<') || is_space(c);
    let mut out = String::with_capacity(s.len());
    let mut rest = s;
    while let Some(first) = rest.chars().next() {
        let is_separator = separates(first);
        let end = rest.find(|c| separates(c) != is_separator).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let (head, tail) = word.split_at(first.len_utf8());
        out.push_str(&head.to_uppercase());
        out.push_str(&tail.to_lowercase());
        rest = after;
    }
    out
}

fn indent(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [width, first, blank] = args.bind(["width", "first", "blank"])?;
    let text = match kind(value) {
        Kind::Str(s) => s.to_owned() + "\n",
        Kind::Undefined(what) => return fail_undefined(what),
        _ => {
            return type_error(format!(
                "unsupported operand type(s) for +=: '{}' and 'str'",
                type_name(value)
            ));
        }
    };
    let indention = match &width {
        None => " ".repeat(4),
        Some(width) => match kind(width) {
            Kind::Str(s) => s.to_owned(),
            _ => {
                let n = usize::try_from(integer(width, "indent")?.max(0)).unwrap_or(usize::MAX);
                state.consume_fuel((n / 64) as u64)?;
                " ".repeat(n)
            }
        },
    };
    let lines = methods::split_lines(&text, false);
    state.consume_fuel((lines.len().saturating_mul(indention.len()) / 64) as u64)?;
    let blank = flag(blank.as_ref());
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        if i > 0 {
            out.push('\n');
            if blank || !line.is_empty() {
                out.push_str(&indention);
            }
        } else if flag(first.as_ref()) {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(keep_safe(value, out))
}

fn join(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [separator, attribute] = args.bind(["d", "attribute"])?;
    let separator = match separator {
        Some(separator) => print::text(state, &separator)?,
        None => String::new(),
    };
    let attribute = attribute.filter(|attribute| !attribute.is_none());
    let mut out = String::new();
    for (i, mut item) in iterate::items(state, value)?.into_iter().enumerate() {
        if let Some(attribute) = &attribute {
            item = super::select::path(&item, attribute, None)?;
        }
        if i > 0 {
            out.push_str(&separator);
        }
        charge(state, separator.len())?;
        out.push_str(&print::text(state, &item)?);
    }
    Ok(Value::from(out))
}

fn to_json(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [ascii, indent, separators, sort] =
        args.bind(["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let indent = match indent.filter(|indent| !indent.is_none()) {
        None => None,
        Some(indent) => Some(match kind(&indent) {
            Kind::Str(s) => s.to_owned(),
            _ => {
                let width = integer(&indent, "indent")?.max(0);
                " ".repeat(usize::try_from(width).unwrap_or(usize::MAX).min(1000))
            }
        }),
    };
    let (item, key) = match separators.filter(|separators| !separators.is_none()) {
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some(separators) => match iterate::items(state, &separators)?.as_slice() {
            [item, key] => (string(item, "separators")?, string(key, "separators")?),
            _ => return type_error("tojson: separators are two strings"),
        },
    };
    let style = Style {
        ensure_ascii: flag(ascii.as_ref()),
        indent,
        item_separator: item,
        key_separator: key,
        sort_keys: flag(sort.as_ref()),
    };
    Ok(Value::from(dumps(state, value, &style)?))
}

fn truncate(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [length, kill, end, leeway] = args.bind(["length", "killwords", "end", "leeway"])?;
    let end = end.map_or_else(|| Ok("...".into()), |end| string(&end, "truncate"))?;
    let length = optional_integer(length.as_ref(), "truncate")?.unwrap_or(255);
    let leeway = optional_integer(leeway.as_ref(), "truncate")?.unwrap_or(5);
    let end_length = end.chars().count() as i128;
    if length < end_length || leeway < 0 {
        let message = format!("truncate: expected length >= {end_length} and leeway >= 0");
        return fail(FailureKind::Other, message);
    }
    let Kind::Str(s) = kind(value) else {
        if iterate::length(value) == Some(0) {
            return Ok(value.clone());
        }
        return type_error(format!("object of type '{}' cannot be truncated", type_name(value)));
    };
    charge(state, s.len())?;
    if (s.chars().count() as i128) <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let keep = usize::try_from(length - end_length).unwrap_or(0);
    let mut cut: String = s.chars().take(keep).collect();
    if !flag(kill.as_ref())
        && let Some(at) = cut.rfind(' ')
    {
        cut.truncate(at);
    }
    Ok(keep_safe(value, cut + &end))
}

/// An integer, for filters that count.
pub(super) fn count(value: &Value, name: &str) -> Result<usize> {
    match as_int(value) {
        Some(i) => Ok(usize::try_from(i).unwrap_or(0)),
        None => type_error(format!("{name}: expected int, got {}", type_name(value))),
    }
}
