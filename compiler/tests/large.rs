//! A checkpoint of 100 GB in 50 shards is held against its family from its headers alone.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::fmt::Write as _;
use std::path::Path;

use specc::compile;
use specc::library::Library;
use specc::model::{self, Model};

mod common;

const SHARDS: usize = 50;
const LAYERS: usize = 150;
const EXPERTS: usize = 220;

/// A mixture: config.json, an index and sparse shards, none of whose numbers are there.
/// Returns the bytes of everything but the numbers.
fn write_folder(dir: &Path) -> u64 {
    let config = serde_json::json!({
        "model_type": "qwen3_moe", "hidden_size": 512, "num_hidden_layers": LAYERS, "intermediate_size": 1024,
        "vocab_size": 1000, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6,
        "num_experts": EXPERTS, "num_experts_per_tok": 8, "moe_intermediate_size": 1024,
    });
    std::fs::write(dir.join("config.json"), config.to_string()).unwrap();
    let mut shards: Vec<Vec<(String, Vec<usize>)>> = vec![Vec::new(); SHARDS];
    shards[0].push(("model.embed_tokens.weight".to_owned(), vec![1000, 512]));
    shards[0].push(("model.norm.weight".to_owned(), vec![512]));
    shards[0].push(("lm_head.weight".to_owned(), vec![1000, 512]));
    for layer in 0..LAYERS {
        let shard = &mut shards[layer % SHARDS];
        let mut add = |name: String, shape: &[usize]| {
            shard.push((format!("model.layers.{layer}.{name}.weight"), shape.to_vec()));
        };
        for (name, shape) in [
            ("input_layernorm", &[512][..]),
            ("post_attention_layernorm", &[512]),
            ("self_attn.q_proj", &[512, 512]),
            ("self_attn.k_proj", &[128, 512]),
            ("self_attn.v_proj", &[128, 512]),
            ("self_attn.o_proj", &[512, 512]),
            ("self_attn.q_norm", &[64]),
            ("self_attn.k_norm", &[64]),
            ("mlp.gate", &[EXPERTS, 512]),
        ] {
            add(name.to_owned(), shape);
        }
        for expert in 0..EXPERTS {
            for (name, shape) in
                [("gate_proj", [1024, 512]), ("up_proj", [1024, 512]), ("down_proj", [512, 1024])]
            {
                add(format!("mlp.experts.{expert}.{name}"), &shape);
            }
        }
    }
    let mut index = String::new();
    let mut written = 0;
    for (at, tensors) in shards.iter().enumerate() {
        let file = format!("model-{at}.safetensors");
        for (name, _) in tensors {
            let comma = if index.is_empty() { "" } else { ", " };
            write!(index, "{comma}\"{name}\": \"{file}\"").unwrap();
        }
        written += common::write_tensors(&dir.join(&file), tensors);
    }
    let index = format!("{{\"weight_map\": {{{index}}}}}");
    std::fs::write(dir.join("model.safetensors.index.json"), &index).unwrap();
    written + index.len() as u64 + config.to_string().len() as u64
}

/// A figure of this process, where the system tells it.
fn figure(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':').trim().split(' ').next()?.parse().ok()
}

#[test]
fn headers_are_read_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let headers = write_folder(dir.path());
    let library = Library::builtin();
    let checked = compile::check(&library, "qwen3_moe").unwrap();
    // The count of the peak starts anew, where the system can.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (held, read) = (figure("status", "VmHWM"), figure("io", "rchar"));
    let model = Model::open(dir.path()).unwrap();
    assert!(model.tensors.total_bytes() > 100_000_000_000);
    let (report, warnings) =
        model::check(&library, &checked.manifest, &checked.program, &model).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(report.tensors, 3 + LAYERS * (9 + 3));
    if let (Some(before), Some(after)) = (read, figure("io", "rchar")) {
        let read = after - before;
        // A sixteenth more for what is read twice: lengths, the ends of buffers.
        assert!(read < headers + headers / 16 + 65_536, "{read} bytes read of {headers}");
    }
    if let (Some(before), Some(after)) = (held, figure("status", "VmHWM")) {
        let used = after.saturating_sub(before) >> 10;
        assert!(used < 200, "{used} MiB more at the peak");
    }
}
