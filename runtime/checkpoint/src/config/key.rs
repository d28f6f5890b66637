//! One key of a configuration: where it may stand, its range, and reading it as a type.

use serde_json::Value;

use super::{ConfigError, ConfigFile, json};

/// A key of a configuration: where it is read from and within which bounds.
///
/// Under each root in turn the first path that is there wins. Null counts as absent, unless the
/// key is nullable and its [`Presence`] is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key<'a> {
    /// The name that the program uses; the only path when `paths` is empty.
    pub name: &'a str,
    /// Dotted paths, the first present one wins.
    pub paths: &'a [&'a str],
    /// Whether null is a value of its own: [`Presence::Null`] instead of [`Presence::Absent`].
    pub nullable: bool,
    /// Least and greatest integer.
    pub range: (i64, i64),
    /// Whether a float may be infinite.
    pub infinite: bool,
}

/// Integers lie within ±2^31 unless a key says otherwise.
const RANGE: (i64, i64) = (-(1 << 31), 1 << 31);

impl<'a> Key<'a> {
    /// A key that is read from the path of its own name.
    pub const fn new(name: &'a str) -> Self {
        Key { name, paths: &[], nullable: false, range: RANGE, infinite: false }
    }

    /// Reads from these paths instead, the first present one.
    pub const fn paths(self, paths: &'a [&'a str]) -> Self {
        Key { paths, ..self }
    }

    /// Tells null from absent.
    pub const fn nullable(self) -> Self {
        Key { nullable: true, ..self }
    }

    /// Bounds for integers, both allowed.
    pub const fn range(self, least: i64, greatest: i64) -> Self {
        Key { range: (least, greatest), ..self }
    }

    /// Lets floats be infinite, as in `"time_step_limit": [0.0, Infinity]`.
    pub const fn infinite(self) -> Self {
        Key { infinite: true, ..self }
    }
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(name: &'a str) -> Self {
        Key::new(name)
    }
}

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence<T> {
    /// Not there; for a key that is not nullable also null.
    Absent,
    /// There, and null.
    Null,
    /// There.
    Value(T),
}

impl<T> Presence<T> {
    /// The value; null and absent are `None`.
    pub fn value(self) -> Option<T> {
        match self {
            Presence::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The value, or `default` when absent; null stays `None`.
    pub fn or_default(self, default: T) -> Option<T> {
        match self {
            Presence::Absent => Some(default),
            Presence::Null => None,
            Presence::Value(value) => Some(value),
        }
    }
}

/// A type that a configuration value can be read as.
pub trait FromConfig: Sized {
    /// For error texts: `an integer`.
    const EXPECTED: &'static str;

    /// Reads `value`; the error says what was expected.
    fn from_config(value: &Value, key: &Key<'_>) -> Result<Self, String>;
}

impl FromConfig for i64 {
    const EXPECTED: &'static str = "an integer";

    /// Floats without a fraction are integers too.
    fn from_config(value: &Value, key: &Key<'_>) -> Result<Self, String> {
        let exact = value.as_i64().or_else(|| {
            // Within 2^53 a whole float is exactly that integer.
            value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64)
        });
        let (least, greatest) = key.range;
        match exact {
            Some(i) if (least..=greatest).contains(&i) => Ok(i),
            Some(_) => Err(format!("an integer from {least} to {greatest}")),
            None if value.is_u64() => Err(format!("an integer from {least} to {greatest}")),
            None => Err(Self::EXPECTED.into()),
        }
    }
}

impl FromConfig for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_config(value: &Value, key: &Key<'_>) -> Result<Self, String> {
        match json::number(value) {
            Some(f) if f.is_finite() || (key.infinite && !f.is_nan()) => Ok(f),
            Some(_) => Err("a finite number".into()),
            None => Err(Self::EXPECTED.into()),
        }
    }
}

impl FromConfig for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_config(value: &Value, _: &Key<'_>) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| Self::EXPECTED.into())
    }
}

impl FromConfig for String {
    const EXPECTED: &'static str = "a string";

    fn from_config(value: &Value, _: &Key<'_>) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| Self::EXPECTED.into())
    }
}

impl FromConfig for Value {
    const EXPECTED: &'static str = "a value";

    fn from_config(value: &Value, _: &Key<'_>) -> Result<Self, String> {
        Ok(value.clone())
    }
}

impl<T: FromConfig> FromConfig for Vec<T> {
    const EXPECTED: &'static str = "a list";

    /// Numbers in a text, `1,2,3`, are a list too.
    fn from_config(value: &Value, key: &Key<'_>) -> Result<Self, String> {
        let listed = value.as_str().and_then(numbers);
        let list = listed.as_ref().or_else(|| value.as_array());
        let list = list.ok_or_else(|| format!("a list, each {}", T::EXPECTED))?;
        let mut items = Vec::new();
        for (i, item) in list.iter().enumerate() {
            let one = T::from_config(item, key);
            items.push(one.map_err(|e| format!("{e} at [{i}], not {}", json::describe(item)))?);
        }
        Ok(items)
    }
}

/// The numbers of a text with commas between them; none where something else stands there.
fn numbers(text: &str) -> Option<Vec<Value>> {
    let number = |part: &str| serde_json::from_str(part.trim()).ok().filter(Value::is_number);
    text.split(',').map(number).collect()
}

/// Reads keys of a [`ConfigFile`] under its roots and records them as read.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    file: &'a ConfigFile,
    roots: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a ConfigFile, roots: &[&str]) -> Self {
        Reader { file, roots: roots.iter().map(|r| (*r).to_owned()).collect() }
    }

    /// The file that is read.
    pub fn file(&self) -> &'a ConfigFile {
        self.file
    }

    /// A reader whose roots are `path` under each root of this one.
    pub fn at(&self, path: &str) -> Reader<'a> {
        let roots = self.roots.iter().map(|r| join(r, path)).collect();
        Reader { file: self.file, roots }
    }

    /// What `key` holds; see [`Key`] for the order of look-up.
    pub fn get<'k, T: FromConfig>(
        &self,
        key: impl Into<Key<'k>>,
    ) -> Result<Presence<T>, ConfigError> {
        let key = key.into();
        match self.find(&key) {
            Found::Nothing => Ok(Presence::Absent),
            Found::Null(_) if key.nullable => Ok(Presence::Null),
            Found::Null(_) => Ok(Presence::Absent),
            Found::Value(path, value) => match T::from_config(value, &key) {
                Ok(value) => Ok(Presence::Value(value)),
                Err(expected) => Err(self.error(&path, expected, value)),
            },
        }
    }

    /// The value of `key`; null and absent are `None`.
    pub fn optional<'k, T: FromConfig>(
        &self,
        key: impl Into<Key<'k>>,
    ) -> Result<Option<T>, ConfigError> {
        self.get(key).map(Presence::value)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when it is absent or null.
    pub fn required<'k, T: FromConfig>(&self, key: impl Into<Key<'k>>) -> Result<T, ConfigError> {
        let key = key.into();
        self.get(key)?.value().ok_or_else(|| ConfigError::Missing {
            file: self.file.name(),
            key: self.expected_path(&key),
            expected: T::EXPECTED.to_owned(),
            null: matches!(self.find(&key), Found::Null(_)),
        })
    }

    /// [`Reader::optional`] as an integer.
    pub fn int<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<i64>, ConfigError> {
        self.optional(key)
    }

    /// [`Reader::optional`] as a float; integers count.
    pub fn float<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<f64>, ConfigError> {
        self.optional(key)
    }

    /// [`Reader::optional`] as a bool.
    pub fn bool<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<bool>, ConfigError> {
        self.optional(key)
    }

    /// [`Reader::optional`] as a string.
    pub fn string<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<String>, ConfigError> {
        self.optional(key)
    }

    /// [`Reader::optional`] as a list.
    pub fn list<'k, T: FromConfig>(
        &self,
        key: impl Into<Key<'k>>,
    ) -> Result<Option<Vec<T>>, ConfigError> {
        self.optional(key)
    }

    /// The JSON value itself; null and absent are `None`.
    pub fn json<'k>(&self, key: impl Into<Key<'k>>) -> Option<&'a Value> {
        match self.find(&key.into()) {
            Found::Value(_, value) => Some(value),
            _ => None,
        }
    }

    /// As [`Reader::json`] without recording the key as read: for containers whose members are read
    /// one by one.
    pub fn peek<'k>(&self, key: impl Into<Key<'k>>) -> Option<&'a Value> {
        match self.look_up(&key.into()) {
            Found::Value(_, value) => Some(value),
            _ => None,
        }
    }

    /// An error about the value of `key`, for checks beyond its type.
    pub fn invalid<'k>(&self, key: impl Into<Key<'k>>, expected: impl Into<String>) -> ConfigError {
        let key = key.into();
        let expected = expected.into();
        match self.find(&key) {
            Found::Value(path, value) => self.error(&path, expected, value),
            found => ConfigError::Missing {
                file: self.file.name(),
                key: self.expected_path(&key),
                expected,
                null: matches!(found, Found::Null(_)),
            },
        }
    }

    /// The dotted path where `key` was found with a value.
    pub fn path_of<'k>(&self, key: impl Into<Key<'k>>) -> Option<String> {
        match self.find(&key.into()) {
            Found::Value(path, _) => Some(path),
            _ => None,
        }
    }

    /// Where the value of `key` comes from, for error texts: `config.json says a.b = 3`, or that it
    /// does not say.
    pub fn told<'k>(&self, key: impl Into<Key<'k>>) -> String {
        let key = key.into();
        let file = self.file.name();
        match self.look_up(&key) {
            Found::Value(path, value) => {
                format!("{file} says {path} = {}", json::shortened(value))
            }
            _ => format!("{file} does not say {}", key.name),
        }
    }

    /// The paths of `name` under the roots, whether or not anything is there.
    pub(super) fn places(&self, name: &str) -> impl Iterator<Item = String> {
        self.roots.iter().map(move |root| join(root, name))
    }

    fn error(&self, path: &str, expected: String, value: &Value) -> ConfigError {
        ConfigError::Value {
            file: self.file.name(),
            key: path.to_owned(),
            expected,
            found: json::describe(value),
        }
    }

    fn find(&self, key: &Key<'_>) -> Found<'a> {
        let found = self.look_up(key);
        if let Found::Null(path) | Found::Value(path, _) = &found {
            self.file.mark_read(path);
        }
        if let Found::Value(_, value) = &found {
            self.mark_alike(key, value);
        }
        found
    }

    /// Another spelling, or the same under another root, that says the same says nothing more. One
    /// that says something else stays unread.
    fn mark_alike(&self, key: &Key<'_>, value: &Value) {
        let own = [key.name];
        let paths = if key.paths.is_empty() { &own } else { key.paths };
        for full in self.roots.iter().flat_map(|root| paths.iter().map(|path| join(root, path))) {
            if self.file.find(&full) == Some(value) {
                self.file.mark_read(&full);
            }
        }
    }

    fn look_up(&self, key: &Key<'_>) -> Found<'a> {
        let own = [key.name];
        let paths = if key.paths.is_empty() { &own } else { key.paths };
        let mut null = None;
        for root in &self.roots {
            for path in paths {
                let full = join(root, path);
                match self.file.find(&full) {
                    None => {}
                    Some(Value::Null) => null = null.or(Some(full)),
                    Some(value) => return Found::Value(full, value),
                }
            }
        }
        null.map_or(Found::Nothing, Found::Null)
    }

    /// The first place where a key that is absent could be.
    fn expected_path(&self, key: &Key<'_>) -> String {
        let root = self.roots.iter().find(|r| self.file.find(r).is_some());
        let path = key.paths.first().copied().unwrap_or(key.name);
        join(root.map_or("", String::as_str), path)
    }
}

enum Found<'a> {
    Nothing,
    Null(String),
    Value(String, &'a Value),
}

fn join(root: &str, path: &str) -> String {
    match (root, path) {
        ("", path) => path.to_owned(),
        (root, "") => root.to_owned(),
        (root, path) => format!("{root}.{path}"),
    }
}
