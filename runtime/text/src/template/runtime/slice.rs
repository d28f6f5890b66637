//! Subscripts with colons.

use minijinja::value::Tuple;
use minijinja::{State, Value};

use super::kind::{Kind, as_int, kind};
use super::objects::{Range, UndefinedValue, fail_undefined};
use super::{Result, charge, type_name, value_error};

/// `value[start:stop:step]`; undefined where Python has a TypeError, as Jinja2's subscripts are.
pub(in super::super) fn slice(
    state: &State<'_, '_>,
    value: &Value,
    parts: [&Value; 3],
) -> Result<Value> {
    if let Kind::Undefined(what) = kind(value) {
        return fail_undefined(what);
    }
    let [start, stop, step] = parts;
    let index = |part: &Value| match as_int(part) {
        None if part.is_none() => Some(None),
        found => found.map(Some),
    };
    let (Some(start), Some(stop), Some(step)) = (index(start), index(stop), index(step)) else {
        return Ok(UndefinedValue::missing("slice indices must be integers or none"));
    };
    match kind(value) {
        Kind::Str(s) => {
            charge(state, s.len())?;
            let plain = step.is_none_or(|step| step == 1);
            if plain && s.is_ascii() {
                let at = positions(s.len(), start, stop, step)?;
                let range = at.start as usize..at.start as usize + at.len;
                return Ok(Value::from(s.get(range).unwrap_or_default()));
            }
            let chars: Vec<char> = s.chars().collect();
            Ok(Value::from(pick(&chars, start, stop, step)?.into_iter().collect::<String>()))
        }
        Kind::List(items) => Ok(Value::from(pick(items, start, stop, step)?)),
        Kind::Tuple(items) => Ok(Value::from(Tuple::from(pick(items, start, stop, step)?))),
        Kind::Bytes(bytes) => Ok(Value::from_bytes(pick(bytes, start, stop, step)?)),
        Kind::Range(range) => {
            let at = positions(range.len, start, stop, step)?;
            let step = range.step * at.step;
            let start = range.start + at.start * range.step;
            let stop = start + at.len as i128 * step;
            Ok(Value::from_object(Range { start, stop, step, len: at.len }))
        }
        _ => Ok(UndefinedValue::missing(format!("'{}' object has no slices", type_name(value)))),
    }
}

struct Positions {
    start: i128,
    step: i128,
    len: usize,
}

fn pick<T: Clone>(
    items: &[T],
    start: Option<i128>,
    stop: Option<i128>,
    step: Option<i128>,
) -> Result<Vec<T>> {
    let at = positions(items.len(), start, stop, step)?;
    let index = |i: usize| usize::try_from(at.start + i as i128 * at.step).unwrap_or(usize::MAX);
    Ok((0..at.len).filter_map(|i| items.get(index(i)).cloned()).collect())
}

/// Python's `slice.indices`, and how many there are.
fn positions(
    len: usize,
    start: Option<i128>,
    stop: Option<i128>,
    step: Option<i128>,
) -> Result<Positions> {
    let n = len as i128;
    let step = step.unwrap_or(1).clamp(-(1 << 64), 1 << 64);
    if step == 0 {
        return value_error("slice step cannot be zero");
    }
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |i: i128| if i < 0 { i.saturating_add(n).max(low) } else { i.min(high) };
    let start = start.map_or(if step > 0 { low } else { high }, clamp);
    let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
    let distance = if step > 0 { stop - start } else { start - stop };
    let len = if distance <= 0 { 0 } else { (distance - 1) / step.abs() + 1 };
    Ok(Positions { start, step, len: usize::try_from(len).unwrap_or(0) })
}
