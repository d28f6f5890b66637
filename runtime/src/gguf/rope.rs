//! Rope scaling: from GGUF's keys and tensors to Hugging Face's words.

use std::f64::consts::TAU;

use serde_json::{Map, Value, json};

use super::config::{Keys, number};
use super::error::Result;
use super::reader::{Gguf, TensorInfo};

/// The tensor that holds what each rotation's wavelength is multiplied by.
const FACTORS: &str = "rope_freqs.weight";

/// The `rope_scaling` entry; none when the file scales nothing.
///
/// # Errors
/// A type that is unknown, a missing key, or factors that no known rule gives.
pub(super) fn scaling(file: &mut Gguf, keys: &Keys) -> Result<Option<Value>> {
    let key = |name: &str| keys.full(name);
    let kind = file.text(&key("rope.scaling.type"))?.map(str::to_owned);
    let original = file.int(&key("rope.scaling.original_context_length"))?;
    let factor = match file.get(&key("rope.scaling.factor")) {
        Some(value) => Some(number(file, &key("rope.scaling.factor"), value)?),
        None => match file.get(&key("rope.scale_linear")) {
            Some(value) => Some(number(file, &key("rope.scale_linear"), value)?),
            None => None,
        },
    };
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    match kind.as_deref() {
        None | Some("none") | Some("longrope") => {}
        Some(kind @ ("linear" | "yarn")) => {
            let Some(factor) = factor.clone() else {
                return Err(file.metadata_error(
                    &key("rope.scaling.factor"),
                    format!("missing, and the rope is scaled by `{kind}`"),
                ));
            };
            put("rope_type", json!(kind));
            put("factor", factor);
            if let Some(original) = original {
                put("original_max_position_embeddings", json!(original));
            }
            for (from, to) in [
                ("rope.scaling.attn_factor", "attention_factor"),
                ("rope.scaling.yarn_beta_fast", "beta_fast"),
                ("rope.scaling.yarn_beta_slow", "beta_slow"),
            ] {
                if let Some(value) = file.get(&key(from)) {
                    put(to, number(file, &key(from), value)?);
                }
            }
            return Ok(Some(Value::Object(out)));
        }
        Some(other) => {
            return Err(file.metadata_error(
                &key("rope.scaling.type"),
                format!("expected none, linear, yarn or longrope, found `{other}`"),
            ));
        }
    }
    let long = file.tensor("rope_factors_long.weight").cloned();
    let short = file.tensor("rope_factors_short.weight").cloned();
    if let (Some(long), Some(short)) = (long, short) {
        put("rope_type", json!("longrope"));
        put("long_factor", json!(values(file, &long)?));
        put("short_factor", json!(values(file, &short)?));
        if let Some(original) = original {
            put("original_max_position_embeddings", json!(original));
        }
        return Ok(Some(Value::Object(out)));
    }
    if let Some(info) = file.tensor(FACTORS).cloned() {
        let factors = values(file, &info)?;
        return recognise(file, &factors, base(file, keys)?).map(Some);
    }
    match factor {
        // Old files state the factor without a type; 1 and 0 scale nothing.
        Some(factor) if factor.as_f64().is_some_and(|f| f != 0.0 && f != 1.0) => {
            Ok(Some(json!({ "rope_type": "linear", "factor": factor })))
        }
        _ => Ok(None),
    }
}

fn base(file: &Gguf, keys: &Keys) -> Result<f64> {
    let key = keys.full("rope.freq_base");
    match file.get(&key) {
        Some(value) => Ok(number(file, &key, value)?.as_f64().unwrap_or(10_000.0)),
        None => Ok(10_000.0),
    }
}

/// A small float tensor's values.
fn values(file: &mut Gguf, info: &TensorInfo) -> Result<Vec<f32>> {
    if info.bytes > 1 << 20 {
        return Err(file.tensor_error(&info.name, format!("{} bytes of rope factors", info.bytes)));
    }
    let mut bytes = vec![0; info.bytes as usize];
    file.read(info, 0, &mut bytes)?;
    let mut out = Vec::new();
    info.block.dequantise(&bytes, &mut out);
    Ok(out)
}

/// The rule of rope type "llama3" that gives these factors: the file keeps only its result.
fn recognise(file: &Gguf, factors: &[f32], base: f64) -> Result<Value> {
    let (low, high, original) = (1.0, 4.0, 8192.0);
    let largest = factors.iter().copied().fold(1.0f32, f32::max);
    if factors.iter().all(|f| *f == 1.0) {
        return Ok(Value::Null);
    }
    let fits = factors.iter().enumerate().all(|(i, found)| {
        let wavelength = TAU * base.powf(i as f64 / factors.len() as f64);
        let expected = if wavelength < original / high {
            1.0
        } else if wavelength > original / low {
            f64::from(largest)
        } else {
            let smooth = (original / wavelength - low) / (high - low);
            1.0 / ((1.0 - smooth) / f64::from(largest) + smooth)
        };
        (f64::from(*found) - expected).abs() <= 1e-4 * expected
    });
    if !fits {
        let what = "its factors are those of no known rope scaling";
        return Err(file.tensor_error(FACTORS, what));
    }
    Ok(json!({
        "rope_type": "llama3",
        "factor": largest,
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": original as i64,
    }))
}
