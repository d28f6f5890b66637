//! What is wrong with a configuration.

use std::path::PathBuf;

use thiserror::Error;

/// What is wrong with a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The model folder is not a folder.
    #[error("{}: expected a model folder, found {found}", folder.display())]
    Folder {
        /// The path that was given.
        folder: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// The operating system refused.
    #[error("{}: {reason}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The file is not what its name says.
    #[error("{}: expected {expected}, found {found}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What a good file is.
        expected: String,
        /// What this one is.
        found: String,
    },
    /// Not JSON.
    #[error("{}:{line}:{column}: not JSON: {reason}", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// The parser's words.
        reason: String,
    },
    /// A key is there and its value is of no use.
    #[error("{file}: key {key:?}: expected {expected}, found {found}")]
    Value {
        /// The file's name, `config.json`.
        file: String,
        /// The dotted path of the key, `text_config.hidden_size`.
        key: String,
        /// What a good value is.
        expected: String,
        /// The value, shortened, and its type.
        found: String,
    },
    /// A required key is absent.
    #[error("{file}: key {key:?}: expected {expected}, found nothing{}", if *null { " but null" } else { "" })]
    Missing {
        /// The file's name, `config.json`.
        file: String,
        /// The first of the paths where it is looked for.
        key: String,
        /// What a good value is.
        expected: String,
        /// Whether the key is there with the value null.
        null: bool,
    },
}
