//! `logits`

use std::collections::HashMap;

use anyhow::{Context, bail};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::args::LogitsArgs;
use super::{Families, begin, load, prompt};
use crate::array::from_i32s;
use crate::ops;

pub(super) fn run(families: Families, args: &LogitsArgs) -> anyhow::Result<()> {
    let chunks =
        args.chunks.as_deref().map(|text| prompt::numbers("--chunks", text)).transpose()?;
    let path = std::path::Path::new(&args.ids);
    let is_file = path.extension().is_some_and(|e| e == "safetensors") || path.is_file();
    let (rows, ids) = match (is_file, args.rows) {
        (true, rows) => prompt::ids_of_file(path, if rows { "batch_ids" } else { "ids" })?,
        (false, true) => bail!("--rows takes its ids from a safetensors file"),
        (false, false) => (1, prompt::numbers("--ids", &args.ids)?),
    };
    if rows != 1 && !args.rows {
        bail!("{}: `ids` has {rows} rows; expected one", path.display());
    }
    let model = load(families, &args.model, &args.cache.request())?;
    model.check_ids(&ids)?;
    let length = ids.len() / rows.max(1);
    // The ids are below a vocabulary of at most 31 bits, their count below that of a file's bytes.
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    let array = ops::reshape(&from_i32s(&ids), &[rows as i32, length as i32])?;
    let mut session = begin(&model, &args.cache)?;
    if args.rows && (args.cache.load_cache.is_some() || args.cache.save_cache.is_some()) {
        bail!("caches in files are of one row; --rows has several");
    }
    let logits = model.logits_in(&mut session, &array, chunks.as_deref())?;
    logits.eval()?;
    let mut shape: Vec<usize> = logits.shape().iter().map(|n| *n as usize).collect();
    if !args.rows {
        shape.remove(0);
    }
    let values = logits.try_as_slice::<f32>().map_err(|e| anyhow::anyhow!("MLX: {e}"))?;
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, shape, &bytes)?;
    let tensors = HashMap::from([("logits", view)]);
    let file = safetensors::serialize(tensors, None)?;
    if let Some(file) = &args.cache.save_cache {
        model.save_session(&session, file)?;
    }
    std::fs::write(&args.out, file).with_context(|| format!("{}", args.out.display()))
}
