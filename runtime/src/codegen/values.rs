//! Values of a config in generated code: what a manifest's expressions come down to.

use specc_checkpoint::config::{Key, Reader};
use specc_checkpoint::map::{Match, Present};
use specc_checkpoint::tensors::Dtype as StoredType;

use crate::{Error, Result};

/// The value of a nullable key.
///
/// # Errors
/// When it is none; `name` is what the manifest calls it.
pub fn given<T>(value: Option<T>, name: &str) -> Result<T> {
    value.ok_or_else(|| Error::Check(format!("config.json gives no value for {name}")))
}

/// A word that must be one of a list.
///
/// # Errors
/// When it is none of them.
pub fn one_word(reader: &Reader<'_>, key: &str, word: &str, words: &[&str]) -> Result<()> {
    if words.contains(&word) {
        return Ok(());
    }
    let list: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    Err(reader.invalid(Key::new(key), format!("one of {}", list.join(", "))).into())
}

/// An owned copy of a list of words.
pub fn owned_words<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

fn overflow(a: i64, operator: &str, b: i64) -> Error {
    Error::Check(format!("{a} {operator} {b} is too large"))
}

/// `a + b`
///
/// # Errors
/// On overflow.
pub fn plus(a: i64, b: i64) -> Result<i64> {
    a.checked_add(b).ok_or_else(|| overflow(a, "+", b))
}

/// `a - b`
///
/// # Errors
/// On overflow.
pub fn minus(a: i64, b: i64) -> Result<i64> {
    a.checked_sub(b).ok_or_else(|| overflow(a, "-", b))
}

/// `a * b`
///
/// # Errors
/// On overflow.
pub fn times(a: i64, b: i64) -> Result<i64> {
    a.checked_mul(b).ok_or_else(|| overflow(a, "*", b))
}

/// `a ** b`
///
/// # Errors
/// On overflow, and for a negative power.
pub fn int_pow(a: i64, b: i64) -> Result<i64> {
    let power = u32::try_from(b).ok();
    power.and_then(|power| a.checked_pow(power)).ok_or_else(|| overflow(a, "**", b))
}

/// Integers as sizes of axes.
///
/// # Errors
/// When one does not fit 32 bits.
pub fn sizes(values: &[i64]) -> Result<Vec<i32>> {
    values.iter().map(|value| super::size(*value)).collect()
}

/// The letter `text[i]`.
///
/// # Errors
/// When there is none.
pub fn letter(text: &str, i: i64) -> Result<&str> {
    let at = usize::try_from(i).ok();
    let found = at.and_then(|at| text.char_indices().nth(at));
    found
        .and_then(|(start, letter)| text.get(start..start + letter.len_utf8()))
        .ok_or_else(|| Error::Check(format!("{text:?} has no letter {i}")))
}

/// The least of a list.
///
/// # Errors
/// When the list is empty.
pub fn min_int(list: &[i64], name: &str) -> Result<i64> {
    list.iter().copied().min().ok_or_else(|| empty(name))
}

/// The greatest of a list.
///
/// # Errors
/// When the list is empty.
pub fn max_int(list: &[i64], name: &str) -> Result<i64> {
    list.iter().copied().max().ok_or_else(|| empty(name))
}

/// The least of a list.
///
/// # Errors
/// When the list is empty.
pub fn min_float(list: &[f64], name: &str) -> Result<f64> {
    list.iter().copied().reduce(f64::min).ok_or_else(|| empty(name))
}

/// The greatest of a list.
///
/// # Errors
/// When the list is empty.
pub fn max_float(list: &[f64], name: &str) -> Result<f64> {
    list.iter().copied().reduce(f64::max).ok_or_else(|| empty(name))
}

fn json_numbers(list: &serde_json::Value) -> Result<Vec<f64>> {
    list.as_array().into_iter().flatten().map(json_float).collect()
}

/// The least of a JSON list of numbers.
///
/// # Errors
/// When it is something else, or empty.
pub fn json_min(list: &serde_json::Value, name: &str) -> Result<f64> {
    min_float(&json_numbers(list)?, name)
}

/// The greatest of a JSON list of numbers.
///
/// # Errors
/// When it is something else, or empty.
pub fn json_max(list: &serde_json::Value, name: &str) -> Result<f64> {
    max_float(&json_numbers(list)?, name)
}

fn empty(name: &str) -> Error {
    Error::Check(format!("{name} is empty"))
}

/// A JSON value as an integer.
///
/// # Errors
/// When it is something else.
pub fn json_int(value: &serde_json::Value) -> Result<i64> {
    value.as_i64().ok_or_else(|| Error::Check(format!("expected an integer, found {value}")))
}

/// A JSON value as a number.
///
/// # Errors
/// When it is something else.
pub fn json_float(value: &serde_json::Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| Error::Check(format!("expected a number, found {value}")))
}

/// A JSON value as a bool.
///
/// # Errors
/// When it is something else.
pub fn json_bool(value: &serde_json::Value) -> Result<bool> {
    value.as_bool().ok_or_else(|| Error::Check(format!("expected true or false, found {value}")))
}

/// A JSON value as a word.
///
/// # Errors
/// When it is something else.
pub fn json_str(value: &serde_json::Value) -> Result<&str> {
    value.as_str().ok_or_else(|| Error::Check(format!("expected a string, found {value}")))
}

/// The element `list[i]` of a JSON list.
///
/// # Errors
/// When there is none.
pub fn json_at(value: &serde_json::Value, i: i64) -> Result<&serde_json::Value> {
    let found = usize::try_from(i).ok().and_then(|i| value.get(i));
    found.ok_or_else(|| Error::Check(format!("{value} has no element {i}")))
}

/// The entry `object[key]` of a JSON object, null where there is none.
pub fn json_key<'v>(value: &'v serde_json::Value, key: &str) -> &'v serde_json::Value {
    value.get(key).unwrap_or(&serde_json::Value::Null)
}

/// Whether a JSON list holds a value.
pub fn json_holds(list: &serde_json::Value, value: &serde_json::Value) -> bool {
    list.as_array().is_some_and(|items| items.contains(value))
}

/// A condition of a weight map: errors as text.
///
/// # Errors
/// Those of the condition.
pub fn condition(holds: impl FnOnce() -> Result<bool>) -> Result<bool, String> {
    holds().map_err(|error| error.to_string())
}

/// A stored type by its name.
///
/// # Errors
/// When there is no such type.
pub fn dtype(name: &str) -> Result<StoredType> {
    StoredType::parse(name)
        .ok_or_else(|| Error::Check(format!("{name:?} is no type of a stored tensor")))
}

/// What a pattern of a weight map caught, as a number.
///
/// # Errors
/// When it caught none, or no number.
pub fn capture(found: &Match<'_>, name: &str) -> Result<i64> {
    found.int(name).ok_or_else(|| Error::Check(format!("{{{name}}} caught no number")))
}

/// Whether the checkpoint holds a tensor that the pattern fits.
///
/// # Errors
/// When the pattern is none.
pub fn any_stored(present: &Present, pattern: &str) -> Result<bool> {
    present.any(pattern).map_err(Error::Weights)
}

/// How many tensors of the checkpoint the pattern fits.
///
/// # Errors
/// When the pattern is none.
pub fn count_stored(present: &Present, pattern: &str) -> Result<i64> {
    present.count(pattern).map_err(Error::Weights)
}

/// The size of an axis of the first tensor that a pattern finds; 0 when it finds none.
///
/// # Errors
/// When the pattern is none.
pub fn stored_dim(present: &Present, pattern: &str, axis: i64) -> Result<i64> {
    Ok(present.dim(pattern, axis).map_err(Error::Weights)?.unwrap_or(0))
}

/// The stored type of the first tensor that a pattern finds; empty when it finds none.
///
/// # Errors
/// When the pattern is none.
pub fn stored_type(present: &Present, pattern: &str) -> Result<&'static str> {
    Ok(present.dtype(pattern).map_err(Error::Weights)?.map_or("", |found| found.name()))
}
