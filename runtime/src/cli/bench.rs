//! `bench`

use std::time::Instant;

use anyhow::bail;
use mlx_rs::{Array, memory, random, transforms};
use serde_json::{Value, json};

use super::args::{BenchArgs, DtypeArg};
use super::console::{Activity, say};
use super::{Families, load};
use crate::array::operations;
use crate::cache::CacheSet;
use crate::composition::CompositionRequest;
use crate::generate::Model;
use crate::graph::{Autoregressive, TokenPhases};
use crate::weights::{ModelSource, QuantParams, Synthetic};
use crate::{Dtype, Result, ops};

/// Tokens of a prompt that are read in one forward.
const CHUNK: i32 = 2048;

pub(super) fn run(families: Families, args: &BenchArgs) -> anyhow::Result<()> {
    let model = model(families, args)?;
    let graph = model.graph().autoregressive()?;
    let Some(vocabulary) = model.vocabulary() else { bail!("the model's vocabulary is unknown") };
    let activity = Activity::start("measuring".into());
    let mut runs = Vec::new();
    for repeat in 0..=u64::from(args.repeat) {
        let run = Run::measure(&model, graph, args, vocabulary, repeat)?;
        // The first one warms up.
        if repeat > 0 {
            runs.push(run);
        }
    }
    activity.end();
    let median = |of: &dyn Fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values[middle - 1] + values[middle]) / 2.0
        }
    };
    let (prefill, step) = (median(&|r| r.prefill), median(&|r| r.step));
    let rows = f64::from(args.rows);
    let object = json!({
        "engine": "specc",
        "workload": name(args),
        "rows": args.rows,
        "prompt": args.prompt,
        "prefill_ms": round(prefill * 1e3, 2),
        "prefill_tps": round(rows * f64::from(args.prompt) / prefill, 1),
        "step_ms": round(step * 1e3, 4),
        "decode_tps": round(rows / step, 1),
        "peak_gb": round(median(&|r| r.peak) / 1e9, 3),
        "cache_mb": round(median(&|r| r.cache) / 1e6, 3),
        "step_mb": round(median(&|r| r.extra) / 1e6, 3),
        "build_ms": round(median(&|r| r.build) * 1e3, 4),
        "dispatch_ms": round(median(&|r| r.dispatch) * 1e3, 4),
        "wait_ms": round(median(&|r| r.wait) * 1e3, 4),
        "operations": count_operations(&model, graph, args)?,
    });
    say(&if args.json { format!("{object}\n") } else { text(&object) })
}

/// The model: a folder's, or shapes filled with random numbers.
fn model(families: Families, args: &BenchArgs) -> anyhow::Result<Model> {
    if let Some(folder) = &args.model {
        let args =
            super::args::ModelArgs { model: folder.clone(), keep_quantized: args.keep_quantized };
        return load(families, &args, &CompositionRequest::default());
    }
    let Some(config) = &args.config else { bail!("neither a model nor a configuration") };
    let dtype = match args.dtype.unwrap_or(DtypeArg::Bf16) {
        DtypeArg::Bf16 => Dtype::Bfloat16,
        DtypeArg::F16 => Dtype::Float16,
        DtypeArg::F32 => Dtype::Float32,
    };
    let quantisation = args.quantize.map(|bits| QuantParams::affine(bits, 64));
    if let Some(bits) = args.quantize
        && !matches!(bits, 2..=6 | 8)
    {
        bail!("--quantize: expected 2, 3, 4, 5, 6 or 8 bits, found {bits}");
    }
    let source = ModelSource::synthetic(config, Synthetic { dtype, quantisation, seed: 0 })?;
    let activity = Activity::start(format!("filling {}", config.display()));
    let model = Model::of_source(families, source, &CompositionRequest::default())?;
    activity.end();
    Ok(model)
}

fn name(args: &BenchArgs) -> String {
    let path = args.model.as_ref().or(args.config.as_ref());
    let stem = path.and_then(|path| path.file_stem());
    let stem = stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    args.name.clone().unwrap_or(stem)
}

/// Seconds of one run.
struct Run {
    prefill: f64,
    /// A step of the pipelined loop.
    step: f64,
    /// Of a step: making the graph.
    build: f64,
    /// Handing it to MLX.
    dispatch: f64,
    /// Waiting for the token before.
    wait: f64,
    /// Bytes that MLX held at most.
    peak: f64,
    /// Bytes of the caches at the end.
    cache: f64,
    /// Bytes held at most while decoding, beside what was held when it began.
    extra: f64,
}

impl Run {
    fn measure(
        model: &Model,
        graph: &dyn Autoregressive,
        args: &BenchArgs,
        vocabulary: u32,
        seed: u64,
    ) -> Result<Run> {
        // Counts of the command line are below 2^24.
        let (rows, prompt) = (i32::from(args.rows), args.prompt as i32);
        let key = random::key(seed)?;
        let ids = random::randint::<_, i32>(0, vocabulary as i32, &[rows, prompt], &key)?;
        ids.eval()?;
        let mut caches = model.cache_plan().make();
        if let Some(positions) = args.allocate {
            caches.reserve(positions as usize);
        }
        memory::reset_peak_memory()?;
        let start = Instant::now();
        let mut token = read(graph, &mut caches, &ids)?;
        token.eval()?;
        memory::clear_cache()?;
        let (reading, held) = (memory::peak_memory()?, memory::active_memory()?);
        memory::reset_peak_memory()?;
        let first = Instant::now();
        let (mut build, mut dispatch, mut wait) = (0.0, 0.0, 0.0);
        for n in 1..=args.decode {
            let began = Instant::now();
            let following = step(graph, &mut caches, &token)?;
            let built = Instant::now();
            transforms::async_eval([&following])?;
            let dispatched = Instant::now();
            token.eval()?;
            let done = Instant::now();
            build += (built - began).as_secs_f64();
            dispatch += (dispatched - built).as_secs_f64();
            wait += (done - dispatched).as_secs_f64();
            token = following;
            if n % 256 == 0 {
                memory::clear_cache()?;
            }
        }
        token.eval()?;
        let seconds = first.elapsed().as_secs_f64();
        let most = memory::peak_memory()?;
        let bytes = |x: &Array| x.nbytes() as f64;
        let steps = f64::from(args.decode);
        Ok(Run {
            prefill: (first - start).as_secs_f64(),
            step: seconds / steps,
            build: build / steps,
            dispatch: dispatch / steps,
            wait: wait / steps,
            peak: reading.max(most) as f64,
            cache: caches.arrays().into_iter().map(bytes).sum(),
            extra: most.saturating_sub(held) as f64,
        })
    }
}

/// Reads prompts [B, L] in chunks, the last token alone; gives the first new tokens [B, 1].
fn read(graph: &dyn Autoregressive, caches: &mut CacheSet, ids: &Array) -> Result<Array> {
    let length = ids.dim(1);
    let mut at = 0;
    while at < length - 1 {
        let end = (at + CHUNK).min(length - 1);
        graph.prompt(caches, &ops::slice(ids, 1, at, end)?)?;
        caches.eval()?;
        memory::clear_cache()?;
        at = end;
    }
    let hidden = graph.prompt(caches, &ops::slice(ids, 1, length - 1, length)?)?;
    ops::argmax(&TokenPhases::logits(graph, &hidden)?, -1)
}

/// Tokens [B, 1] to the next ones.
fn step(graph: &dyn Autoregressive, caches: &mut CacheSet, token: &Array) -> Result<Array> {
    let hidden = graph.decode(caches, token)?;
    ops::argmax(&TokenPhases::logits(graph, &hidden)?, -1)
}

/// MLX operations of one step.
fn count_operations(model: &Model, graph: &dyn Autoregressive, args: &BenchArgs) -> Result<usize> {
    let rows = i32::from(args.rows);
    let ids = mlx_rs::ops::zeros::<i32>(&[rows, 2])?;
    let mut caches = model.cache_plan().make();
    let token = read(graph, &mut caches, &ids)?;
    transforms::eval([&token].into_iter().chain(caches.arrays()))?;
    let following = step(graph, &mut caches, &token)?;
    operations(&[&following])
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

fn text(o: &Value) -> String {
    format!(
        "{}: {} rows, {} tokens read in {} ms ({} tokens/s); a step takes {} ms ({} tokens/s): build {}, dispatch {}, wait {}; {} operations; peak {} GB\n",
        o["workload"].as_str().unwrap_or_default(),
        o["rows"],
        o["prompt"],
        o["prefill_ms"],
        o["prefill_tps"],
        o["step_ms"],
        o["decode_tps"],
        o["build_ms"],
        o["dispatch_ms"],
        o["wait_ms"],
        o["operations"],
        o["peak_gb"],
    )
}
