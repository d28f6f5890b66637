//! `tokenizer.json` and `tokenizer_config.json` from a file's `tokenizer.*` metadata.

mod pieces;
mod splits;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::error::Result;
use super::reader::{Gguf, Metadata};

/// Longest token that is believed, in bytes.
const MAX_TOKEN: usize = 4096;

/// End-of-turn tokens by their published texts, for files that name none in their metadata.
const TURN_ENDS: [&str; 5] = ["<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<turn|>", "<|end|>"];

/// What is known of the tokenizer.
pub(super) struct Tokens {
    /// `tokenizer.json`.
    pub tokenizer: Value,
    /// `tokenizer_config.json`.
    pub config: Value,
    /// The token before a text.
    pub bos: Option<u32>,
    /// The tokens after an answer.
    pub eos: Vec<u32>,
}

/// What a token is, by the format's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Byte,
}

/// The vocabulary, checked.
struct Vocabulary<'a> {
    tokens: Vec<&'a str>,
    kinds: Vec<Kind>,
    ids: HashMap<&'a str, usize>,
}

/// Makes both documents.
///
/// # Errors
/// A tokenizer model or pre-tokenizer that is not known, by name; metadata that contradicts itself.
pub(super) fn build(file: &Gguf) -> Result<Tokens> {
    let model = required(file, "tokenizer.ggml.model", file.text("tokenizer.ggml.model")?)?;
    let vocabulary = Vocabulary::read(file)?;
    let special = Special::read(file, &vocabulary)?;
    let (mut document, add_bos) = match model {
        "gpt2" => byte_level(file, &vocabulary)?,
        "llama" => pieces::ranked_by_score(file, &vocabulary)?,
        "gemma4" => pieces::ranked_by_merges(file, &vocabulary)?,
        other => {
            return Err(file.metadata_error(
                "tokenizer.ggml.model",
                format!("`{other}` is not supported; known are gpt2, llama and gemma4"),
            ));
        }
    };
    let add_bos = file.bool("tokenizer.ggml.add_bos_token")?.unwrap_or(add_bos);
    let add_eos = file.bool("tokenizer.ggml.add_eos_token")?.unwrap_or(false);
    let before = special.bos.filter(|_| add_bos).map(|id| (id, vocabulary.tokens[id]));
    let after = special.eos.filter(|_| add_eos).map(|id| (id, vocabulary.tokens[id]));
    document.insert("post_processor".into(), surround(before, after));
    document.insert("added_tokens".into(), vocabulary.added());

    let mut config = Map::new();
    let roles = [
        ("bos_token", special.bos),
        ("eos_token", special.eos),
        ("unk_token", special.unknown),
        ("pad_token", special.padding),
    ];
    for (role, id) in roles {
        config.insert(role.into(), id.map(|id| vocabulary.tokens[id]).into());
    }
    config.insert("add_bos_token".into(), add_bos.into());
    config.insert("add_eos_token".into(), add_eos.into());
    config.insert("clean_up_tokenization_spaces".into(), false.into());
    config.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
    if let Some(template) = chat_template(file)? {
        config.insert("chat_template".into(), template);
    }
    Ok(Tokens {
        tokenizer: document.into(),
        config: config.into(),
        bos: special.bos.map(|id| id as u32),
        eos: special.ends.iter().map(|id| *id as u32).collect(),
    })
}

fn required<T>(file: &Gguf, key: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| file.metadata_error(key, "missing"))
}

impl<'a> Vocabulary<'a> {
    fn read(file: &'a Gguf) -> Result<Self> {
        let key = "tokenizer.ggml.tokens";
        let tokens = required(file, key, file.texts(key)?)?;
        let mut ids = HashMap::with_capacity(tokens.len());
        for (id, token) in tokens.iter().enumerate() {
            if token.len() > MAX_TOKEN {
                let what = format!("token {id} has {} bytes; at most {MAX_TOKEN}", token.len());
                return Err(file.metadata_error(key, what));
            }
            if let Some(other) = ids.insert(*token, id) {
                let what = format!("tokens {other} and {id} are the same, {token:?}");
                return Err(file.metadata_error(key, what));
            }
        }
        let key = "tokenizer.ggml.token_type";
        let kinds = match file.array(key)? {
            None => vec![Kind::Normal; tokens.len()],
            Some(kinds) if kinds.len() != tokens.len() => {
                let what = format!("{} types of {} tokens", kinds.len(), tokens.len());
                return Err(file.metadata_error(key, what));
            }
            Some(kinds) => {
                let kind = |(id, kind): (usize, &Metadata)| match kind.as_int() {
                    // 5 stands for unused, which nothing but its own text reaches.
                    Some(1 | 5) => Ok(Kind::Normal),
                    Some(2) => Ok(Kind::Unknown),
                    Some(3) => Ok(Kind::Control),
                    Some(4) => Ok(Kind::UserDefined),
                    Some(6) => Ok(Kind::Byte),
                    _ => Err(file.metadata_error(key, format!("token {id} has type {kind:?}"))),
                };
                kinds.iter().enumerate().map(kind).collect::<Result<_>>()?
            }
        };
        Ok(Self { tokens, kinds, ids })
    }

    /// The `vocab` of the model, in order of ids.
    fn object(&self) -> Value {
        let pairs = self.tokens.iter().enumerate();
        pairs.map(|(id, token)| ((*token).to_owned(), id.into())).collect::<Map<_, _>>().into()
    }

    /// Tokens that are found in the text before anything else is done.
    fn added(&self) -> Value {
        let added = self.kinds.iter().enumerate().filter_map(|(id, kind)| {
            let special = match kind {
                Kind::Control | Kind::Unknown => true,
                Kind::UserDefined => false,
                Kind::Normal | Kind::Byte => return None,
            };
            Some(json!({
                "id": id, "content": self.tokens[id], "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": special,
            }))
        });
        added.collect::<Vec<_>>().into()
    }
}

/// Ids with a role.
struct Special {
    bos: Option<usize>,
    eos: Option<usize>,
    unknown: Option<usize>,
    padding: Option<usize>,
    /// All that end an answer.
    ends: Vec<usize>,
}

impl Special {
    fn read(file: &Gguf, vocabulary: &Vocabulary<'_>) -> Result<Self> {
        let count = vocabulary.tokens.len();
        let id = |role: &str| -> Result<Option<usize>> {
            let key = format!("tokenizer.ggml.{role}_token_id");
            let Some(id) = file.int(&key)? else { return Ok(None) };
            match usize::try_from(id) {
                Ok(id) if id < count => Ok(Some(id)),
                // Writers put −1 or 2^32 − 1 where there is none.
                _ if id == -1 || id == i64::from(u32::MAX) => Ok(None),
                _ => Err(file.metadata_error(&key, format!("{id}, but there are {count} tokens"))),
            }
        };
        let (eos, turn) = (id("eos")?, id("eot")?);
        let mut ends: Vec<usize> = [eos, turn, id("eom")?].into_iter().flatten().collect();
        if turn.is_none() {
            let known = TURN_ENDS.iter().filter_map(|text| vocabulary.ids.get(text).copied());
            ends.extend(known.filter(|id| vocabulary.kinds[*id] == Kind::Control));
        }
        let mut seen = Vec::new();
        ends.retain(|id| {
            !seen.contains(id) && {
                seen.push(*id);
                true
            }
        });
        let unknown = match id("unknown")? {
            Some(id) => Some(id),
            None => vocabulary.kinds.iter().position(|kind| *kind == Kind::Unknown),
        };
        Ok(Self { bos: id("bos")?, eos, unknown, padding: id("padding")?, ends })
    }
}

/// The parts of `tokenizer.json` that every kind has.
fn document(
    normalizer: Value,
    pre_tokenizer: Value,
    decoder: Value,
    model: Value,
) -> Map<String, Value> {
    let parts = [
        ("version", json!("1.0")),
        ("truncation", Value::Null),
        ("padding", Value::Null),
        ("added_tokens", Value::Null),
        ("normalizer", normalizer),
        ("pre_tokenizer", pre_tokenizer),
        ("post_processor", Value::Null),
        ("decoder", decoder),
        ("model", model),
    ];
    parts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Byte-level BPE; `tokenizer.ggml.pre` says how text is split before it.
fn byte_level(file: &Gguf, vocabulary: &Vocabulary<'_>) -> Result<(Map<String, Value>, bool)> {
    let key = "tokenizer.ggml.pre";
    let name = required(file, key, file.text(key)?)?;
    let Some(rule) = splits::find(name) else {
        let what = format!("`{name}` is not supported; known are {}", splits::names().join(", "));
        return Err(file.metadata_error(key, what));
    };
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
        "ignore_merges": rule.ignore_merges, "vocab": vocabulary.object(),
        "merges": merges(file, vocabulary)?,
    });
    let normalizer = if rule.nfc { json!({ "type": "NFC" }) } else { Value::Null };
    let decoder = splits::byte_level(true);
    Ok((document(normalizer, rule.pre_tokenizer(), decoder, model), rule.add_bos))
}

/// The file's merges as pairs; each part and the whole must be tokens.
fn merges(file: &Gguf, vocabulary: &Vocabulary<'_>) -> Result<Value> {
    let key = "tokenizer.ggml.merges";
    let lines = required(file, key, file.texts(key)?)?;
    let mut pairs = Vec::with_capacity(lines.len());
    for (rank, line) in lines.iter().enumerate() {
        // The blank between the parts is not the first character, which may be a blank itself.
        let cut = line.char_indices().skip(1).find(|(_, c)| *c == ' ').map(|(at, _)| at);
        let parts = cut.map(|at| (&line[..at], &line[at + 1..]));
        let known = parts.filter(|(left, right)| {
            let whole = format!("{left}{right}");
            [*left, right, whole.as_str()].iter().all(|t| vocabulary.ids.contains_key(t))
        });
        let Some((left, right)) = known else {
            let what = format!("merge {rank}, {line:?}, is not of two tokens that make a third");
            return Err(file.metadata_error(key, what));
        };
        pairs.push(json!([left, right]));
    }
    Ok(pairs.into())
}

/// The post-processor that puts tokens before and after a text.
fn surround(before: Option<(usize, &str)>, after: Option<(usize, &str)>) -> Value {
    if before.is_none() && after.is_none() {
        return Value::Null;
    }
    let special = |token: Option<(usize, &str)>, kind: u32| {
        token.map(|(_, text)| json!({ "SpecialToken": { "id": text, "type_id": kind } }))
    };
    let text = |id: &str, kind: u32| json!({ "Sequence": { "id": id, "type_id": kind } });
    let part = |id: &str, kind: u32| {
        let parts = [special(before, kind), Some(text(id, kind)), special(after, kind)];
        parts.into_iter().flatten().collect::<Vec<_>>()
    };
    let mut tokens = Map::new();
    for (id, text) in [before, after].into_iter().flatten() {
        tokens.insert(text.to_owned(), json!({ "id": text, "ids": [id], "tokens": [text] }));
    }
    let pair = [part("A", 0), part("B", 1)].concat();
    json!({
        "type": "TemplateProcessing", "single": part("A", 0), "pair": pair, "special_tokens": tokens,
    })
}

/// One template, or the list of named ones.
fn chat_template(file: &Gguf) -> Result<Option<Value>> {
    let main = file.text("tokenizer.chat_template")?;
    let Some(names) = file.texts("tokenizer.chat_templates")? else {
        return Ok(main.map(Value::from));
    };
    let mut list = Vec::new();
    for name in names {
        let key = format!("tokenizer.chat_template.{name}");
        let template = required(file, &key, file.text(&key)?)?;
        list.push(json!({ "name": name, "template": template }));
    }
    if let Some(main) = main {
        list.insert(0, json!({ "name": "default", "template": main }));
    }
    Ok(Some(list.into()))
}
