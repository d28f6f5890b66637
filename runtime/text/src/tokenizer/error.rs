//! What can go wrong between a tokenizer's files and ids.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// An error of loading or using a tokenizer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The model folder has no `tokenizer.json`.
    #[error("{}: not found; a model folder needs it to read text", path.display())]
    Missing {
        /// The file that was looked for.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file is not JSON.
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
    /// A value has the wrong type or is missing.
    #[error("{}: `{place}`: expected {expected}, found {found}", path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// Dotted path of the value.
        place: String,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// The document is JSON, but not a tokenizer that can be built.
    #[error("{}: `{place}`: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Dotted path of the value, or the section.
        place: String,
        /// The reason.
        message: String,
    },
    /// A text has no ids.
    #[error("cannot encode the text: {message}")]
    Encode {
        /// The reason.
        message: String,
    },
    /// Ids have no text.
    #[error("cannot decode the ids: {message}")]
    Decode {
        /// The reason.
        message: String,
    },
}

/// Names the place where a `tokenizer.json` that the library refused goes wrong.
pub(super) fn diagnose(path: &Path, bytes: &[u8], message: &str) -> TokenizerError {
    let path = path.to_owned();
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(e) => return json_error(path, &e),
    };
    let missing = |place: &str, expected, value: &Value| TokenizerError::Type {
        path: path.clone(),
        place: place.to_owned(),
        expected,
        found: describe(value),
    };
    if !document.is_object() {
        return missing("$", "an object", &document);
    }
    let model = &document["model"];
    if !model.is_object() {
        return missing("model", "an object", model);
    }
    let kind = &model["type"];
    const KINDS: &str = "one of BPE, WordPiece, WordLevel, Unigram";
    match kind {
        Value::Null => {}
        Value::String(s) if ["BPE", "WordPiece", "WordLevel", "Unigram"].contains(&&**s) => {}
        other => return missing("model.type", KINDS, other),
    }
    let vocab = &model["vocab"];
    if !vocab.is_object() && !vocab.is_array() {
        return missing("model.vocab", "the vocabulary", vocab);
    }
    // The library's errors are of one document-wide enum; try each section alone to find the one.
    for section in ["normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens"] {
        let mut part = document.clone();
        part[section] = if section == "added_tokens" { Value::Array(vec![]) } else { Value::Null };
        let text = part.to_string();
        let alone = std::panic::catch_unwind(|| tokenizers::Tokenizer::from_bytes(text.as_bytes()));
        if matches!(alone, Ok(Ok(_))) {
            return TokenizerError::Malformed {
                path,
                place: section.to_owned(),
                message: format!("{message} (found {})", describe(&document[section])),
            };
        }
    }
    TokenizerError::Malformed { path, place: "model".into(), message: message.to_owned() }
}

pub(super) fn json_error(path: PathBuf, e: &serde_json::Error) -> TokenizerError {
    TokenizerError::Json { path, line: e.line(), column: e.column(), message: reason(e) }
}

/// The parser's message without its own "at line ..." tail.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    match text.find(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// A short description of a JSON value for an error message.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(b) => format!("{b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) if s.chars().count() <= 40 => format!("{s:?}"),
        Value::String(_) => "a long string".into(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(map) => match map.get("type").and_then(Value::as_str) {
            Some(kind) => format!("an object of type {kind:?}"),
            None => format!("an object of {} keys", map.len()),
        },
    }
}
