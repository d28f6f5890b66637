//! Filters that look at items through attributes, tests and other filters.

use minijinja::{State, Value};

use crate::template::runtime::arguments::required;
use crate::template::runtime::kind::{Kind, kind};
use crate::template::runtime::objects::Generator;
use crate::template::runtime::{Arguments, Result, access, fail, iterate, type_error};
use crate::template::{FailureKind, is};

/// The result, or `None` for a filter of another kind.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    Ok(Some(match args.name {
        "map" => map(state, value, args)?,
        "select" => select(state, value, args, true, false)?,
        "reject" => select(state, value, args, false, false)?,
        "selectattr" => select(state, value, args, true, true)?,
        "rejectattr" => select(state, value, args, false, true)?,
        "attr" => {
            let [name] = args.bind(["name"])?;
            let name = required(name, "attr", "name")?;
            match kind(&name) {
                Kind::Str(name) => access::strict_attribute(value, name)?,
                _ => return type_error("attribute name must be string"),
            }
        }
        _ => return Ok(None),
    }))
}

/// What a dotted path of attributes leads to; `default` stands in for what is undefined.
pub(super) fn path(item: &Value, attribute: &Value, default: Option<&Value>) -> Result<Value> {
    let parts: Vec<Value> = match kind(attribute) {
        Kind::Str(path) => path
            .split('.')
            .map(|part| match part.parse::<u64>() {
                Ok(index) if part.bytes().all(|b| b.is_ascii_digit()) => Value::from(index),
                _ => Value::from(part),
            })
            .collect(),
        Kind::None => vec![],
        _ => vec![attribute.clone()],
    };
    let mut value = item.clone();
    for part in &parts {
        value = access::item(&value, part)?;
        if let Some(default) = default
            && matches!(kind(&value), Kind::Undefined(_))
        {
            value = default.clone();
        }
    }
    Ok(value)
}

fn map(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    // Jinja2 looks at the arguments only when there are items.
    if !value.is_true() {
        return Ok(Generator::of(vec![]));
    }
    if args.positional.is_empty() && args.keywords.contains_key("attribute") {
        let [attribute, default] = args.bind(["attribute", "default"])?;
        let attribute = required(attribute, "map", "attribute")?;
        let default = default.filter(|default| !default.is_none());
        return Ok(Generator::collect(|out| {
            for item in iterate::items(state, value)? {
                out.push(path(&item, &attribute, default.as_ref())?);
            }
            Ok(())
        }));
    }
    let Some((filter, rest)) = args.positional.split_first() else {
        return fail(FailureKind::Other, "map requires a filter argument");
    };
    let Kind::Str(filter) = kind(filter) else {
        return type_error("map: the name of a filter must be str");
    };
    let filter = filter.to_owned();
    let rest = with_keywords(rest, &args);
    Ok(Generator::collect(|out| {
        for item in iterate::items(state, value)? {
            state.consume_fuel(8)?;
            out.push(super::call(state, &filter, &item, &rest)?);
        }
        Ok(())
    }))
}

/// Positional arguments with the keyword ones behind them, as a call wants them.
fn with_keywords(rest: &[Value], args: &Arguments<'_>) -> Vec<Value> {
    let mut values = rest.to_vec();
    if !args.keywords.is_empty() {
        let keywords = args.keywords.iter().map(|(k, v)| (k.as_str(), v.clone()));
        values.push(keywords.collect::<minijinja::value::Kwargs>().into());
    }
    values
}

fn select(
    state: &mut State<'_, '_>,
    value: &Value,
    args: Arguments<'_>,
    wanted: bool,
    by_attribute: bool,
) -> Result<Value> {
    if !value.is_true() {
        return Ok(Generator::of(vec![]));
    }
    let (attribute, rest) = match (by_attribute, args.positional.split_first()) {
        (false, _) => (None, args.positional),
        (true, Some((attribute, rest))) => (Some(attribute.clone()), rest),
        (true, None) => {
            return fail(FailureKind::Other, "Missing parameter for attribute name");
        }
    };
    let test = match rest.split_first() {
        None => None,
        Some((name, rest)) => match kind(name) {
            Kind::Str(name) => Some((name.to_owned(), with_keywords(rest, &args))),
            _ => return type_error("the name of a test must be str"),
        },
    };
    Ok(Generator::collect(|out| {
        for item in iterate::items(state, value)? {
            state.consume_fuel(8)?;
            let looked_at = match &attribute {
                Some(attribute) => path(&item, attribute, None)?,
                None => item.clone(),
            };
            let answer = match &test {
                Some((name, rest)) => is::call(state, name, &looked_at, rest)?,
                None => looked_at.is_true(),
            };
            if answer == wanted {
                out.push(item);
            }
        }
        Ok(())
    }))
}
