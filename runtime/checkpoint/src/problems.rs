//! Several errors told at once, and the nearest of known names.

use std::error::Error;
use std::fmt;
use std::ops::Deref;

/// How many errors the text of [`Problems`] spells out before it counts the rest.
const SHOWN: usize = 50;

/// Several errors found in one pass, never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems<E>(Vec<E>);

impl<E> Problems<E> {
    /// `Err` when there are errors, otherwise `Ok(value)`.
    pub fn check<T>(errors: Vec<E>, value: T) -> Result<T, Self> {
        if errors.is_empty() { Ok(value) } else { Err(Problems(errors)) }
    }

    /// The errors, in the order in which they were found.
    pub fn into_vec(self) -> Vec<E> {
        self.0
    }
}

impl<E> From<E> for Problems<E> {
    fn from(error: E) -> Self {
        Problems(vec![error])
    }
}

impl<E> Deref for Problems<E> {
    type Target = [E];
    fn deref(&self) -> &[E] {
        &self.0
    }
}

impl<E> IntoIterator for Problems<E> {
    type Item = E;
    type IntoIter = std::vec::IntoIter<E>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<E: fmt::Display> fmt::Display for Problems<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().take(SHOWN).enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            rest => write!(f, "\n... and {rest} more"),
        }
    }
}

impl<E: Error> Error for Problems<E> {}

/// The candidate nearest to `name` by edit distance, when it is near enough to be a slip: at most
/// a third of the name's length away.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|c| *c != name && c.len().abs_diff(name.len()) <= limit * 4)
        .map(|c| (strsim::osa_distance(name, c), c))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, c)| c)
}
