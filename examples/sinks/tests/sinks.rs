//! The family as a model: its cache is no larger than its document says, and neither pieces of a
//! prompt, taking back, rows nor saving show in what it computes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::path::Path;

use specc_runtime::cache::CacheSet;
use specc_runtime::composition::KvOverride;
use specc_runtime::graph::TokenPhases;
use specc_runtime::phase::Padding;
use specc_runtime::weights::{ModelSource, Synthetic};
use specc_runtime::{Array, CompositionRequest, Dtype, KvRequest, Model, ops};

const CONFIG: &str = r#"{
    "model_type": "sinks_llama", "hidden_size": 64, "num_hidden_layers": 3,
    "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "rms_norm_eps": 1e-05, "vocab_size": 96, "tie_word_embeddings": true, "sink_window": 8
}"#;

fn model(folder: &Path, kv: KvRequest) -> Model {
    let config = folder.join("config.json");
    std::fs::write(&config, CONFIG).unwrap();
    let weights = Synthetic { dtype: Dtype::Float32, quantisation: None, seed: 7 };
    let source = ModelSource::synthetic(&config, weights).unwrap();
    let request = CompositionRequest { kv, ..CompositionRequest::default() };
    Model::of_source(specc_sinks::families(), source, &request).unwrap()
}

fn ids(from: i32, to: i32) -> Array {
    let ids: Vec<i32> = (from..to).map(|i| i * 37 % 96).collect();
    Array::from_slice(&ids, &[1, to - from])
}

/// Logits of tokens in pieces that end at these places.
fn logits(model: &Model, set: &mut CacheSet, from: i32, ends: &[i32]) -> Vec<f32> {
    let graph = model.graph().autoregressive().unwrap();
    let (mut at, mut all) = (from, Vec::new());
    for &end in ends {
        let piece = ids(at, end);
        let hidden = match end - at {
            1 => graph.decode(set, &piece),
            _ => graph.prompt(set, &piece),
        };
        let logits = TokenPhases::logits(graph, &hidden.unwrap()).unwrap();
        all.extend(logits.to_vec_cast::<f32>().unwrap());
        at = end;
    }
    all
}

fn near(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    let far = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < 1e-4, "{far}");
}

#[test]
fn one_document_is_a_whole_cache() {
    let folder = tempfile::tempdir().unwrap();
    let eight = KvRequest {
        scheme: KvOverride::Bits(8),
        group_size: Some(32),
        immediate: true,
        ..KvRequest::default()
    };
    for (kv, per_token) in [(KvRequest::default(), 2 * 2 * 32 * 4), (eight, 2 * 2 * (32 + 8))] {
        let model = model(folder.path(), kv);
        for size in model.cache_plan().sizes().unwrap() {
            assert_eq!((size.per_token, size.most), (per_token, Some(4 + 8)));
        }
        let fresh = || model.cache_plan().make();
        let mut set = fresh();
        let whole = logits(&model, &mut set, 0, &[40]);
        // In pieces, and token by token.
        let mut set = fresh();
        near(&whole, &logits(&model, &mut set, 0, &[13, 14, 29, 30, 31, 40]));
        let steps: Vec<i32> = (2..=40).collect();
        let mut set = fresh();
        near(&whole, &logits(&model, &mut set, 0, &steps));
        assert!(set.bytes() <= 3 * per_token * 13, "{} bytes", set.bytes());
        // The ring is full: what it forgot cannot come back.
        assert!(!set.can_trim(5));
        let mut set = fresh();
        logits(&model, &mut set, 0, &[11]);
        set.trim(4).unwrap();
        let vocabulary = whole.len() / 40;
        near(&whole[7 * vocabulary..], &logits(&model, &mut set, 7, &[20, 40]));
        // Two rows of unequal lengths, and one of them alone again.
        let mut rows = fresh();
        let graph = model.graph().autoregressive().unwrap();
        let pad = ops::zeros_like(&ids(0, 9)).unwrap();
        let second = ops::concat(&[&pad, &ids(0, 16)], 1).unwrap();
        let both = ops::concat(&[&ids(0, 25), &second], 0).unwrap();
        let padding = Padding { left: vec![0, 9], right: Vec::new() };
        graph.multi_sequence_prompt(&mut rows, &both, padding).unwrap();
        rows.filter(&[1]).unwrap();
        near(&whole[16 * vocabulary..], &logits(&model, &mut rows, 16, &[17, 18, 40]));
    }
}
