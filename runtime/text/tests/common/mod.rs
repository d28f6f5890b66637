//! Small tokenizers built in the tests: one byte-level, one with byte fallback.

#![allow(dead_code, reason = "each test binary uses its own part")]

use serde_json::{Map, Value, json};
use specc_text::Tokenizer;

/// The printable character of each byte in the byte-level alphabet.
pub fn alphabet() -> Vec<char> {
    let printable = |b: u32| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 256;
    (0..256u32)
        .map(|b| {
            if printable(b) {
                return char::from_u32(b).unwrap();
            }
            next += 1;
            char::from_u32(next - 1).unwrap()
        })
        .collect()
}

fn spell(bytes: &[u8]) -> String {
    let alphabet = alphabet();
    bytes.iter().map(|b| alphabet[usize::from(*b)]).collect()
}

fn special(id: usize, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
           "normalized": false, "special": true})
}

/// 256 bytes, some merges (also ones that end inside a character), two special tokens.
pub fn byte_level_json() -> Value {
    let mut vocab = Map::new();
    for byte in 0..=255u8 {
        vocab.insert(spell(&[byte]), json!(vocab.len()));
    }
    let mut merges = Vec::new();
    let pairs: [(&[u8], &[u8]); 9] = [
        (b" ", b"t"),
        (b" t", b"h"),
        (b"i", b"n"),
        (b"in", b"g"),
        (b"\xf0", b"\x9f"),
        (b"\xf0\x9f", b"\x98"),
        (b"\xd7", b"\xa9"),
        (b"\xcc", b"\x81"),
        (b"a", b"\xe2"),
    ];
    for (left, right) in pairs {
        vocab.insert(spell(&[left, right].concat()), json!(vocab.len()));
        merges.push(json!([spell(left), spell(right)]));
    }
    let n = vocab.len();
    json!({
        "version": "1.0", "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0,
                                         "direction": "Right"},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "!"},
        "added_tokens": [special(n, "<|start|>"), special(n + 1, "<|end|>")],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                          "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                    "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null,
                  "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                  "vocab": vocab, "merges": merges},
    })
}

/// Words with `▁` for a blank, byte tokens for the rest, BOS added by the post-processor.
pub fn byte_fallback_json() -> Value {
    let mut vocab = Map::new();
    for token in ["<unk>", "<s>", "</s>"] {
        vocab.insert(token.to_owned(), json!(vocab.len()));
    }
    for byte in 0..=255u8 {
        vocab.insert(format!("<0x{byte:02X}>"), json!(vocab.len()));
    }
    for token in ["▁", "a", "b", "c", "h", "i", "é", "ש", "\u{301}", "▁h", "▁hi", "▁▁", "ab"]
    {
        vocab.insert(token.to_owned(), json!(vocab.len()));
    }
    let merges = json!([["▁", "h"], ["▁h", "i"], ["▁", "▁"], ["a", "b"]]);
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>",
                  "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
                  "vocab": vocab, "merges": merges},
    })
}

pub fn byte_level() -> Tokenizer {
    let config = json!({"bos_token": "<|start|>", "eos_token": {"content": "<|end|>"}});
    Tokenizer::from_json(&byte_level_json(), Some(&config)).unwrap()
}

pub fn byte_fallback() -> Tokenizer {
    let config = json!({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"});
    Tokenizer::from_json(&byte_fallback_json(), Some(&config)).unwrap()
}
