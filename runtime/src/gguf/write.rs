//! Writing `model.safetensors` tensor by tensor, so that no more than a few rows are in memory.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::error::{GgufError, Result};
use super::plan::{FloatType, Form, Step};
use super::reader::Gguf;

/// How many bytes of a tensor are read at once.
const CHUNK: u64 = 4 << 20;

/// A tensor of the new file.
struct Region {
    name: String,
    dtype: &'static str,
    shape: Vec<u64>,
    bytes: u64,
}

/// The tensors that a step gives: the weight, and what its quantisation adds.
fn regions(step: &Step) -> Vec<Region> {
    let shape = &step.source.shape;
    let with_columns = |columns: u64| {
        let mut shape = shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = columns;
        }
        shape
    };
    let region = |name: String, dtype, shape: Vec<u64>, size: u64| Region {
        name,
        dtype,
        bytes: shape.iter().product::<u64>() * size,
        shape,
    };
    let columns = step.source.columns();
    let beside = |what: &str| match step.name.strip_suffix("weight") {
        Some(module) => format!("{module}{what}"),
        None => format!("{}.{what}", step.name),
    };
    let weight = |dtype, shape, size| region(step.name.clone(), dtype, shape, size);
    match step.form {
        Form::Float(FloatType::F32) => vec![weight("F32", shape.clone(), 4)],
        Form::Float(FloatType::F16) => vec![weight("F16", shape.clone(), 2)],
        Form::Float(FloatType::BF16) => vec![weight("BF16", shape.clone(), 2)],
        Form::Affine(bits) => vec![
            weight("U32", with_columns(columns / 32 * u64::from(bits)), 4),
            region(beside("scales"), "F32", with_columns(columns / 32), 4),
            region(beside("biases"), "F32", with_columns(columns / 32), 4),
        ],
        Form::Mxfp4 => vec![
            weight("U32", with_columns(columns / 8), 4),
            region(beside("scales"), "U8", with_columns(columns / 32), 1),
        ],
    }
}

/// Writes all steps into one file at `path`; `progress` hears the bytes read of the source.
///
/// # Errors
/// Reading or writing fails.
pub(super) fn safetensors(
    file: &mut Gguf,
    steps: &[Step],
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let io = |source| GgufError::Io { path: path.to_owned(), source };
    let mut header = Map::new();
    header.insert("__metadata__".into(), json!({ "format": "pt" }));
    let (mut at, mut starts) = (0u64, vec![Vec::new(); steps.len()]);
    // Bytes come after everything of two and four bytes, so that all values are aligned.
    for bytes_last in [false, true] {
        for (step, starts) in steps.iter().zip(&mut starts) {
            for region in regions(step) {
                if (region.dtype == "U8") != bytes_last {
                    continue;
                }
                let entry = json!({
                    "dtype": region.dtype,
                    "shape": region.shape,
                    "data_offsets": [at, at + region.bytes],
                });
                header.insert(region.name, entry);
                starts.push(at);
                at += region.bytes;
            }
        }
    }
    let mut text = Value::from(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut out = File::create(path).map_err(io)?;
    out.write_all(&(text.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(&text).map_err(io)?;
    let base = 8 + text.len() as u64;
    out.set_len(base + at).map_err(io)?;
    for (step, starts) in steps.iter().zip(&starts) {
        let mut places: Vec<u64> = starts.iter().map(|start| base + start).collect();
        each_chunk(file, step, |parts| {
            for (place, part) in places.iter_mut().zip(parts) {
                out.seek(SeekFrom::Start(*place)).and_then(|_| out.write_all(part)).map_err(io)?;
                *place += part.len() as u64;
            }
            Ok(())
        })?;
        progress(step.source.bytes);
    }
    Ok(())
}

/// Converts a tensor a few rows at a time; `write` gets the bytes for each of its regions.
fn each_chunk(
    file: &mut Gguf,
    step: &Step,
    mut write: impl FnMut(&[Vec<u8>; 3]) -> Result<()>,
) -> Result<()> {
    let source = &step.source;
    // Where rows are reordered a vector counts as a column of rows; blocks cannot be split so.
    let rows = match (step.heads, source.shape.len()) {
        (Some(_), 1) if source.block.elements() == 1 => source.columns(),
        (Some(_), 1) => {
            return Err(file.tensor_error(&source.name, "a vector in blocks cannot be reordered"));
        }
        _ => source.rows(),
    };
    let row_bytes = source.bytes / rows;
    let head_rows = step.heads.map_or(1, |heads| rows / heads);
    let chunk = (CHUNK / row_bytes / head_rows).max(1) * head_rows;
    let (mut at, mut bytes) = (0, Vec::new());
    while at < rows {
        let count = chunk.min(rows - at);
        bytes.resize((count * row_bytes) as usize, 0);
        file.read(source, at * row_bytes, &mut bytes)?;
        if step.heads.is_some() {
            bytes = half_split(&bytes, row_bytes as usize, head_rows as usize);
        }
        write(&convert(step, &bytes))?;
        at += count;
    }
    Ok(())
}

/// Puts the rows of each head from interleaved into half-split order: row `j` of the first half lies
/// at `2j`, row `j` of the second at `2j + 1`. Rows move whole, quantised or not.
fn half_split(bytes: &[u8], row_bytes: usize, head_rows: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(row_bytes * head_rows) {
        for half in 0..2 {
            for row in head.chunks_exact(row_bytes).skip(half).step_by(2) {
                out.extend_from_slice(row);
            }
        }
    }
    out
}

/// The bytes of a chunk for each region of its step.
fn convert(step: &Step, bytes: &[u8]) -> [Vec<u8>; 3] {
    let block = step.source.block;
    let mut parts: [Vec<u8>; 3] = Default::default();
    let [weight, scales, biases] = &mut parts;
    match step.form {
        Form::Affine(bits) => {
            for chunk in bytes.chunks_exact(block.bytes() as usize) {
                block.groups(chunk, |group| {
                    pack(&group.codes, bits, weight);
                    scales.extend(group.scale.to_le_bytes());
                    biases.extend(group.bias.to_le_bytes());
                });
            }
        }
        Form::Mxfp4 => {
            for chunk in bytes.chunks_exact(block.bytes() as usize) {
                if let Some((words, exponent)) = block.mxfp4(chunk) {
                    weight.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                    scales.push(exponent);
                }
            }
        }
        Form::Float(float) => {
            let mut values = Vec::new();
            block.dequantise(bytes, &mut values);
            for x in values {
                let x = x + step.add;
                match float {
                    FloatType::F32 => weight.extend(x.to_le_bytes()),
                    FloatType::F16 => weight.extend(half::f16::from_f32(x).to_le_bytes()),
                    FloatType::BF16 => weight.extend(half::bf16::from_f32(x).to_le_bytes()),
                }
            }
        }
    }
    parts
}

/// 32 codes as a little-endian stream of `bits` each, which fills `bits` words.
fn pack(codes: &[u8; 32], bits: u32, out: &mut Vec<u8>) {
    let (mut stream, mut held) = (0u64, 0);
    for code in codes {
        stream |= u64::from(*code) << held;
        held += bits;
        while held >= 8 {
            out.push(stream as u8);
            stream >>= 8;
            held -= 8;
        }
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
