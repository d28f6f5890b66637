//! Prompts: ids from lists and files, messages through templates, options from flags.

use std::path::Path;

use anyhow::{Context, bail};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use specc_text::Tokenizer;

use super::args::SamplingArgs;
use crate::Array;
use crate::array::from_bytes;
use crate::generate::{Model, Options};
use crate::sample::{Penalties, Sampling};

/// Numbers of a list such as `1,2,3`.
pub(super) fn numbers<T: std::str::FromStr>(what: &str, text: &str) -> anyhow::Result<Vec<T>> {
    let number = |part: &str| {
        part.trim().parse().map_err(|_| {
            anyhow::anyhow!("{what}: expected numbers with commas between, found {part:?}")
        })
    };
    text.split(',').map(number).collect()
}

/// Ids of a safetensors file: their rows, and the length of a row.
pub(super) fn ids_of_file(path: &Path, name: &str) -> anyhow::Result<(usize, Vec<u32>)> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("{shown}"))?;
    let file = safetensors_of(&bytes, path)?;
    let Ok(tensor) = file.tensor(name) else {
        bail!("{shown}: no tensor `{name}`; it holds {}", file.names().join(", "));
    };
    let axes = tensor.shape().len();
    if axes != 1 && axes != 2 {
        bail!("{shown}: `{name}` has the shape {:?}; expected one or two axes", tensor.shape());
    }
    let ids = integers(&tensor).with_context(|| format!("{shown}: `{name}`"))?;
    let rows = if axes == 2 { tensor.shape()[0] } else { 1 };
    Ok((rows, ids))
}

/// Floats of a safetensors file as they lie there; none where it holds no such tensor.
pub(super) fn floats_of_file(path: &Path, name: &str) -> anyhow::Result<Option<Array>> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("{shown}"))?;
    let file = safetensors_of(&bytes, path)?;
    let Ok(tensor) = file.tensor(name) else { return Ok(None) };
    let dtype = match tensor.dtype() {
        Dtype::F32 => crate::Dtype::Float32,
        Dtype::F16 => crate::Dtype::Float16,
        Dtype::BF16 => crate::Dtype::Bfloat16,
        other => bail!("{shown}: `{name}`: expected floats of 16 or 32 bits, found {other:?}"),
    };
    let shape = tensor.shape().iter().map(|n| i32::try_from(*n)).collect::<Result<Vec<_>, _>>();
    let shape = shape.with_context(|| format!("{shown}: `{name}`: {:?}", tensor.shape()))?;
    Ok(Some(from_bytes(tensor.data(), &shape, dtype)?))
}

fn safetensors_of<'b>(bytes: &'b [u8], path: &Path) -> anyhow::Result<SafeTensors<'b>> {
    SafeTensors::deserialize(bytes)
        .map_err(|e| anyhow::anyhow!("{}: not a safetensors file: {e}", path.display()))
}

fn integers(tensor: &TensorView<'_>) -> anyhow::Result<Vec<u32>> {
    let size = match tensor.dtype() {
        Dtype::I32 | Dtype::U32 => 4,
        Dtype::I64 | Dtype::U64 => 8,
        other => bail!("expected integers of 32 or 64 bits, found {other:?}"),
    };
    let id = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let id = i64::from_le_bytes(wide);
        // A negative number of 32 bits reads as one above 2^31, which no vocabulary has.
        u32::try_from(id).map_err(|_| anyhow::anyhow!("{id} is no token"))
    };
    tensor.data().chunks_exact(size).map(id).collect()
}

/// The options of a request.
pub(super) fn options(args: &SamplingArgs, model: &Model, text: bool) -> Options {
    let newline = text
        .then(|| model.tokenizer().ok()?.encode("\n", false).ok())
        .flatten()
        .filter(|ids| ids.len() == 1);
    let mut xtc_special = model.eos();
    xtc_special.extend(newline.unwrap_or_default());
    // Without a seed each run differs, as temperature promises.
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let random = clock.map_or(0, |time| time.as_nanos() as u64);
    Options {
        max_tokens: args.max_tokens,
        sampling: Sampling {
            temperature: args.temp,
            top_p: args.top_p,
            min_p: args.min_p,
            min_keep: 1,
            xtc_probability: args.xtc_probability,
            xtc_threshold: args.xtc_threshold,
            xtc_special,
            top_k: args.top_k,
            seed: args.seed.unwrap_or(random),
        },
        penalties: Penalties {
            logit_bias: args.logit_bias.clone(),
            repetition: args.repetition_penalty,
            repetition_context: args.penalty_context,
            presence: args.presence_penalty,
            presence_context: args.penalty_context,
            frequency: args.frequency_penalty,
            frequency_context: args.penalty_context,
        },
        stop: args.stop.clone(),
        guard_nan: args.guard_nan,
        text,
        ..Options::default()
    }
}

/// Ids of a prompt; the token that begins a text is left out where the text follows another.
pub(super) fn ids(
    tokenizer: &Tokenizer,
    text: &Text<'_>,
    follows: bool,
) -> anyhow::Result<Vec<u32>> {
    let ids = match text {
        Text::Plain(text) => tokenizer.encode_prompt(text)?,
        Text::Rendered(text) => tokenizer.encode_rendered(text)?,
    };
    let begins = follows && ids.len() > 1 && ids.first().copied() == tokenizer.bos_id();
    Ok(ids.into_iter().skip(usize::from(begins)).collect())
}

/// What a prompt is made of.
pub(super) enum Text<'t> {
    /// A text as it is.
    Plain(&'t str),
    /// A rendered conversation, with the template's own special tokens.
    Rendered(&'t str),
}
