//! A configuration in memory, with a record of the keys that were read.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::unread::{self, Unread};
use super::{ConfigError, Reader, json};

/// The largest configuration file that is read: 64 MiB.
pub const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// A JSON object from a model folder, with a record of the keys that were read.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    json: Value,
    read: Mutex<BTreeSet<String>>,
}

impl ConfigFile {
    /// Reads `config.json` of the model folder `folder`.
    pub fn open(folder: &Path) -> Result<ConfigFile, ConfigError> {
        let bad = |found| ConfigError::Folder { folder: folder.to_owned(), found };
        match fs::metadata(folder) {
            Ok(meta) if meta.is_dir() => Self::read(&folder.join("config.json")),
            Ok(_) => Err(bad("a file")),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(bad("nothing")),
            Err(e) => Err(ConfigError::Io { file: folder.to_owned(), reason: e.to_string() }),
        }
    }

    /// As [`ConfigFile::open`] for another file, such as `generation_config.json`; `None` when it
    /// is not there.
    pub fn open_optional(folder: &Path, name: &str) -> Result<Option<ConfigFile>, ConfigError> {
        let path = folder.join(name);
        if path.exists() { Self::read(&path).map(Some) } else { Ok(None) }
    }

    /// Reads a JSON object from a file of any name.
    ///
    /// A repeated key has its last value. Python's `Infinity` and `NaN` are tolerated.
    pub fn read(path: &Path) -> Result<ConfigFile, ConfigError> {
        let io = |e: std::io::Error| {
            let reason = match e.kind() {
                ErrorKind::NotFound => "no such file".to_owned(),
                _ => e.to_string(),
            };
            ConfigError::Io { file: path.to_owned(), reason }
        };
        // Before opening, since a pipe would wait for a writer.
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(ConfigError::File {
                file: path.to_owned(),
                expected: "a file".into(),
                found: "a folder or a device".into(),
            });
        }
        let file = fs::File::open(path).map_err(io)?;
        let mut text = Vec::new();
        file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > MAX_CONFIG_BYTES {
            return Err(ConfigError::File {
                file: path.to_owned(),
                expected: format!("at most {MAX_CONFIG_BYTES} bytes"),
                found: "more".into(),
            });
        }
        Self::parse(path, &text)
    }

    /// A configuration from its text, which a byte order mark may begin; `path` is for errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<ConfigFile, ConfigError> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let json = json::parse(text).map_err(|e| {
            let text = e.to_string();
            // The position is told apart, so its copy at the end of the text goes.
            let reason = text.split(" at line ").next().unwrap_or_default().to_owned();
            ConfigError::Json { file: path.to_owned(), line: e.line(), column: e.column(), reason }
        })?;
        if !json.is_object() {
            return Err(ConfigError::File {
                file: path.to_owned(),
                expected: "a JSON object".into(),
                found: json::describe(&json),
            });
        }
        Ok(ConfigFile { path: path.to_owned(), json, read: Mutex::default() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole object.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// `model_type` of the top level, else of `text_config`.
    pub fn model_type(&self) -> Option<&str> {
        let text = |path| self.find(path).and_then(Value::as_str);
        text("model_type").or_else(|| text("text_config.model_type"))
    }

    /// A reader that tries every path under each of `roots`: `["text_config", ""]` means the
    /// nested object first, then the top level.
    pub fn under<'a>(&'a self, roots: &[&str]) -> Reader<'a> {
        Reader::new(self, roots)
    }

    /// Keys that nobody read, without [`super::BENIGN_KEYS`] and without nulls.
    pub fn unread(&self) -> Vec<Unread<'_>> {
        unread::unread(&self.json, &self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks something whose reads do not count, such as whether a family takes the model.
    pub fn aside<T>(&self, ask: impl FnOnce() -> T) -> T {
        let lock = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let before = lock().clone();
        let answer = ask();
        *lock() = before;
        answer
    }

    /// Marks a dotted path and all beneath it as read.
    pub fn mark_read(&self, path: &str) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.contains(path) {
            read.insert(path.to_owned());
        }
    }

    /// The file's name for error texts.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }

    /// The value at a dotted path; the empty path is the whole object.
    pub(super) fn find(&self, path: &str) -> Option<&Value> {
        let mut value = &self.json;
        if path.is_empty() {
            return Some(value);
        }
        for part in path.split('.') {
            value = value.as_object()?.get(part)?;
        }
        Some(value)
    }
}
