//! The variables of a rendering, out of JSON.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::template::Clock;

/// An error of reading messages or settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessagesError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The file is not JSON.
    #[error("{}: line {line}, column {column}: {message}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's reason.
        message: String,
    },
    /// The file is JSON, but no messages.
    #[error("{}: expected a list of messages or an object of variables, found {found}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: &'static str,
    },
    /// A setting is not `NAME=JSON`.
    #[error("`{setting}`: expected NAME=JSON: {message}")]
    Setting {
        /// The setting.
        setting: String,
        /// The reason.
        message: String,
    },
    /// A time is not written as 2026-01-15T09:30:05.
    #[error("`{text}`: expected a time such as 2026-01-15T09:30:05: {message}")]
    Time {
        /// The text.
        text: String,
        /// The reason.
        message: String,
    },
}

/// Reads a file of messages: a list of them, or an object whose keys are the template's variables.
///
/// # Errors
/// When the file cannot be read, or is neither; the error names file and place.
pub fn read_variables(path: &Path) -> Result<Map<String, Value>, MessagesError> {
    match std::fs::read(path) {
        Ok(bytes) => parse_variables(path, &bytes),
        Err(source) => Err(MessagesError::Io { path: path.to_owned(), source }),
    }
}

/// The same, of bytes already read; `path` names them in errors.
///
/// # Errors
/// As [`read_variables`].
pub fn parse_variables(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>, MessagesError> {
    let value = serde_json::from_slice(bytes).map_err(|e| MessagesError::Json {
        path: path.to_owned(),
        line: e.line(),
        column: e.column(),
        message: e.to_string(),
    })?;
    let found = match value {
        Value::Object(map) => return Ok(map),
        Value::Array(_) => {
            let mut map = Map::new();
            map.insert("messages".into(), value);
            return Ok(map);
        }
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
    };
    Err(MessagesError::Shape { path: path.to_owned(), found })
}

/// What a template without a model sees: `tools` and `documents` none, `add_generation_prompt`
/// false, unless given.
pub fn with_defaults(variables: Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("tools".into(), Value::Null);
    all.insert("documents".into(), Value::Null);
    all.insert("add_generation_prompt".into(), Value::Bool(false));
    all.extend(variables);
    all
}

/// A setting `NAME=JSON`.
///
/// # Errors
/// When there is no name, or what follows is not JSON.
pub fn parse_setting(setting: &str) -> Result<(String, Value), MessagesError> {
    let fail = |message: String| MessagesError::Setting { setting: setting.to_owned(), message };
    let (name, value) = setting.split_once('=').ok_or_else(|| fail("there is no `=`".into()))?;
    if name.is_empty() {
        return Err(fail("there is no name".into()));
    }
    let value = serde_json::from_str(value).map_err(|e| fail(e.to_string()))?;
    Ok((name.to_owned(), value))
}

/// The clock fixed at a time written as `2026-01-15T09:30:05`.
///
/// # Errors
/// When the text is no such time.
pub fn parse_clock(text: &str) -> Result<Clock, MessagesError> {
    text.parse().map(Clock::Fixed).map_err(|e: jiff::Error| MessagesError::Time {
        text: text.to_owned(),
        message: e.to_string(),
    })
}

/// A message of a role.
pub fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}
