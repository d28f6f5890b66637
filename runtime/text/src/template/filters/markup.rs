//! Filters over markup and addresses (`striptags`, `urlencode`, `xmlattr`), and others that chat templates hardly use.

use minijinja::{State, Value};

use crate::template::FailureKind;
use crate::template::runtime::arguments::flag;
use crate::template::runtime::arithmetic::escape;
use crate::template::runtime::kind::{Kind, kind};
use crate::template::runtime::{
    Arguments, Result, fail, iterate, print, type_error, type_name, unsupported, value_error,
};
use crate::template::syntax::is_space;

/// The result, or `None` when there is no such filter.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    Ok(Some(match name {
        "striptags" => {
            args.none()?;
            Value::from(strip_tags(&print::text(state, value)?))
        }
        "urlencode" => {
            args.none()?;
            url_encode(state, value)?
        }
        "xmlattr" => {
            let [space] = args.bind(["autospace"])?;
            xml_attributes(state, value, space.is_none() || flag(space.as_ref()))?
        }
        "pprint" => {
            args.none()?;
            let text = print::repr(state, value)?;
            if text.chars().count() > 80 || text.contains('{') {
                return unsupported("`pprint` of more than one line");
            }
            Value::from(text)
        }
        "random" | "urlize" | "wordwrap" => {
            return unsupported(format!("the filter `{name}`"));
        }
        _ => return Ok(None),
    }))
}

/// Leaves out tags and comments, and makes each run of blanks one.
fn strip_tags(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.find("<!--") {
        let Some(length) = text.get(start..).and_then(|rest| rest.find("-->")) else { break };
        text.replace_range(start..start + length + 3, "");
    }
    while let Some(start) = text.find('<') {
        let Some(length) = text.get(start..).and_then(|rest| rest.find('>')) else { break };
        text.replace_range(start..=start + length, "");
    }
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    unescape(&words.join(" "))
}

fn unescape(text: &str) -> String {
    let mut out = text.to_owned();
    for (entity, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        out = out.replace(entity, character);
    }
    out
}

fn quote(text: &str, for_query: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(char::from(byte));
            }
            b'/' if !for_query => out.push('/'),
            b' ' if for_query => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn url_encode(state: &mut State<'_, '_>, value: &Value) -> Result<Value> {
    let pairs = match kind(value) {
        Kind::Dict(map) => map.iter().map(|(k, v)| [k.clone(), v.clone()]).collect(),
        Kind::Str(_) => vec![],
        _ if iterate::is_iterable(value) => {
            let mut pairs = Vec::new();
            for item in iterate::items(state, value)? {
                match <[Value; 2]>::try_from(iterate::items(state, &item)?) {
                    Ok(pair) => pairs.push(pair),
                    Err(_) => return value_error("urlencode: expected pairs"),
                }
            }
            pairs
        }
        _ => vec![],
    };
    if matches!(kind(value), Kind::Str(_)) || !iterate::is_iterable(value) {
        return Ok(Value::from(quote(&print::text(state, value)?, false)));
    }
    let mut parts = Vec::with_capacity(pairs.len());
    for [key, item] in pairs {
        let key = quote(&print::text(state, &key)?, true);
        parts.push(format!("{key}={}", quote(&print::text(state, &item)?, true)));
    }
    Ok(Value::from(parts.join("&")))
}

fn xml_attributes(state: &mut State<'_, '_>, value: &Value, space: bool) -> Result<Value> {
    let Kind::Dict(map) = kind(value) else {
        return type_error(format!("'{}' object has no attribute 'items'", type_name(value)));
    };
    let mut parts = Vec::with_capacity(map.len());
    for (key, item) in map {
        if matches!(kind(item), Kind::None | Kind::Undefined(_)) {
            continue;
        }
        let key = print::text(state, key)?;
        if key.contains([' ', '\t', '\n', '\r', '\u{b}', '\u{c}', '/', '>', '=']) {
            let message = format!("Invalid character in attribute name: '{key}'");
            return fail(FailureKind::Value, message);
        }
        let text = print::text(state, item)?;
        let text = if item.is_safe() { text } else { escape(&text) };
        parts.push(format!("{}=\"{text}\"", escape(&key)));
    }
    let joined = parts.join(" ");
    Ok(Value::from(if space && !joined.is_empty() { format!(" {joined}") } else { joined }))
}
