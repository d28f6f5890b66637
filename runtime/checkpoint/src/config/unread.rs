use std::collections::BTreeSet;

use serde_json::Value;

/// A key that nobody read.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread<'a> {
    /// Its dotted path.
    pub path: String,
    /// Its value, never null.
    pub value: &'a Value,
}

/// Keys that say nothing about how a model computes; with all beneath them.
pub const BENIGN_KEYS: &[&str] = &[
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attn_pdrop",
    "audio_config",
    "audio_token_id",
    "auto_map",
    "bad_words_ids",
    "boa_token_id",
    "boi_token_id",
    "bos_token_id",
    "classifier_dropout",
    "dtype",
    "embd_pdrop",
    "embedding_dropout",
    "eoa_token_id",
    "eoi_token_id",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "image_token_id",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "language",
    "license",
    "mlp_dropout",
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
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "transformers.js_config",
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
