//! Methods of strings that look for, split at, strip or replace parts.

use minijinja::value::Tuple;
use minijinja::{State, Value};

use crate::template::runtime::arguments::{flag, optional_integer, required, string};
use crate::template::runtime::arithmetic::{escape, keep_safe};
use crate::template::runtime::kind::{Kind, kind};
use crate::template::runtime::{Arguments, Result, charge, type_error, value_error};
use crate::template::syntax::is_space;

/// The result, or `None` for a method of another kind.
pub(super) fn call(
    state: &State<'_, '_>,
    receiver: &Value,
    s: &str,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    let safe = |text: &str| keep_safe(receiver, text.to_owned());
    Ok(Some(match name {
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = args.bind(["chars"])?;
            safe(strip(s, name, chars.as_ref())?)
        }
        "startswith" | "endswith" => affix(s, name, args)?,
        "find" | "rfind" | "index" | "rindex" | "count" => position(s, name, args)?,
        "split" | "rsplit" => {
            let [separator, most] = args.bind(["sep", "maxsplit"])?;
            let most = optional_integer(most.as_ref(), name)?.unwrap_or(-1);
            let most = usize::try_from(most).ok();
            let parts = match separator.filter(|sep| !sep.is_none()) {
                None => split_blank(s, most, name == "rsplit"),
                Some(separator) => {
                    let separator = string(&separator, name)?;
                    if separator.is_empty() {
                        return value_error("empty separator");
                    }
                    split_at(s, &separator, most, name == "rsplit")
                }
            };
            charge(state, parts.len() * 8)?;
            Value::from(parts.into_iter().map(safe).collect::<Vec<_>>())
        }
        "splitlines" => {
            let [keep] = args.bind(["keepends"])?;
            let lines = split_lines(s, flag(keep.as_ref()));
            charge(state, lines.len() * 8)?;
            Value::from(lines.into_iter().map(safe).collect::<Vec<_>>())
        }
        "partition" | "rpartition" => {
            let [separator] = args.bind(["sep"])?;
            let separator = string(&required(separator, name, "sep")?, name)?;
            if separator.is_empty() {
                return value_error("empty separator");
            }
            let found = if name == "partition" { s.find(&separator) } else { s.rfind(&separator) };
            let parts = match found {
                Some(at) => {
                    let (before, rest) = s.split_at(at);
                    let (middle, after) = rest.split_at(separator.len());
                    [before, middle, after]
                }
                None if name == "partition" => [s, "", ""],
                None => ["", "", s],
            };
            Value::from(Tuple::from(parts.map(safe)))
        }
        "replace" => {
            let [old, new, most] = args.bind(["old", "new", "count"])?;
            let old = string(&required(old, name, "old")?, name)?;
            let new_value = required(new, name, "new")?;
            let mut new = string(&new_value, name)?;
            if receiver.is_safe() && !new_value.is_safe() {
                new = escape(&new);
            }
            let most = optional_integer(most.as_ref(), name)?.unwrap_or(-1);
            safe(&replace(state, s, &old, &new, most)?)
        }
        "removeprefix" => {
            let [prefix] = args.bind(["prefix"])?;
            let prefix = string(&required(prefix, name, "prefix")?, name)?;
            safe(s.strip_prefix(&*prefix).unwrap_or(s))
        }
        "removesuffix" => {
            let [suffix] = args.bind(["suffix"])?;
            let suffix = string(&required(suffix, name, "suffix")?, name)?;
            safe(s.strip_suffix(&*suffix).unwrap_or(s))
        }
        _ => return Ok(None),
    }))
}

/// `s.strip(chars)`, or of one side only.
pub(in super::super) fn strip<'a>(
    s: &'a str,
    name: &str,
    chars: Option<&Value>,
) -> Result<&'a str> {
    let set: Option<String> = match chars {
        Some(chars) if !chars.is_none() => match kind(chars) {
            Kind::Str(set) => Some(set.to_owned()),
            _ => return type_error(format!("{name} arg must be None or str")),
        },
        _ => None,
    };
    let strips = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(c));
    let s = if name == "rstrip" { s } else { s.trim_start_matches(strips) };
    Ok(if name == "lstrip" { s } else { s.trim_end_matches(strips) })
}

/// `s.replace(old, new, most)`; a negative `most` replaces all.
pub(in super::super) fn replace(
    state: &State<'_, '_>,
    s: &str,
    old: &str,
    new: &str,
    most: i128,
) -> Result<String> {
    let places = if old.is_empty() { s.chars().count() + 1 } else { s.matches(old).count() };
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(places);
    let grown = most.saturating_mul(new.len());
    state.consume_fuel((grown / 64) as u64)?;
    if !old.is_empty() {
        return Ok(s.replacen(old, new, most));
    }
    let mut out = String::with_capacity(s.len() + grown);
    let mut left = most;
    for c in s.chars() {
        if left > 0 {
            out.push_str(new);
            left -= 1;
        }
        out.push(c);
    }
    if left > 0 {
        out.push_str(new);
    }
    Ok(out)
}

/// The part of `s` between two places counted in characters, and the first place in bytes.
fn window(s: &str, start: Option<i128>, stop: Option<i128>) -> Option<(usize, &str)> {
    if start.is_none() && stop.is_none() {
        return Some((0, s));
    }
    let n = s.chars().count() as i128;
    let place = |i: i128| if i < 0 { i.saturating_add(n).max(0) } else { i };
    let start = place(start.unwrap_or(0));
    let stop = place(stop.unwrap_or(n)).min(n);
    if start > stop {
        return None;
    }
    let byte = |i: i128| {
        let i = usize::try_from(i).unwrap_or(0);
        s.char_indices().nth(i).map_or(s.len(), |(at, _)| at)
    };
    let (from, to) = (byte(start), byte(stop));
    Some((from, s.get(from..to).unwrap_or_default()))
}

fn affix(s: &str, name: &str, args: Arguments<'_>) -> Result<Value> {
    let [affix, start, stop] = args.bind(["prefix", "start", "end"])?;
    let affix = required(affix, name, "prefix")?;
    let start = optional_integer(start.as_ref(), name)?;
    let stop = optional_integer(stop.as_ref(), name)?;
    let options = match kind(&affix) {
        Kind::Str(one) => vec![one.to_owned()],
        Kind::Tuple(several) => {
            several.iter().map(|v| string(v, name)).collect::<Result<Vec<_>>>()?
        }
        _ => {
            return type_error(format!("{name} first arg must be str or a tuple of str"));
        }
    };
    let Some((_, part)) = window(s, start, stop) else { return Ok(Value::from(false)) };
    Ok(Value::from(options.iter().any(|option| {
        if name == "startswith" { part.starts_with(&**option) } else { part.ends_with(&**option) }
    })))
}

fn position(s: &str, name: &str, args: Arguments<'_>) -> Result<Value> {
    let [part, start, stop] = args.bind(["sub", "start", "end"])?;
    let part = string(&required(part, name, "sub")?, name)?;
    let start = optional_integer(start.as_ref(), name)?;
    let stop = optional_integer(stop.as_ref(), name)?;
    let window = window(s, start, stop);
    if name == "count" {
        let n = match window {
            None => 0,
            Some((_, text)) if part.is_empty() => text.chars().count() + 1,
            Some((_, text)) => text.matches(&*part).count(),
        };
        return Ok(Value::from(n));
    }
    let found = window.and_then(|(from, text)| {
        let at = if name.starts_with('r') { text.rfind(&*part) } else { text.find(&*part) };
        at.map(|at| s.get(..from + at).unwrap_or_default().chars().count())
    });
    match found {
        Some(at) => Ok(Value::from(at)),
        None if name.ends_with("find") => Ok(Value::from(-1)),
        None => value_error("substring not found"),
    }
}

fn split_at<'a>(s: &'a str, separator: &str, most: Option<usize>, right: bool) -> Vec<&'a str> {
    match (most, right) {
        (None, _) => s.split(separator).collect(),
        (Some(most), false) => s.splitn(most.saturating_add(1), separator).collect(),
        (Some(most), true) => {
            let mut parts: Vec<&str> = s.rsplitn(most.saturating_add(1), separator).collect();
            parts.reverse();
            parts
        }
    }
}

/// Splits at runs of blanks; after the most splits the rest stays whole.
fn split_blank(s: &str, most: Option<usize>, right: bool) -> Vec<&str> {
    let most = most.unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = s;
    loop {
        rest =
            if right { rest.trim_end_matches(is_space) } else { rest.trim_start_matches(is_space) };
        if rest.is_empty() {
            break;
        }
        if parts.len() == most {
            // What remains keeps the blanks of its far side.
            parts.push(rest);
            break;
        }
        let cut = if right {
            rest.char_indices().rev().find(|(_, c)| is_space(*c)).map(|(i, c)| i + c.len_utf8())
        } else {
            rest.find(is_space)
        };
        match cut {
            Some(at) => {
                let (before, after) = rest.split_at(at);
                parts.push(if right { after } else { before });
                rest = if right { before } else { after };
            }
            None => {
                parts.push(rest);
                break;
            }
        }
    }
    if right {
        parts.reverse();
    }
    parts
}

/// Python's line ends.
pub(in super::super) fn split_lines(s: &str, keep: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = s.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let ends = matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        );
        if !ends {
            continue;
        }
        let mut end = i + c.len_utf8();
        if c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push(s.get(start..if keep { end } else { i }).unwrap_or_default());
        start = end;
    }
    if start < s.len() {
        lines.push(s.get(start..).unwrap_or_default());
    }
    lines
}
