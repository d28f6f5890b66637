//! Methods of lists, tuples, dicts and numbers.

use indexmap::IndexMap;
use minijinja::{State, Value};

use crate::template::runtime::arguments::{optional_integer, required};
use crate::template::runtime::compare::equal;
use crate::template::runtime::kind::{Kind, int, kind};
use crate::template::runtime::objects::{DictView, Viewed};
use crate::template::runtime::{
    Arguments, Result, access, iterate, operators, type_error, unsupported, value_error,
};

pub(super) fn sequence(
    items: &[Value],
    receiver: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    Ok(Some(match name {
        "count" => {
            let [wanted] = args.bind(["value"])?;
            let wanted = required(wanted, name, "value")?;
            Value::from(items.iter().filter(|item| equal(item, &wanted)).count())
        }
        "index" => {
            let [wanted, start, stop] = args.bind(["value", "start", "stop"])?;
            let wanted = required(wanted, name, "value")?;
            let n = items.len() as i128;
            let place = |i: i128| if i < 0 { (i + n).max(0) } else { i };
            let start = place(optional_integer(start.as_ref(), name)?.unwrap_or(0));
            let stop = place(optional_integer(stop.as_ref(), name)?.unwrap_or(n));
            let found = items
                .iter()
                .enumerate()
                .find(|(i, item)| (start..stop).contains(&(*i as i128)) && equal(item, &wanted));
            match found {
                Some((i, _)) => Value::from(i),
                None => return value_error(format!("{wanted} is not in list")),
            }
        }
        "copy" => {
            args.none()?;
            receiver.clone()
        }
        _ => return Ok(None),
    }))
}

pub(super) fn dict(
    state: &State<'_, '_>,
    map: &IndexMap<Value, Value>,
    receiver: &Value,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    Ok(Some(match name {
        "get" => {
            if !args.keywords.is_empty() {
                return type_error("dict.get() takes no keyword arguments");
            }
            let [key, default] = args.bind(["key", "default"])?;
            let key = required(key, name, "key")?;
            iterate::hashable(&key)?;
            access::lookup(map, &key).unwrap_or_else(|| default.unwrap_or_else(|| Value::from(())))
        }
        "items" | "keys" | "values" => {
            args.none()?;
            crate::template::runtime::charge(state, map.len() * 8)?;
            let viewed = match name {
                "items" => Viewed::Items,
                "keys" => Viewed::Keys,
                _ => Viewed::Values,
            };
            operators::shallow(state, &DictView::of(map, viewed))?
        }
        "copy" => {
            args.none()?;
            receiver.clone()
        }
        "fromkeys" => from_keys(state, args)?,
        _ => return Ok(None),
    }))
}

pub(super) fn from_keys(state: &State<'_, '_>, args: Arguments<'_>) -> Result<Value> {
    let [keys, value] = args.bind(["iterable", "value"])?;
    let keys = iterate::items(state, &required(keys, "fromkeys", "iterable")?)?;
    let value = value.unwrap_or_else(|| Value::from(()));
    let mut map = IndexMap::with_capacity(keys.len());
    for key in keys {
        iterate::hashable(&key)?;
        map.insert(key, value.clone());
    }
    operators::shallow(state, &Value::from_object(map))
}

pub(super) fn number(receiver: &Value, args: Arguments<'_>) -> Result<Option<Value>> {
    let name = args.name;
    let integer = match kind(receiver) {
        Kind::Int(i) => Some(i),
        Kind::Bool(b) => Some(i128::from(b)),
        _ => None,
    };
    Ok(Some(match (name, integer, kind(receiver)) {
        ("bit_length", Some(i), _) => Value::from(u128::BITS - i.unsigned_abs().leading_zeros()),
        ("bit_count", Some(i), _) => Value::from(i.unsigned_abs().count_ones()),
        ("is_integer", Some(_), _) => Value::from(true),
        ("is_integer", _, Kind::Float(f)) => Value::from(f.is_finite() && f.fract() == 0.0),
        ("conjugate", Some(i), _) => int(i),
        ("conjugate", _, Kind::Float(f)) => Value::from(f),
        ("as_integer_ratio" | "hex", ..) => {
            return unsupported(format!("the method `{name}` of a number"));
        }
        _ => return Ok(None),
    }))
}
