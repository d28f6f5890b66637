//! Which way of streaming a tokenizer's decoder allows.

use std::collections::HashMap;

use serde_json::Value;

/// How the text of a sequence follows from the text of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    /// Tokens are bytes in the printable alphabet; the text is their bytes as UTF-8.
    ByteLevel,
    /// A token's text depends only on its neighbours; `byte_fallback` when runs of `<0xNN>` tokens
    /// become characters together.
    Local { byte_fallback: bool },
    /// The decoder rewrites the text across tokens: nothing is certain before the end.
    Whole,
}

/// Decides from the decoder section of `tokenizer.json`.
pub(super) fn streaming(decoder: &Value) -> Streaming {
    let parts: Vec<&Value> = match decoder["type"].as_str() {
        Some("Sequence") => decoder["decoders"].as_array().into_iter().flatten().collect(),
        Some(_) => vec![decoder],
        None => vec![],
    };
    let kind = |part: &Value| part["type"].as_str().unwrap_or_default().to_owned();
    if let [only] = parts.as_slice()
        && kind(only) == "ByteLevel"
    {
        return Streaming::ByteLevel;
    }
    let byte_fallback = parts.iter().any(|part| kind(part) == "ByteFallback");
    let mut fused = false;
    for part in &parts {
        let local = match kind(part).as_str() {
            "ByteFallback" | "Metaspace" | "WordPiece" | "BPEDecoder" => !fused,
            // A pattern of one character cannot straddle two tokens.
            "Replace" => part["pattern"]["String"].as_str().is_some_and(|s| s.chars().count() == 1),
            "Fuse" => {
                fused = true;
                true
            }
            "Strip" => {
                part["stop"].as_u64() == Some(0)
                    && (!fused || part["start"].as_u64().is_some_and(|n| n <= 1))
            }
            _ => false,
        };
        if !local {
            return Streaming::Whole;
        }
    }
    Streaming::Local { byte_fallback }
}

/// Whether a token is one byte written as `<0xNN>`.
pub(super) fn is_byte_token(token: &str) -> bool {
    token.len() == 6
        && token.starts_with("<0x")
        && token.ends_with('>')
        && token.get(3..5).is_some_and(|hex| u8::from_str_radix(hex, 16).is_ok())
}

/// The byte of each character of the byte-level alphabet (GPT-2's printable bytes).
pub(crate) fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 256;
    let mut map = HashMap::with_capacity(256);
    for byte in 0..=u8::MAX {
        let ch = if printable(byte) {
            char::from(byte)
        } else {
            next += 1;
            // 256..=323 are all characters.
            char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        map.insert(ch, byte);
    }
    map
}
