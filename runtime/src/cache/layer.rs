use std::fmt;

use crate::{Error, Result};

/// What one layer remembers: the name of a storage and its parameters.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheLayer {
    storage: String,
    params: Vec<(String, Param)>,
}

/// A parameter of a storage.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Param {
    /// Counts and lengths.
    Int(i64),
    /// Words, such as the kind of a read.
    Text(String),
    /// Switches.
    Flag(bool),
}

impl From<i64> for Param {
    fn from(value: i64) -> Self {
        Param::Int(value)
    }
}

impl From<i32> for Param {
    fn from(value: i32) -> Self {
        Param::Int(i64::from(value))
    }
}

impl From<bool> for Param {
    fn from(value: bool) -> Self {
        Param::Flag(value)
    }
}

impl From<&str> for Param {
    fn from(value: &str) -> Self {
        Param::Text(value.to_owned())
    }
}

impl From<String> for Param {
    fn from(value: String) -> Self {
        Param::Text(value)
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Int(value) => write!(f, "{value}"),
            Param::Text(value) => write!(f, "{value:?}"),
            Param::Flag(value) => write!(f, "{value}"),
        }
    }
}

impl CacheLayer {
    /// A layer of the storage of that name, such as `full`.
    pub fn new(storage: impl Into<String>) -> Self {
        CacheLayer { storage: storage.into(), params: Vec::new() }
    }

    /// Sets a parameter.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Param>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    /// The storage's name.
    pub fn storage(&self) -> &str {
        &self.storage
    }

    /// All parameters as they were given.
    pub fn params(&self) -> &[(String, Param)] {
        &self.params
    }

    /// The parameter of that name; the last one counts.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// A length or count from 1 to 2^30.
    ///
    /// # Errors
    /// When it is absent, not an integer or out of range.
    pub fn length(&self, name: &str) -> Result<i32> {
        let wrong = |found: String| {
            Error::input(
                format!("cache layer {:?}: {name}", self.storage),
                "an integer from 1 to 2^30",
                found,
            )
        };
        match self.param(name) {
            Some(Param::Int(value)) => i32::try_from(*value)
                .ok()
                .filter(|v| (1..=1 << 30).contains(v))
                .ok_or_else(|| wrong(value.to_string())),
            Some(other) => Err(wrong(other.to_string())),
            None => Err(wrong("nothing".into())),
        }
    }

    /// A switch; absent is false.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.param(name), Some(Param::Flag(true)))
    }

    /// A word; absent is `None`.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.param(name) {
            Some(Param::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// The number of a layer's cache within its set. Layers that share keys and values hold the slot of
/// their donor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(u32);

impl Slot {
    /// A layer that remembers nothing.
    pub const NONE: Slot = Slot(u32::MAX);

    /// The slot of that number.
    pub const fn new(index: u32) -> Self {
        Slot(index)
    }

    /// Its number; `None` for [`Slot::NONE`].
    pub fn index(self) -> Option<usize> {
        (self != Slot::NONE).then_some(self.0 as usize)
    }
}
