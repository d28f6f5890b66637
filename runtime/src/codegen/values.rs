//! Values of a config in generated code: what a manifest's expressions come down to.

use specc_checkpoint::config::{Key, Reader};
use specc_checkpoint::map::{Match, Present};
use specc_checkpoint::tensors::Dtype as StoredType;

use crate::{Error, Result};

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

/// Integers as sizes of axes.
///
/// # Errors
/// When one does not fit 32 bits.
pub fn sizes(values: &[i64]) -> Result<Vec<i32>> {
    values.iter().map(|value| super::size(*value)).collect()
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
