//! The tokenizer of a model folder: `tokenizer.json` and the special tokens of
//! `tokenizer_config.json`.
//!
//! Truncation and padding that the file may carry are ignored: a prompt is never cut or filled up
//! silently.

mod config;
mod error;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;
use tokenizers::AddedToken;

pub(crate) use config::read_object;
pub use config::{SpecialToken, SpecialTokens};
pub use error::TokenizerError;

use config::TokenizerConfig;

type Result<T> = std::result::Result<T, TokenizerError>;

/// The name of the tokenizer's file in a model folder.
pub const TOKENIZER_FILE: &str = "tokenizer.json";
/// The name of the file with the special tokens and, often, the chat template.
pub const TOKENIZER_CONFIG_FILE: &str = "tokenizer_config.json";

/// A loaded tokenizer; cheap to share behind an `Arc`, and thread-safe.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    config: TokenizerConfig,
    decoder: Value,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("special", &self.config.special)
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Loads `tokenizer.json` and, where they exist, `tokenizer_config.json` and
    /// `special_tokens_map.json` from a model folder.
    ///
    /// # Errors
    /// When `tokenizer.json` is missing or a file is malformed; the error names file and place.
    pub fn load(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let path = dir.join(TOKENIZER_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(TokenizerError::Missing { path });
            }
            Err(source) => return Err(TokenizerError::Io { path, source }),
        };
        let config = TokenizerConfig::load(dir)?;
        Self::build(&path, &bytes, config)
    }

    /// Builds a tokenizer from the two documents, as a model folder would hold them.
    ///
    /// # Errors
    /// As [`Tokenizer::load`], with the standard file names in the messages.
    pub fn from_json(tokenizer: &Value, config: Option<&Value>) -> Result<Self> {
        let config = match config {
            Some(value) => TokenizerConfig::from_value(Path::new(TOKENIZER_CONFIG_FILE), value)?,
            None => TokenizerConfig::default(),
        };
        Self::build(Path::new(TOKENIZER_FILE), tokenizer.to_string().as_bytes(), config)
    }

    fn build(path: &Path, bytes: &[u8], mut config: TokenizerConfig) -> Result<Self> {
        // The library unwraps on some malformed files; a panic there is a refusal here.
        let built = catch_unwind(AssertUnwindSafe(|| tokenizers::Tokenizer::from_bytes(bytes)));
        let mut inner = match built {
            Ok(Ok(inner)) => inner,
            Ok(Err(e)) => return Err(error::diagnose(path, bytes, &e.to_string())),
            Err(_) => return Err(error::diagnose(path, bytes, "the tokenizer library gave up")),
        };
        inner.with_padding(None);
        if let Err(e) = inner.with_truncation(None) {
            return Err(TokenizerError::Malformed {
                path: path.to_owned(),
                place: "truncation".into(),
                message: e.to_string(),
            });
        }
        add_config_tokens(&mut inner, &config)?;
        config.resolve_ids(|text| inner.token_to_id(text));
        let decoder =
            inner.get_decoder().and_then(|d| serde_json::to_value(d).ok()).unwrap_or(Value::Null);
        Ok(Self { inner, config, decoder })
    }

    /// Ids of a text. With `add_special` the file's post-processor adds its tokens (BOS, EOS).
    ///
    /// # Errors
    /// When the tokenizer cannot represent the text (a vocabulary without an unknown token).
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        match self.inner.encode_fast(text, add_special) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(e) => Err(TokenizerError::Encode { message: e.to_string() }),
        }
    }

    /// Ids of a rendered chat template: templates write BOS themselves, so nothing is added.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_rendered(&self, text: &str) -> Result<Vec<u32>> {
        self.encode(text, false)
    }

    /// Ids of a raw prompt, by the tokenizer's own rule for BOS and EOS: the post-processor of
    /// `tokenizer.json`, and `add_bos_token`/`add_eos_token` of `tokenizer_config.json` where they
    /// are given. A text that begins with BOS already gets no second one.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        let plain = self.encode(text, false)?;
        let mut ids = self.encode(text, true)?;
        if let Some(bos) = self.bos_id() {
            let written = plain.first() == Some(&bos);
            match self.config.add_bos {
                Some(true) if ids.first() != Some(&bos) => ids.insert(0, bos),
                Some(false) if !written && ids.first() == Some(&bos) => {
                    ids.remove(0);
                }
                _ => {}
            }
            if written && ids.get(1) == Some(&bos) && ids.len() > plain.len() {
                ids.remove(0);
            }
        }
        if let Some(eos) = self.config.special.eos.as_ref().and_then(|t| t.id) {
            match self.config.add_eos {
                Some(true) if ids.last() != Some(&eos) => ids.push(eos),
                Some(false) if plain.last() != Some(&eos) && ids.last() == Some(&eos) => {
                    ids.pop();
                }
                _ => {}
            }
        }
        Ok(ids)
    }

    /// The text of a whole sequence of ids. Ids outside the vocabulary have no text.
    ///
    /// # Errors
    /// When the file's decoder fails on the sequence.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        // Some of the library's decoders need a first token.
        if !ids.iter().any(|id| self.inner.id_to_token(*id).is_some()) {
            return Ok(String::new());
        }
        // The library's Strip decoder can index past an empty token; a panic is an error here.
        match catch_unwind(AssertUnwindSafe(|| self.inner.decode(ids, skip_special))) {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(e)) => Err(TokenizerError::Decode { message: e.to_string() }),
            Err(_) => {
                Err(TokenizerError::Decode { message: "the tokenizer library gave up".into() })
            }
        }
    }

    /// The id of a token's text, among the model's tokens and the added ones.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The text of one id as the vocabulary holds it, not decoded.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Whether the id is a special token of the file (one that `skip_special` leaves out).
    pub fn is_special(&self, id: u32) -> bool {
        self.inner
            .id_to_token(id)
            .is_some_and(|token| self.inner.get_added_vocabulary().is_special_token(&token))
    }

    /// Number of tokens, the added ones included.
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// One past the largest id. Ids of a prompt are below it; a model may have more rows.
    pub fn id_bound(&self) -> u32 {
        self.inner.get_vocab(true).values().max().map_or(0, |id| id.saturating_add(1))
    }

    /// The special tokens named by `tokenizer_config.json`.
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.config.special
    }

    /// The special tokens that a model folder names; no `tokenizer.json` is needed (ids are unset).
    ///
    /// # Errors
    /// When a file that exists is malformed.
    pub fn special_tokens_of(dir: impl AsRef<Path>) -> Result<SpecialTokens> {
        Ok(TokenizerConfig::load(dir.as_ref())?.special)
    }

    /// The id of BOS, where the model names one that is in the vocabulary.
    pub fn bos_id(&self) -> Option<u32> {
        self.config.special.bos.as_ref().and_then(|t| t.id)
    }

    /// The id of EOS, where the model names one that is in the vocabulary.
    pub fn eos_id(&self) -> Option<u32> {
        self.config.special.eos.as_ref().and_then(|t| t.id)
    }

    /// The decoder section of `tokenizer.json` (null when there is none).
    pub(crate) fn decoder(&self) -> &Value {
        &self.decoder
    }
}

/// Adds tokens that only `tokenizer_config.json` lists, at the ids it gives them.
fn add_config_tokens(inner: &mut tokenizers::Tokenizer, config: &TokenizerConfig) -> Result<()> {
    for token in &config.added {
        if inner.token_to_id(&token.content).is_some() {
            continue;
        }
        let added = AddedToken::from(token.content.clone(), token.special)
            .lstrip(token.lstrip)
            .rstrip(token.rstrip)
            .single_word(token.single_word)
            .normalized(token.normalized);
        let done = if token.special {
            inner.add_special_tokens([added])
        } else {
            inner.add_tokens([added])
        };
        let found = inner.token_to_id(&token.content);
        if done.is_err() || found != Some(token.id) {
            return Err(TokenizerError::Malformed {
                path: config.path.clone(),
                place: format!("added_tokens_decoder.{}", token.id),
                message: format!(
                    "token {:?} is not in {TOKENIZER_FILE} and cannot get this id (the next free \
                     one is {})",
                    token.content,
                    found.map_or_else(|| "unknown".to_owned(), |id| id.to_string()),
                ),
            });
        }
    }
    Ok(())
}
