//! What becomes of each tensor: its name, its form, and the order of its rows.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::blocks::BlockType;
use super::config::Keys;
use super::error::{GgufError, Result};
use super::map::{GgufMap, GgufTensor};
use super::names;
use super::reader::{Gguf, TensorInfo};

/// The form in which a tensor is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Plain values.
    Float(FloatType),
    /// MLX's affine quantisation with float32 scales, groups of 32.
    Affine(u32),
    /// MLX's mxfp4.
    Mxfp4,
}

/// The type of the values that are not quantised, one for the whole folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloatType {
    F32,
    F16,
    BF16,
}

impl FloatType {
    /// As `torch_dtype` says it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
        }
    }

    /// Whether this type holds the value exactly.
    fn holds(self, x: f32) -> bool {
        let back = match self {
            Self::F32 => x,
            Self::F16 => half::f16::from_f32(x).to_f32(),
            Self::BF16 => half::bf16::from_f32(x).to_f32(),
        };
        back.to_bits() == x.to_bits()
    }
}

/// One tensor's way.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub source: TensorInfo,
    /// Its name in the folder.
    pub name: String,
    pub form: Form,
    /// The number of heads whose rope halves are interleaved in the file.
    pub heads: Option<u64>,
    /// Added to every value.
    pub add: f32,
}

/// Plans every tensor of the file.
///
/// # Errors
/// A tensor that the map does not know, or two that get one name.
pub(super) fn plan(file: &mut Gguf, keys: &Keys, map: &GgufMap) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut taken: HashMap<String, String> = HashMap::new();
    for info in file.tensors() {
        let Some((name, rule)) = target(keys, map, info)? else {
            if map.ignore.iter().any(|p| names::matches(p, &info.name).is_some()) {
                continue;
            }
            return Err(file
                .tensor_error(&info.name, "no weight of this architecture is known by that name"));
        };
        if let Some(other) = taken.insert(name.clone(), info.name.clone()) {
            return Err(
                file.tensor_error(&info.name, format!("would become `{name}`, as `{other}` does"))
            );
        }
        let quantised =
            info.shape.len() >= 2 && name.ends_with(".weight") && !rule.dense && rule.add == 0.0;
        let form = match info.block.affine_bits() {
            Some(bits) if quantised => Form::Affine(bits),
            None if quantised && info.block == BlockType::MXFP4 => Form::Mxfp4,
            _ => Form::Float(FloatType::F32),
        };
        let heads = heads(file, keys, rule, info)?;
        steps.push(Step { source: info.clone(), name, form, heads, add: rule.add });
    }
    let float = float_type(file, &steps)?;
    for step in &mut steps {
        if step.form == Form::Float(FloatType::F32) {
            step.form = Form::Float(float);
        }
    }
    Ok(steps)
}

fn target<'a>(
    keys: &Keys,
    map: &'a GgufMap,
    info: &TensorInfo,
) -> Result<Option<(String, &'a GgufTensor)>> {
    for (pattern, rule) in map.tensors {
        if let Some(captures) = names::matches(pattern, &info.name) {
            let name = names::fill(rule.to, &captures).map_err(|brace| GgufError::Map {
                architecture: keys.full("").trim_end_matches('.').to_owned(),
                what: format!("`{}` uses {{{brace}}}, which `{pattern}` lacks", rule.to),
            })?;
            return Ok(Some((name, rule)));
        }
    }
    Ok(None)
}

/// The number of heads by which rows are reordered, checked against the shape.
fn heads(file: &Gguf, keys: &Keys, rule: &GgufTensor, info: &TensorInfo) -> Result<Option<u64>> {
    if rule.heads.is_empty() {
        return Ok(None);
    }
    let Some(found) = keys.int(file, rule.heads)? else {
        let key = rule.heads.first().map_or_else(String::new, |key| keys.full(key));
        return Err(file.metadata_error(&key, format!("missing; `{}` is ordered by it", info.name)));
    };
    // A bias is a column of one value a row.
    let rows = if info.shape.len() == 1 { info.columns() } else { info.rows() };
    match u64::try_from(found) {
        Ok(heads) if heads > 0 && rows.is_multiple_of(2 * heads) => Ok(Some(heads)),
        _ => Err(file.tensor_error(
            &info.name,
            format!("its {rows} rows do not divide into {found} heads of two halves"),
        )),
    }
}

/// The narrowest type that holds every plain value exactly.
///
/// Float32 as soon as a tensor is quantised: its scales and biases need it, and one type throughout
/// spares the model conversions.
fn float_type(file: &mut Gguf, steps: &[Step]) -> Result<FloatType> {
    let floats = || steps.iter().filter(|s| matches!(s.form, Form::Float(_)));
    let matrices = || floats().filter(|s| s.source.shape.len() >= 2).map(|s| s.source.block);
    if steps.iter().any(|s| matches!(s.form, Form::Affine(_))) {
        return Ok(FloatType::F32);
    }
    let wanted = match matrices().next() {
        Some(BlockType::F16) => FloatType::F16,
        Some(BlockType::BF16) => FloatType::BF16,
        _ => return Ok(FloatType::F32),
    };
    let own = if wanted == FloatType::F16 { BlockType::F16 } else { BlockType::BF16 };
    for step in floats().filter(|s| s.source.block != own) {
        // Norms and biases are widened to float32 by most writers; anything large is a real float32.
        if step.source.bytes > 1 << 24 {
            return Ok(FloatType::F32);
        }
        let mut bytes = vec![0; step.source.bytes as usize];
        file.read(&step.source, 0, &mut bytes)?;
        let mut values = Vec::new();
        step.source.block.dequantise(&bytes, &mut values);
        if !values.iter().all(|x| wanted.holds(*x + step.add)) {
            return Ok(FloatType::F32);
        }
    }
    Ok(wanted)
}

/// The `quantization` entry of `config.json`: the commonest form, and each module that differs.
pub(super) fn quantisation(steps: &[Step]) -> Option<Value> {
    let entry = |form: Form| match form {
        Form::Affine(bits) => Some(json!({ "group_size": 32, "bits": bits })),
        Form::Mxfp4 => Some(json!({ "group_size": 32, "bits": 4, "mode": "mxfp4" })),
        Form::Float(_) => None,
    };
    let count = |form: Form| steps.iter().filter(|s| s.form == form).count();
    let forms = [Form::Affine(4), Form::Affine(5), Form::Affine(8), Form::Mxfp4];
    let common = forms.into_iter().rev().max_by_key(|form| count(*form))?;
    if count(common) == 0 {
        return None;
    }
    let mut out: Map<String, Value> = entry(common)?.as_object()?.clone();
    for step in steps.iter().filter(|s| s.form != common) {
        if let (Some(entry), Some(module)) = (entry(step.form), step.name.strip_suffix(".weight")) {
            out.insert(module.to_owned(), entry);
        }
    }
    Some(out.into())
}
