//! Keys that nobody read, and keys that say nothing about how a model computes.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::json;

/// A key that nobody read.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread<'a> {
    /// Its dotted path.
    pub path: String,
    /// Its value, never null.
    pub value: &'a Value,
}

impl Unread<'_> {
    /// Its value as JSON, cut after 60 characters.
    pub fn shown(&self) -> String {
        json::shortened(self.value)
    }
}

impl fmt::Display for Unread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.path, self.shown())
    }
}

/// Keys that say nothing about how a model computes; with all beneath them.
pub const BENIGN_KEYS: &[&str] = &[
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "audio_config",
    "audio_token_id",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "boa_token_id",
    "boi_token_id",
    "boi_token_index",
    "bos_token_id",
    "cache_implementation",
    "classifier_dropout",
    "dtype",
    "embd_pdrop",
    "embedding_dropout",
    "eoa_token_id",
    "eoi_token_id",
    "eoi_token_index",
    "eos_token_id",
    "ep_size",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "image_token_id",
    "image_token_index",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "language",
    "license",
    "mlp_dropout",
    "mm_tokens_per_image",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "resid_pdrop",
    "residual_dropout",
    "return_dict",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "seq_aux",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
    "use_return_dict",
    "video_token_id",
    "vision_config",
    "vision_end_token_id",
    "vision_start_token_id",
    "vision_token_id",
];

pub(super) fn unread<'a>(json: &'a Value, read: &BTreeSet<String>) -> Vec<Unread<'a>> {
    let mut found = Vec::new();
    walk(json, "", read, &mut found);
    found
}

fn walk<'a>(value: &'a Value, path: &str, read: &BTreeSet<String>, found: &mut Vec<Unread<'a>>) {
    let Value::Object(map) = value else { return };
    for (key, value) in map {
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if value.is_null() || BENIGN_KEYS.contains(&key.as_str()) || read.contains(&full) {
            continue;
        }
        // An object is told by its members when some of them were read.
        let beneath = format!("{full}.");
        let partly = read.range(beneath.clone()..).next().is_some_and(|r| r.starts_with(&beneath));
        let nested = path.is_empty() && key.as_str() == "text_config";
        if value.is_object() && (partly || nested) {
            walk(value, &full, read, found);
        } else {
            found.push(Unread { path: full, value });
        }
    }
}
