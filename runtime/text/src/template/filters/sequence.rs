//! Filters on lists, dicts and other iterables.

use minijinja::{State, Value};

use super::select::path;
use super::text::count;
use crate::template::FailureKind;
use crate::template::runtime::arguments::{flag, required};
use crate::template::runtime::compare::{equal, order, sort_by_keys};
use crate::template::runtime::kind::{Kind, kind};
use crate::template::runtime::objects::{Generator, Group, UndefinedValue};
use crate::template::runtime::{
    Arguments, Result, arithmetic, charge, fail, iterate, operators, type_error, type_name,
};

/// The result, or `None` for a filter of another kind.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    Ok(Some(match name {
        "length" | "count" => {
            args.none()?;
            match iterate::length(value) {
                Some(n) => Value::from(n),
                None => {
                    return type_error(format!(
                        "object of type '{}' has no len()",
                        type_name(value)
                    ));
                }
            }
        }
        "default" | "d" => {
            let [default, boolean] = args.bind(["default_value", "boolean"])?;
            let missing = matches!(kind(value), Kind::Undefined(_))
                || (flag(boolean.as_ref()) && !value.is_true());
            if missing { default.unwrap_or_else(|| Value::from("")) } else { value.clone() }
        }
        "list" => {
            args.none()?;
            Value::from(iterate::items(state, value)?)
        }
        "first" => {
            args.none()?;
            let first = match kind(value) {
                Kind::Generator(generator) => generator.next()?,
                Kind::Str(s) => s.chars().next().map(Value::from),
                Kind::List(items) | Kind::Tuple(items) => items.first().cloned(),
                _ => iterate::items(state, value)?.into_iter().next(),
            };
            first.unwrap_or_else(|| UndefinedValue::missing("No first item, sequence was empty."))
        }
        "last" => {
            args.none()?;
            let last = match kind(value) {
                Kind::Generator(_) | Kind::Undefined(_) => {
                    return type_error(format!("'{}' object is not reversible", type_name(value)));
                }
                Kind::Str(s) => s.chars().next_back().map(Value::from),
                Kind::List(items) | Kind::Tuple(items) => items.last().cloned(),
                _ => iterate::items(state, value)?.pop(),
            };
            last.unwrap_or_else(|| UndefinedValue::missing("No last item, sequence was empty."))
        }
        "reverse" => {
            args.none()?;
            if let Kind::Str(s) = kind(value) {
                arithmetic::keep_safe(value, s.chars().rev().collect())
            } else {
                let mut items = iterate::items(state, value)?;
                items.reverse();
                match kind(value) {
                    Kind::Generator(_) | Kind::Undefined(_) => Value::from(items),
                    _ => Generator::reversed(items),
                }
            }
        }
        "items" => {
            args.none()?;
            match kind(value) {
                Kind::Undefined(_) => Generator::of(vec![]),
                Kind::Dict(map) => {
                    charge(state, map.len() * 8)?;
                    let pairs = map.iter().map(|(k, v)| Value::from((k.clone(), v.clone())));
                    nested(state, pairs.collect())?
                }
                _ => Generator::collect(|_| type_error("Can only get item pairs from a mapping.")),
            }
        }
        "dictsort" => dict_sort(state, value, args)?,
        "sort" => sort(state, value, args)?,
        "unique" => unique(state, value, args)?,
        "min" | "max" => extreme(state, value, args)?,
        "sum" => {
            let [attribute, start] = args.bind(["attribute", "start"])?;
            let mut total = start.unwrap_or_else(|| Value::from(0));
            if matches!(kind(&total), Kind::Str(_)) {
                return type_error("sum() can't sum strings [use ''.join(seq) instead]");
            }
            let attribute = attribute.filter(|attribute| !attribute.is_none());
            for item in iterate::items(state, value)? {
                let item = match &attribute {
                    Some(attribute) => path(&item, attribute, None)?,
                    None => item,
                };
                total = arithmetic::binary(state, "+", &total, &item)?;
            }
            total
        }
        "batch" => {
            let [size, fill] = args.bind(["linecount", "fill_with"])?;
            let size = count(&required(size, name, "linecount")?, name)?;
            batch(state, value, size, fill.filter(|fill| !fill.is_none()))?
        }
        "slice" => {
            let [slices, fill] = args.bind(["slices", "fill_with"])?;
            let slices = count(&required(slices, name, "slices")?, name)?;
            divide(state, value, slices, fill.filter(|fill| !fill.is_none()))?
        }
        "groupby" => group_by(state, value, args)?,
        _ => return Ok(None),
    }))
}

/// A generator of containers, refused when they nest too deep.
fn nested(state: &State<'_, '_>, items: Vec<Value>) -> Result<Value> {
    for item in &items {
        operators::shallow(state, item)?;
    }
    Ok(Generator::of(items))
}

/// Strings compare without regard to case unless asked.
fn fold(value: Value, case_sensitive: bool) -> Value {
    match kind(&value) {
        Kind::Str(s) if !case_sensitive => Value::from(s.to_lowercase()),
        _ => value,
    }
}

fn dict_sort(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [case, by, reverse] = args.bind(["case_sensitive", "by", "reverse"])?;
    let by_value = match by.as_ref().and_then(Value::as_str) {
        None | Some("key") => false,
        Some("value") => true,
        Some(_) => {
            return fail(FailureKind::Other, "You can only sort by either \"key\" or \"value\"");
        }
    };
    let Kind::Dict(map) = kind(value) else {
        if let Kind::Undefined(what) = kind(value) {
            return crate::template::runtime::objects::fail_undefined(what);
        }
        return type_error(format!("'{}' object has no attribute 'items'", type_name(value)));
    };
    let case = flag(case.as_ref());
    let keyed = map
        .iter()
        .map(|(k, v)| {
            let key = if by_value { v } else { k };
            (fold(key.clone(), case), Value::from((k.clone(), v.clone())))
        })
        .collect();
    let sorted = sort_by_keys(state, keyed, flag(reverse.as_ref()))?;
    let pairs = Value::from(sorted.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>());
    operators::shallow(state, &pairs)
}

fn sort(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [reverse, case, attribute] = args.bind(["reverse", "case_sensitive", "attribute"])?;
    let case = flag(case.as_ref());
    let attributes: Vec<Value> = match attribute {
        Some(attribute) => match kind(&attribute) {
            Kind::Str(list) => list.split(',').map(Value::from).collect(),
            _ => vec![attribute],
        },
        None => vec![Value::from(())],
    };
    let mut keyed = Vec::new();
    for item in iterate::items(state, value)? {
        let mut key = Vec::with_capacity(attributes.len());
        for attribute in &attributes {
            key.push(fold(path(&item, attribute, None)?, case));
        }
        keyed.push((Value::from(key), item));
    }
    let sorted = sort_by_keys(state, keyed, flag(reverse.as_ref()))?;
    Ok(Value::from(sorted.into_iter().map(|(_, item)| item).collect::<Vec<_>>()))
}

fn unique(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [case, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let case = flag(case.as_ref());
    let attribute = attribute.unwrap_or_else(|| Value::from(()));
    let mut seen: Vec<Value> = Vec::new();
    Ok(Generator::collect(|out| {
        for item in iterate::items(state, value)? {
            let key = fold(path(&item, &attribute, None)?, case);
            iterate::hashable(&key)?;
            charge(state, seen.len())?;
            if !seen.iter().any(|other| equal(other, &key)) {
                seen.push(key);
                out.push(item);
            }
        }
        Ok(())
    }))
}

fn extreme(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let wants_less = args.name == "min";
    let [case, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let case = flag(case.as_ref());
    let attribute = attribute.unwrap_or_else(|| Value::from(()));
    let mut best: Option<(Value, Value)> = None;
    for item in iterate::items(state, value)? {
        let key = fold(path(&item, &attribute, None)?, case);
        let better = match &best {
            None => true,
            Some((other, _)) => {
                let op = if wants_less { "<" } else { ">" };
                let wanted =
                    if wants_less { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
                order(&key, other, op)? == Some(wanted)
            }
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(match best {
        Some((_, item)) => item,
        None => UndefinedValue::missing("No aggregated item, sequence was empty."),
    })
}

fn batch(
    state: &mut State<'_, '_>,
    value: &Value,
    size: usize,
    fill: Option<Value>,
) -> Result<Value> {
    let items = iterate::items(state, value)?;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for item in items {
        match rows.last_mut() {
            // A size of zero never equals the length, so all stays in one row.
            Some(row) if row.len() != size => row.push(item),
            _ => rows.push(vec![item]),
        }
    }
    if let (Some(fill), Some(row)) = (fill, rows.last_mut()) {
        let missing = size.saturating_sub(row.len());
        state.consume_fuel(missing as u64)?;
        row.extend(std::iter::repeat_n(fill, missing));
    }
    nested(state, rows.into_iter().map(Value::from).collect())
}

fn divide(
    state: &mut State<'_, '_>,
    value: &Value,
    slices: usize,
    fill: Option<Value>,
) -> Result<Value> {
    let items = iterate::items(state, value)?;
    if slices == 0 {
        return fail(FailureKind::Arithmetic, "integer division or modulo by zero");
    }
    state.consume_fuel(slices as u64)?;
    let (each, extra) = (items.len() / slices, items.len() % slices);
    let mut rest = items.into_iter();
    let mut out = Vec::with_capacity(slices);
    for slice in 0..slices {
        let mut part: Vec<Value> = rest.by_ref().take(each + usize::from(slice < extra)).collect();
        if slice >= extra
            && let Some(fill) = &fill
        {
            part.push(fill.clone());
        }
        out.push(Value::from(part));
    }
    nested(state, out)
}

fn group_by(state: &mut State<'_, '_>, value: &Value, args: Arguments<'_>) -> Result<Value> {
    let [attribute, default, case] = args.bind(["attribute", "default", "case_sensitive"])?;
    let attribute = required(attribute, "groupby", "attribute")?;
    let default = default.filter(|default| !default.is_none());
    let case = flag(case.as_ref());
    let mut keyed = Vec::new();
    for item in iterate::items(state, value)? {
        keyed.push((fold(path(&item, &attribute, default.as_ref())?, case), item));
    }
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in sort_by_keys(state, keyed, false)? {
        match groups.last_mut() {
            Some((last, items)) if equal(last, &key) => items.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::with_capacity(groups.len());
    for (key, items) in groups {
        let grouper = match items.first() {
            Some(first) if !case => path(first, &attribute, default.as_ref())?,
            _ => key,
        };
        out.push(Value::from_object(Group([grouper, Value::from(items)])));
    }
    operators::shallow(state, &Value::from(out))
}
