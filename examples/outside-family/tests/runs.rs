//! The family on a tiny model: at a sharpness of 1 it is a llama, whose numbers an independent program computed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use mlx_rs::Array;
use safetensors::SafeTensors;
use specc_runtime::{LoadOptions, Model};

fn case() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/parity/llama")
}

fn words(name: &str) -> Vec<[u8; 4]> {
    let bytes = std::fs::read(case().join("expected.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensor(name).unwrap().data().chunks(4).map(|word| word.try_into().unwrap()).collect()
}

/// The logits of the case's model as one of a family of this crate.
fn logits(model_type: &str, sharpness: Option<f32>) -> Vec<f32> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(case().join("model.safetensors"), folder.path().join("model.safetensors"))
        .unwrap();
    let config = std::fs::read(case().join("config.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    config["model_type"] = model_type.into();
    if let Some(sharpness) = sharpness {
        config["gate_sharpness"] = sharpness.into();
    }
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let model = Model::load(outside_family::families(), folder.path(), LoadOptions::default());
    let ids: Vec<i32> = words("ids").into_iter().map(i32::from_le_bytes).collect();
    let ids = Array::from_slice(&ids, &[1, ids.len() as i32]);
    let logits = model.unwrap().logits(&ids, None).unwrap();
    logits.eval().unwrap();
    logits.try_as_slice::<f32>().unwrap().to_vec()
}

/// The largest difference over the largest value.
fn difference(ours: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(ours.len(), expected.len());
    let largest = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
    ours.iter().zip(expected).fold(0f32, |most, (a, b)| most.max((a - b).abs())) / largest
}

// One test: MLX belongs to one thread of a process.
#[test]
fn the_operation_computes_what_it_says() {
    let reference: Vec<f32> = words("logits").into_iter().map(f32::from_le_bytes).collect();
    assert!(difference(&logits("sharp", None), &reference) <= 2e-4);
    let sharper = logits("sharp", Some(1.75));
    assert!(difference(&sharper, &reference) > 1e-2, "the config's number has an effect");
    assert!(difference(&sharper, &logits("plain", Some(1.75))) <= 2e-6);
}
