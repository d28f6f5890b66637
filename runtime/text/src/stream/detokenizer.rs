//! Incremental detokenising.

use std::borrow::Borrow;
use std::collections::HashMap;

use super::decoder::{Streaming, byte_alphabet, is_byte_token, streaming};
use crate::tokenizer::{Tokenizer, TokenizerError};

type Result<T> = std::result::Result<T, TokenizerError>;

/// Turns ids into pieces of text as they arrive.
///
/// `T` is how the tokenizer is held: `&Tokenizer`, `Arc<Tokenizer>`, ... The pieces of
/// [`push`](Self::push) and [`finish`](Self::finish) together equal
/// [`Tokenizer::decode`] of all ids pushed. A piece is empty while a character is incomplete; with
/// byte fallback a run of byte tokens is held until it ends, since one bad byte changes the text of
/// the whole run; with a decoder that rewrites text across tokens all is held until the end.
#[derive(Debug)]
pub struct Detokenizer<T: Borrow<Tokenizer>> {
    tokenizer: T,
    skip_special: bool,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Bytes { alphabet: HashMap<char, u8>, pending: Vec<u8> },
    Window { window: Window, byte_fallback: bool },
    Whole { ids: Vec<u32> },
}

/// The ids still needed to decode what follows; the text of `ids[..read]` is `shown`.
#[derive(Debug, Default)]
struct Window {
    ids: Vec<u32>,
    read: usize,
    shown: String,
}

impl<T: Borrow<Tokenizer>> Detokenizer<T> {
    /// A detokenizer at the start of a sequence. Special tokens have text unless `skip_special`.
    pub fn new(tokenizer: T, skip_special: bool) -> Self {
        let mode = match streaming(tokenizer.borrow().decoder()) {
            Streaming::ByteLevel => Mode::Bytes { alphabet: byte_alphabet(), pending: Vec::new() },
            Streaming::Local { byte_fallback } => {
                Mode::Window { window: Window::default(), byte_fallback }
            }
            Streaming::Whole => Mode::Whole { ids: Vec::new() },
        };
        Self { tokenizer, skip_special, mode }
    }

    /// The text that one more id completes; often empty, never half a character.
    ///
    /// # Errors
    /// When the tokenizer's decoder fails.
    pub fn push(&mut self, id: u32) -> Result<String> {
        let tokenizer = self.tokenizer.borrow();
        let Some(token) = tokenizer.id_to_token(id) else { return Ok(String::new()) };
        if self.skip_special && tokenizer.is_special(id) {
            return Ok(String::new());
        }
        match &mut self.mode {
            Mode::Bytes { alphabet, pending } => {
                append_bytes(alphabet, &token, pending);
                Ok(take_characters(pending))
            }
            Mode::Whole { ids } => {
                ids.push(id);
                Ok(String::new())
            }
            Mode::Window { window, byte_fallback } => {
                window.ids.push(id);
                if *byte_fallback && is_byte_token(&token) {
                    return Ok(String::new());
                }
                let text = tokenizer.decode(&window.ids, false)?;
                if !*byte_fallback && text.ends_with(char::REPLACEMENT_CHARACTER) {
                    return Ok(String::new());
                }
                window.advance(tokenizer, text)
            }
        }
    }

    /// The text still held back: an incomplete character becomes U+FFFD.
    ///
    /// # Errors
    /// When the tokenizer's decoder fails.
    pub fn finish(&mut self) -> Result<String> {
        match &mut self.mode {
            Mode::Bytes { pending, .. } => {
                let text = String::from_utf8_lossy(pending).into_owned();
                pending.clear();
                Ok(text)
            }
            Mode::Whole { ids } => {
                let ids = std::mem::take(ids);
                self.tokenizer.borrow().decode(&ids, false)
            }
            Mode::Window { window, .. } => {
                let tokenizer = self.tokenizer.borrow();
                if window.read == window.ids.len() {
                    return Ok(String::new());
                }
                let text = tokenizer.decode(&window.ids, false)?;
                window.advance(tokenizer, text)
            }
        }
    }
}

impl Window {
    /// Shows what `text`, the text of the whole window, adds, and forgets ids that no longer matter.
    fn advance(&mut self, tokenizer: &Tokenizer, text: String) -> Result<String> {
        let Some(piece) = text.strip_prefix(&self.shown) else { return Ok(String::new()) };
        let piece = piece.to_owned();
        let fresh = self.read;
        self.read = self.ids.len();
        if fresh > 0 {
            // The next window starts at the ids just read, if they have text of their own: what a
            // decoder strips at the start of a sequence is then stripped from text already shown.
            let tail = tokenizer.decode(&self.ids[fresh..], false)?;
            if !tail.is_empty() {
                self.ids.drain(..fresh);
                self.read = self.ids.len();
                self.shown = tail;
                return Ok(piece);
            }
        }
        self.shown = text;
        Ok(piece)
    }
}

/// The bytes of a token: each character's byte, or, when one is not of the alphabet, its UTF-8.
fn append_bytes(alphabet: &HashMap<char, u8>, token: &str, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    for ch in token.chars() {
        match alphabet.get(&ch) {
            Some(byte) => bytes.push(*byte),
            None => {
                bytes.truncate(start);
                bytes.extend_from_slice(token.as_bytes());
                return;
            }
        }
    }
}

/// Takes the complete characters off the front; what can never become one is U+FFFD.
fn take_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut done = 0;
    loop {
        let rest = bytes.get(done..).unwrap_or_default();
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                bytes.clear();
                return text;
            }
            Err(e) => {
                let valid = e.valid_up_to();
                text.push_str(&String::from_utf8_lossy(&rest[..valid]));
                done += valid;
                match e.error_len() {
                    Some(bad) => {
                        text.push(char::REPLACEMENT_CHARACTER);
                        done += bad;
                    }
                    None => {
                        bytes.drain(..done);
                        return text;
                    }
                }
            }
        }
    }
}
