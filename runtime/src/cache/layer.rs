//! A layer's declaration: its storage with parameters, and the slot by which it is found.

use std::fmt;

use super::layout::{ParamDefault, ParamKind, StorageLayout};
use crate::{Error, Result};

/// What one layer remembers: a storage and its parameters.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheLayer {
    #[serde(serialize_with = "name_of")]
    storage: &'static StorageLayout,
    params: Vec<(String, Param)>,
}

fn name_of<S: serde::Serializer>(
    storage: &&'static StorageLayout,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(storage.name)
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
    /// A layer of a storage.
    pub fn new(storage: &'static StorageLayout) -> Self {
        CacheLayer { storage, params: Vec::new() }
    }

    /// Sets a parameter.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Param>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    /// The storage's name.
    pub fn storage(&self) -> &'static str {
        self.storage.name
    }

    /// What the storage declares.
    pub fn layout(&self) -> &'static StorageLayout {
        self.storage
    }

    /// All parameters as they were given.
    pub fn params(&self) -> &[(String, Param)] {
        &self.params
    }

    /// The parameter of that name, the last one that was given; else the storage's default.
    pub fn param(&self, name: &str) -> Option<Param> {
        let given = self.params.iter().rev().find(|(own, _)| own == name);
        given.map(|(_, value)| value.clone()).or_else(|| {
            self.storage.param(name)?.default.map(|default| match default {
                ParamDefault::Int(value) => Param::Int(value),
                ParamDefault::Flag(value) => Param::Flag(value),
                ParamDefault::Word(word) => Param::Text(word.to_owned()),
            })
        })
    }

    fn wrong<T>(&self, name: &str, expected: impl Into<String>) -> Result<T> {
        let found =
            self.param(name).map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        let what = format!("cache layer {:?}: {name}", self.storage.name);
        Err(Error::input(what, expected.into(), found))
    }

    /// A length or count from 1 to 2^30.
    ///
    /// # Errors
    /// When it is absent, not an integer or out of range.
    pub fn length(&self, name: &str) -> Result<i32> {
        let length = match self.param(name) {
            Some(Param::Int(value)) => i32::try_from(value).ok(),
            _ => None,
        };
        match length.filter(|value| (1..=1 << 30).contains(value)) {
            Some(value) => Ok(value),
            None => self.wrong(name, "an integer from 1 to 2^30"),
        }
    }

    /// A switch.
    ///
    /// # Errors
    /// When it is absent or none.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.param(name) {
            Some(Param::Flag(flag)) => Ok(flag),
            _ => self.wrong(name, "true or false"),
        }
    }

    /// The value that stands where the parameter's word does in the storage's list.
    ///
    /// # Errors
    /// When it is absent or none of the storage's words.
    pub fn pick<T: Copy>(&self, name: &str, values: &[T]) -> Result<T> {
        let words = match self.storage.param(name).map(|param| param.kind) {
            Some(ParamKind::Words(words)) => words,
            _ => &[],
        };
        let place = match self.param(name) {
            Some(Param::Text(text)) => words.iter().position(|word| *word == text),
            _ => None,
        };
        match place.and_then(|place| values.get(place)) {
            Some(value) => Ok(*value),
            None => self.wrong(name, format!("one of {}", words.join(", "))),
        }
    }

    /// Checks what was given against what the storage takes.
    ///
    /// # Errors
    /// Names the first parameter that the storage does not know, that is missing, or that is of
    /// another type.
    pub fn check(&self) -> Result<()> {
        for (name, value) in &self.params {
            if self.storage.param(name).is_none() {
                let known: Vec<&str> = self.storage.params.iter().map(|own| own.name).collect();
                let expected = match known.as_slice() {
                    [] => "no parameter".to_owned(),
                    known => format!("a parameter among {}", known.join(", ")),
                };
                let what = format!("cache layer {:?}", self.storage.name);
                return Err(Error::input(what, expected, format!("{name} = {value}")));
            }
        }
        for param in self.storage.params {
            match param.kind {
                ParamKind::Int => self.length(param.name).map(drop)?,
                ParamKind::Flag => self.flag(param.name).map(drop)?,
                ParamKind::Words(words) => self.pick(param.name, words).map(drop)?,
            }
        }
        Ok(())
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
