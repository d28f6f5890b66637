//! `tokenizer_config.json` and `special_tokens_map.json`: the named special tokens.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::{TokenizerError, describe, json_error};
use super::{Result, TOKENIZER_CONFIG_FILE};

/// A named special token: its text, and its id where the vocabulary has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialToken {
    /// The token's text.
    pub text: String,
    /// Its id; `None` when the vocabulary lacks it.
    pub id: Option<u32>,
}

/// The special tokens that a model's files name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begins a sequence.
    pub bos: Option<SpecialToken>,
    /// Ends a sequence.
    pub eos: Option<SpecialToken>,
    /// Fills up rows of a batch.
    pub pad: Option<SpecialToken>,
    /// Stands for what the vocabulary lacks.
    pub unk: Option<SpecialToken>,
    /// Every named token as templates see it: `bos_token`, `eos_token`, ... → text, in file order.
    pub variables: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct ConfigToken {
    pub id: u32,
    pub content: String,
    pub special: bool,
    pub lstrip: bool,
    pub rstrip: bool,
    pub single_word: bool,
    pub normalized: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct TokenizerConfig {
    pub path: PathBuf,
    pub special: SpecialTokens,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub added: Vec<ConfigToken>,
}

impl TokenizerConfig {
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join(TOKENIZER_CONFIG_FILE);
        let mut config = match read_object(&path)? {
            Some(value) => Self::from_value(&path, &value)?,
            None => Self { path, ..Self::default() },
        };
        // Older checkpoints keep the names here; tokenizer_config.json wins.
        let path = dir.join("special_tokens_map.json");
        if let Some(Value::Object(map)) = read_object(&path)? {
            config.read_special(&path, &map)?;
        }
        Ok(config)
    }

    pub fn from_value(path: &Path, value: &Value) -> Result<Self> {
        let Value::Object(map) = value else {
            return Err(type_error(path, "$", "an object", value));
        };
        let mut config = Self { path: path.to_owned(), ..Self::default() };
        config.add_bos = read_bool(path, map, "add_bos_token")?;
        config.add_eos = read_bool(path, map, "add_eos_token")?;
        config.read_special(path, map)?;
        if let Some(added) = map.get("added_tokens_decoder").filter(|v| !v.is_null()) {
            config.added = read_added(path, added)?;
        }
        Ok(config)
    }

    fn read_special(&mut self, path: &Path, map: &Map<String, Value>) -> Result<()> {
        for (key, value) in map {
            if !key.ends_with("_token") || matches!(value, Value::Null | Value::Bool(_)) {
                continue;
            }
            let text = token_text(value)
                .ok_or_else(|| type_error(path, key, "a token (text or {content})", value))?;
            if self.special.variables.iter().any(|(name, _)| name == key) {
                continue;
            }
            self.special.variables.push((key.clone(), text.to_owned()));
            let token = Some(SpecialToken { text: text.to_owned(), id: None });
            match key.as_str() {
                "bos_token" => self.special.bos = token,
                "eos_token" => self.special.eos = token,
                "pad_token" => self.special.pad = token,
                "unk_token" => self.special.unk = token,
                _ => {}
            }
        }
        Ok(())
    }

    pub fn resolve_ids(&mut self, id_of: impl Fn(&str) -> Option<u32>) {
        let special = &mut self.special;
        let tokens = [&mut special.bos, &mut special.eos, &mut special.pad, &mut special.unk];
        for token in tokens.into_iter().flatten() {
            token.id = id_of(&token.text);
        }
    }
}

/// Reads a JSON object; `None` when there is no such file.
pub(crate) fn read_object(path: &Path) -> Result<Option<Value>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TokenizerError::Io { path: path.to_owned(), source }),
    };
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|e| json_error(path.to_owned(), &e))?;
    if value.is_object() {
        Ok(Some(value))
    } else {
        Err(type_error(path, "$", "an object", &value))
    }
}

fn type_error(path: &Path, place: &str, expected: &'static str, found: &Value) -> TokenizerError {
    TokenizerError::Type {
        path: path.to_owned(),
        place: place.to_owned(),
        expected,
        found: describe(found),
    }
}

fn token_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(map) => map.get("content")?.as_str(),
        _ => None,
    }
}

fn read_bool(path: &Path, map: &Map<String, Value>, key: &str) -> Result<Option<bool>> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(b)) => Ok(Some(*b)),
        Some(other) => Err(type_error(path, key, "true or false", other)),
    }
}

fn read_added(path: &Path, added: &Value) -> Result<Vec<ConfigToken>> {
    let Value::Object(map) = added else {
        return Err(type_error(path, "added_tokens_decoder", "an object", added));
    };
    let mut tokens = Vec::with_capacity(map.len());
    for (key, entry) in map {
        let place = format!("added_tokens_decoder.{key}");
        let id = key.parse().map_err(|_| TokenizerError::Type {
            path: path.to_owned(),
            place: place.clone(),
            expected: "a token id as the key",
            found: format!("{key:?}"),
        })?;
        let content = token_text(entry)
            .ok_or_else(|| type_error(path, &place, "a token (text or {content})", entry))?;
        let flag = |name: &str, default| entry[name].as_bool().unwrap_or(default);
        let special = flag("special", false);
        tokens.push(ConfigToken {
            id,
            content: content.to_owned(),
            special,
            lstrip: flag("lstrip", false),
            rstrip: flag("rstrip", false),
            single_word: flag("single_word", false),
            normalized: flag("normalized", !special),
        });
    }
    tokens.sort_by_key(|token| token.id);
    Ok(tokens)
}
