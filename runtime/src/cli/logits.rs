//! `logits`

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::args::LogitsArgs;
use super::{Families, begin, load, prompt};
use crate::array::from_i32s;
use crate::generate::{Model, Session};
use crate::{Array, ops};

pub(super) fn run(families: Families, args: &LogitsArgs) -> anyhow::Result<()> {
    let path = Path::new(&args.ids);
    let is_file = path.extension().is_some_and(|e| e == "safetensors") || path.is_file();
    let (rows, ids) = match (is_file, args.rows) {
        (true, rows) => prompt::ids_of_file(path, if rows { "batch_ids" } else { "ids" })?,
        (false, true) => bail!("--rows takes its ids from a safetensors file"),
        (false, false) => (1, prompt::numbers("--ids", &args.ids)?),
    };
    if rows != 1 && !args.rows {
        bail!("{}: `ids` has {rows} rows; expected one", path.display());
    }
    let model = load(families, &args.model, &args.cache.request()?)?;
    model.check_ids(&ids)?;
    let name = model.family().name;
    match (&args.canvas, model.denoising_settings()) {
        (Some(_), None) => bail!("--canvas: models of the family {name} do not denoise"),
        (None, Some(_)) => {
            bail!("models of the family {name} denoise: --canvas FILE gives the logits of a canvas")
        }
        _ => {}
    }
    let length = ids.len() / rows.max(1);
    let chunks = chunks(args, length)?;
    let mut session = begin(&model, &args.cache)?;
    if args.rows && (args.cache.load_cache.is_some() || args.cache.save_cache.is_some()) {
        bail!("caches in files are of one row; --rows has several");
    }
    let logits = match &args.canvas {
        Some(file) => of_canvas(&model, &mut session, &ids, chunks.as_deref(), file)?,
        None => {
            // Ids are below a vocabulary of at most 31 bits, their count below a file's bytes.
            let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
            let array = ops::reshape(&from_i32s(&ids), &[rows as i32, length as i32])?;
            let logits = model.logits_in(&mut session, &array, chunks.as_deref())?;
            if args.rows { logits } else { ops::squeeze(&logits, 0)? }
        }
    };
    write(&logits, &args.out, || match &args.cache.save_cache {
        Some(file) => Ok(model.save_session(&session, file)?),
        None => Ok(()),
    })
}

/// The appends that are asked for, one by one or all but the last of one length.
fn chunks(args: &LogitsArgs, length: usize) -> anyhow::Result<Option<Vec<usize>>> {
    if let Some(text) = &args.chunks {
        return prompt::numbers("--chunks", text).map(Some);
    }
    let Some(each) = args.cache.composition.prefill_chunk else { return Ok(None) };
    let each = usize::try_from(each).unwrap_or(1).max(1);
    let starts = (0..length).step_by(each);
    Ok(Some(starts.map(|start| each.min(length - start)).collect()))
}

/// The logits [C, V] of a file's canvas after ids, which go into the session in appends of `chunks`.
fn of_canvas(
    model: &Model,
    session: &mut Session,
    ids: &[u32],
    chunks: Option<&[usize]>,
    file: &Path,
) -> anyhow::Result<Array> {
    let shown = file.display();
    let (rows, canvas) = prompt::ids_of_file(file, "canvas")?;
    if rows != 1 {
        bail!("{shown}: `canvas` has {rows} rows; expected one");
    }
    let signal = prompt::floats_of_file(file, "soft_embeddings")?;
    let mut rest = ids;
    for length in crate::generate::append_lengths(chunks, ids.len())? {
        let (part, after) = rest.split_at(length.min(rest.len()));
        model.append(session, part)?;
        rest = after;
    }
    model.canvas_logits(session, &canvas, signal.as_ref()).with_context(|| format!("{shown}"))
}

/// Writes logits once they are computed and `before` is done.
fn write(
    logits: &Array,
    out: &Path,
    before: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    logits.eval()?;
    let shape: Vec<usize> = logits.shape().iter().map(|n| *n as usize).collect();
    let values = logits.try_as_slice::<f32>().map_err(|e| anyhow::anyhow!("MLX: {e}"))?;
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, shape, &bytes)?;
    let file = safetensors::serialize(HashMap::from([("logits", view)]), None)?;
    before()?;
    std::fs::write(out, file).with_context(|| format!("{}", out.display()))
}
