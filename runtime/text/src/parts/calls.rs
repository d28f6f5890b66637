//! Tool calls out of their text.

use serde_json::{Map, Value};

use super::{ToolCall, ToolCallFormat, sentinels};

const WRAPPER: (&str, &str) = ("<tool_call>", "</tool_call>");
const CDATA: (&str, &str) = ("<![CDATA[", "]]>");

/// What begins a call and what ends it.
pub(super) fn openers(format: ToolCallFormat) -> &'static [(&'static str, &'static str)] {
    match format {
        ToolCallFormat::None => &[],
        ToolCallFormat::Json | ToolCallFormat::ArgumentPairs => &[WRAPPER],
        // Models leave the wrapper out at times.
        ToolCallFormat::FunctionTags => &[WRAPPER, ("<function=", "</function>")],
        ToolCallFormat::NamedElements => &[("<function name=", "</function>")],
        ToolCallFormat::Sentinels => &[("<|tool_call>", "<tool_call|>")],
    }
}

/// Whether an opener stands around the call, and is not its first words.
pub(super) fn is_wrapper(open: &str) -> bool {
    !open.starts_with("<function")
}

/// Whether a closer is part of the call's text.
pub(super) fn closes_itself(close: &str) -> bool {
    close == "</function>"
}

/// The opener to give back with the text of something that is no call.
pub(super) fn opener_of(format: ToolCallFormat, close: &str, body: &str) -> &'static str {
    let own_words = body.starts_with("<function=") && close == "</function>";
    match openers(format)
        .iter()
        .find(|(open, end)| is_wrapper(open) && !own_words && (close.is_empty() || *end == close))
    {
        Some((open, _)) => open,
        None => "",
    }
}

/// Where a call ends, not looking into CDATA. What stands before `from` holds no end.
pub(super) fn find_end(
    text: &str,
    from: usize,
    close: &str,
    format: ToolCallFormat,
) -> Option<usize> {
    if format != ToolCallFormat::NamedElements {
        return text.get(from..)?.find(close).map(|at| from + at);
    }
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let end = rest.find(close)?;
        match rest.find(CDATA.0).filter(|start| *start < end) {
            None => return Some(at + end),
            Some(start) => {
                let inside = rest.get(start..)?;
                at += start + inside.find(CDATA.1)? + CDATA.1.len();
            }
        }
    }
}

/// The calls in a call's text; `None` when it does not follow the format.
pub(super) fn parse(format: ToolCallFormat, text: &str, tools: &Value) -> Option<Vec<ToolCall>> {
    match format {
        ToolCallFormat::None => None,
        ToolCallFormat::Json => json(text),
        ToolCallFormat::FunctionTags => function_tags(text, tools),
        ToolCallFormat::NamedElements => named_elements(text, tools).map(|call| vec![call]),
        ToolCallFormat::Sentinels => sentinels::parse(text).map(|call| vec![call]),
        ToolCallFormat::ArgumentPairs => argument_pairs(text, tools).map(|call| vec![call]),
    }
}

fn json(text: &str) -> Option<Vec<ToolCall>> {
    let one = |value: &Value| {
        let name = value["name"].as_str()?.to_owned();
        let arguments = value.get("arguments").or_else(|| value.get("parameters"));
        let arguments = match arguments {
            None | Some(Value::Null) => Value::Object(Map::new()),
            // Arguments as the text of an object are an object too.
            Some(Value::String(text)) => {
                serde_json::from_str(text).ok().filter(Value::is_object)?
            }
            Some(other) => Some(other.clone()).filter(Value::is_object)?,
        };
        Some(ToolCall { name, arguments })
    };
    match serde_json::from_str(text.trim()).ok()? {
        Value::Array(items) if !items.is_empty() => items.iter().map(one).collect(),
        value => one(&value).map(|call| vec![call]),
    }
}

/// The text between two marks, and what follows.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    let start = text.find(open)? + open.len();
    text.get(start..)?.split_once(close)
}

/// Without the one line end that stands on each side of a value.
fn unwrapped(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text)
}

fn function_tags(text: &str, tools: &Value) -> Option<Vec<ToolCall>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = between(rest, "<function=", ">") {
        let end = after.find("</function>");
        let body = after.get(..end.unwrap_or(after.len()))?;
        let name = name.trim();
        let mut arguments = Map::new();
        let mut parameters = body;
        while let Some((key, after)) = between(parameters, "<parameter=", ">") {
            // A value that is not closed ends where the next one begins.
            let next = after.find("<parameter=").unwrap_or(after.len());
            let end = after.find("</parameter>").filter(|end| *end < next).unwrap_or(next);
            let value = unwrapped(after.get(..end)?);
            arguments.insert(key.trim().to_owned(), typed(value, tools, name, key.trim()));
            parameters = after.get(end..)?;
        }
        calls.push(ToolCall { name: name.to_owned(), arguments: Value::Object(arguments) });
        rest = match end {
            Some(end) => after.get(end..)?,
            None => "",
        };
    }
    (!calls.is_empty()).then_some(calls)
}

/// The quoted text of a `name` attribute, and what follows its tag.
fn name_attribute(text: &str) -> Option<(&str, &str)> {
    let after = text.split_once("name=")?.1;
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (name, rest) = after.get(1..)?.split_once(quote)?;
    Some((name, rest.split_once('>')?.1))
}

fn named_elements(text: &str, tools: &Value) -> Option<ToolCall> {
    let (name, mut rest) = name_attribute(text.get(text.find("<function")?..)?)?;
    let mut arguments = Map::new();
    while let Some(start) = rest.find("<param") {
        let tag = rest.get(start..)?;
        let (key, body) = name_attribute(tag)?;
        let close = if tag.starts_with("<parameter") { "</parameter>" } else { "</param>" };
        let (value, after) = match body.trim_start().strip_prefix(CDATA.0) {
            Some(inside) => {
                let (value, after) = inside.split_once(CDATA.1)?;
                (value.to_owned(), after)
            }
            None => {
                let (value, after) = body.split_once(close)?;
                (unescape(unwrapped(value)), after)
            }
        };
        arguments.insert(key.to_owned(), typed(&value, tools, name, key));
        rest = after;
    }
    Some(ToolCall { name: name.to_owned(), arguments: Value::Object(arguments) })
}

fn unescape(text: &str) -> String {
    // The ampersand comes last, so that what it gives is not read again.
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

fn argument_pairs(text: &str, tools: &Value) -> Option<ToolCall> {
    let end = text.find("<arg_key>").unwrap_or(text.len());
    let name = text.get(..end)?.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let mut arguments = Map::new();
    let mut rest = text.get(end..)?;
    while let Some((key, after)) = between(rest, "<arg_key>", "</arg_key>") {
        let (value, after) = between(after, "<arg_value>", "</arg_value>")?;
        let key = key.trim();
        arguments.insert(key.to_owned(), typed(value, tools, name, key));
        rest = after;
    }
    Some(ToolCall { name: name.to_owned(), arguments: Value::Object(arguments) })
}

/// A value written as text: text where the tool's schema says so, else what JSON makes of it.
fn typed(text: &str, tools: &Value, tool: &str, key: &str) -> Value {
    let schema = tools.as_array().into_iter().flatten().find_map(|entry| {
        let function = entry.get("function").unwrap_or(entry);
        (function["name"] == tool).then(|| &function["parameters"]["properties"][key]["type"])
    });
    if schema.is_some_and(|kind| kind == "string") {
        return Value::String(text.to_owned());
    }
    match text.trim() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "None" => Value::Null,
        trimmed => match serde_json::from_str(trimmed) {
            // A text in quotes stays as the model wrote it.
            Ok(Value::String(_)) | Err(_) => Value::String(text.to_owned()),
            Ok(value) => value,
        },
    }
}
