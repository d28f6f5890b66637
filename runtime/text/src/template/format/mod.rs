//! Python's two ways of formatting: `%` and `str.format`.

pub(super) mod braces;
mod numbers;
pub(super) mod percent;
