//! How byte-level tokenizers split text before merging, by the names of `tokenizer.ggml.pre`.
//!
//! Each name stands for the pre-tokenizer that the models of that name publish in `tokenizer.json`.

use serde_json::{Value, json};

/// What a name stands for.
pub(super) struct Rule {
    names: &'static [&'static str],
    steps: &'static [Step],
    /// A piece that is a token is taken whole.
    pub ignore_merges: bool,
    /// Text begins with the BOS token unless the file says otherwise.
    pub add_bos: bool,
    /// Text is brought to Unicode's composed form first.
    pub nfc: bool,
}

enum Step {
    /// Each match of the pattern is a piece, and so is what lies between matches.
    Split(&'static str),
    /// Every digit is a piece.
    Digits,
}

use Step::{Digits, Split};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const DIGITS_BY_THREE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DIGITS_BY_ONE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DIGITS_BY_ONE_MARKS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CASED_WORDS: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CASED_WORDS_ENGLISH: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const PUNCTUATED_WORDS: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

/// A rule in its commonest form.
const fn rule(names: &'static [&'static str], steps: &'static [Step]) -> Rule {
    Rule { names, steps, ignore_merges: false, add_bos: false, nfc: false }
}

static RULES: [Rule; 17] = [
    rule(
        &["default"],
        &[Split(r"[\p{P}\$\+<=>\^~\|]+"), Split(GPT2), Split(r"\p{N}+"), Split("[0-9][0-9][0-9]")],
    ),
    rule(
        &["gpt-2", "phi-2", "jais", "exaone4", "gigachat", "trillion", "a.x-4.0", "mellum"],
        &[Split(GPT2)],
    ),
    Rule { nfc: true, ..rule(&["mpt", "olmo"], &[Split(GPT2)]) },
    rule(
        &["smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b"],
        &[Digits, Split(GPT2)],
    ),
    Rule { nfc: true, ..rule(&["command-r"], &[Digits, Split(GPT2)]) },
    Rule {
        ignore_merges: true,
        add_bos: true,
        ..rule(&["llama-bpe", "llama3", "llama-v3", "falcon3", "lfm2"], &[Split(DIGITS_BY_THREE)])
    },
    rule(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[Split(DIGITS_BY_THREE)]),
    Rule { ignore_merges: true, ..rule(&["glm4"], &[Split(DIGITS_BY_THREE)]) },
    Rule { nfc: true, ..rule(&["qwen2", "megrez"], &[Split(DIGITS_BY_ONE)]) },
    rule(&["deepseek-r1-qwen", "stablelm2", "hunyuan"], &[Split(DIGITS_BY_ONE)]),
    Rule { nfc: true, ..rule(&["qwen35"], &[Split(DIGITS_BY_ONE_MARKS)]) },
    Rule { ignore_merges: true, add_bos: true, ..rule(&["tekken"], &[Split(CASED_WORDS)]) },
    rule(&["gpt-4o", "llama4", "kanana2"], &[Split(CASED_WORDS_ENGLISH)]),
    rule(
        &["deepseek-v3", "hunyuan-dense"],
        &[
            Split(r"\p{N}{1,3}"),
            Split("[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+"),
            Split(PUNCTUATED_WORDS),
        ],
    ),
    rule(
        &["deepseek-coder"],
        &[
            Split("[\r\n]"),
            Split(r"\s?\p{L}+"),
            Split(r"\s?\p{P}+"),
            Split("[\u{4e00}-\u{9fa5}\u{0800}-\u{4e00}\u{ac00}-\u{d7ff}]+"),
            Digits,
        ],
    ),
    rule(&["falcon"], &[Split(r"[\p{P}\$\+<=>\^~\|`]+"), Split(GPT2), Split("[0-9][0-9][0-9]")]),
    Rule { ignore_merges: true, ..rule(&["minicpm5"], &[Split(r"\p{N}{1,3}"), Split(WORDS)]) },
];

const WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The rule of a name.
pub(super) fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.names.contains(&name))
}

/// All names, sorted.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = RULES.iter().flat_map(|rule| rule.names).copied().collect();
    names.sort_unstable();
    names
}

/// The step from bytes to the printable alphabet, or back as a decoder.
pub(super) fn byte_level(use_regex: bool) -> Value {
    json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": use_regex,
    })
}

impl Rule {
    /// The `pre_tokenizer` of `tokenizer.json`.
    pub(super) fn pre_tokenizer(&self) -> Value {
        let step = |step: &Step| match step {
            Split(pattern) => json!({
                "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated",
                "invert": false,
            }),
            Digits => json!({ "type": "Digits", "individual_digits": true }),
        };
        let mut steps: Vec<Value> = self.steps.iter().map(step).collect();
        steps.push(byte_level(false));
        json!({ "type": "Sequence", "pretokenizers": steps })
    }
}
