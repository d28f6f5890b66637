//! Tokenizers over characters with a mark for blanks and bytes to fall back on.

use serde_json::{Map, Value, json};

use super::super::error::Result;
use super::super::reader::{Gguf, Metadata};
use super::{Kind, Vocabulary, document, merges, required};

/// Stands for a blank within tokens.
const BLANK: &str = "\u{2581}";

/// A SentencePiece model: pieces with scores, of which the best pair is merged first.
pub(super) fn ranked_by_score(
    file: &Gguf,
    vocabulary: &Vocabulary<'_>,
) -> Result<(Map<String, Value>, bool)> {
    let key = "tokenizer.ggml.remove_extra_whitespaces";
    if file.bool(key)? == Some(true) {
        return Err(file.metadata_error(key, "true is not supported"));
    }
    let prefix = file.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let merges = by_score(file, vocabulary)?;
    Ok((characters(vocabulary, prefix, merges), true))
}

/// The same alphabet, with the merges listed.
pub(super) fn ranked_by_merges(
    file: &Gguf,
    vocabulary: &Vocabulary<'_>,
) -> Result<(Map<String, Value>, bool)> {
    Ok((characters(vocabulary, false, merges(file, vocabulary)?), true))
}

fn characters(vocabulary: &Vocabulary<'_>, prefix: bool, merges: Value) -> Map<String, Value> {
    let unknown = vocabulary.kinds.iter().position(|kind| *kind == Kind::Unknown);
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": unknown.map(|id| vocabulary.tokens[id]),
        "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
        "byte_fallback": true, "ignore_merges": false, "vocab": vocabulary.object(),
        "merges": merges,
    });
    let mark = json!({ "type": "Replace", "pattern": { "String": " " }, "content": BLANK });
    let normalizer = if prefix {
        let prepend = json!({ "type": "Prepend", "prepend": BLANK });
        json!({ "type": "Sequence", "normalizers": [prepend, mark] })
    } else {
        mark
    };
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": BLANK }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if prefix {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    let decoder = json!({ "type": "Sequence", "decoders": decoders });
    document(normalizer, Value::Null, decoder, model)
}

/// Every way to make a piece of two others, best score first; of equal ones the longest left part.
fn by_score(file: &Gguf, vocabulary: &Vocabulary<'_>) -> Result<Value> {
    let key = "tokenizer.ggml.scores";
    let scores = required(file, key, file.array(key)?)?;
    if scores.len() != vocabulary.tokens.len() {
        let what = format!("{} scores of {} tokens", scores.len(), vocabulary.tokens.len());
        return Err(file.metadata_error(key, what));
    }
    let mut found: Vec<(f32, usize, usize, &str, &str)> = Vec::new();
    for (id, (token, score)) in vocabulary.tokens.iter().zip(scores).enumerate() {
        let score = match score {
            Metadata::Float(score) if !score.is_nan() => *score,
            other => {
                return Err(file.metadata_error(key, format!("token {id} has the score {other:?}")));
            }
        };
        if !matches!(vocabulary.kinds[id], Kind::Normal | Kind::UserDefined) {
            continue;
        }
        let length = token.chars().count();
        let mut ways: Vec<_> = token
            .char_indices()
            .enumerate()
            .skip(1)
            .filter_map(|(count, (at, _))| {
                let (left, right) = token.split_at(at);
                let ids = (*vocabulary.ids.get(left)?, *vocabulary.ids.get(right)?);
                Some((ids, (score, count, length - count, left, right)))
            })
            .collect();
        ways.sort_unstable_by_key(|(ids, _)| *ids);
        found.extend(ways.into_iter().map(|(_, way)| way));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.cmp(&a.2)));
    Ok(found.iter().map(|(_, _, _, left, right)| json!([left, right])).collect::<Vec<_>>().into())
}
