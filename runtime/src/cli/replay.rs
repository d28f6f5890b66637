//! `replay`: runs of another program's denoising loop, with the draws it made.
//!
//! A step's signal is made of the step before, so that a last bit that differs in the first step is a
//! different token after ten or twenty. Runs are therefore repeated with the arithmetic that they
//! were recorded with: quantised weights stay quantised, and BLAS multiplies without fusing.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{ModelArgs, ReplayArgs};
use super::console::say;
use super::{Families, load};
use crate::generate::denoise::{
    CanvasSampler, CanvasStep, DenoisingSettings, Progress, RecordedNoise, Stopping, Temperature,
};
use crate::generate::{FinishReason, Model, Options};

/// A run: what it was given, and what it drew.
#[derive(Debug, Deserialize)]
struct Trace {
    sampler: SamplerWord,
    prompt_ids: Vec<u32>,
    steps: u32,
    t_min: f64,
    t_max: f64,
    max_tokens: usize,
    #[serde(default)]
    eos: Vec<u32>,
    threshold: Option<f64>,
    entropy_bound: Option<f64>,
    stopping: Option<StoppingWords>,
    max_canvas_length: Option<u32>,
    min_canvas_length: Option<u32>,
    draws: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum SamplerWord {
    #[serde(rename = "confidence-threshold")]
    Confidence,
    #[serde(rename = "entropy-bound")]
    Entropy,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct StoppingWords {
    stability_threshold: u32,
    confidence_threshold: f64,
}

/// The kernels that OpenBLAS is told to take: those with neither fused products nor sums in parts,
/// which reference BLAS has neither.
const KERNELS: (&str, &str) = ("OPENBLAS_CORETYPE", "Sandybridge");

/// Starts this process anew with such kernels, where it is to replay; OpenBLAS chooses when it is
/// loaded. Comes back where nothing has to be done, where it was done, and where it cannot be done.
pub(super) fn plain_products(command: Option<&OsStr>) {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if command == Some(OsStr::new("replay"))
        && std::env::var_os(KERNELS.0).is_none()
        && std::is_x86_feature_detected!("avx")
        && let Ok(program) = std::env::current_exe()
    {
        use std::os::unix::process::CommandExt;
        let arguments = std::env::args_os().skip(1);
        let error =
            std::process::Command::new(program).args(arguments).env(KERNELS.0, KERNELS.1).exec();
        super::console::complain(&format!("warning: products may be fused: {error}"));
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    let _ = (command, KERNELS);
}

pub(super) fn run(families: Families, args: &ReplayArgs) -> anyhow::Result<()> {
    let traces = read(&args.trace, args.name.as_deref())?;
    let model = ModelArgs { model: args.model.clone(), keep_quantized: true };
    let model = load(families, &model, &Default::default())?;
    for (name, trace) in traces {
        let place = format!("{}: trace {name:?}", args.trace.display());
        let object = replay(&model, name, trace).context(place)?;
        say(&format!("{object}\n"))?;
    }
    Ok(())
}

/// The traces of a file in its order, or the one that is asked for.
fn read(path: &Path, name: Option<&str>) -> anyhow::Result<Vec<(String, Trace)>> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("{shown}"))?;
    let all: Map<String, Value> = serde_json::from_slice(&bytes)
        .with_context(|| format!("{shown}: expected a JSON object of traces by name"))?;
    if let Some(name) = name
        && !all.contains_key(name)
    {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        bail!("{shown}: no trace {name:?}; it holds {}", known.join(", "));
    }
    let wanted = all.into_iter().filter(|(own, _)| name.is_none_or(|name| name == own));
    wanted
        .map(|(name, value)| {
            if !value.is_object() {
                bail!("{shown}: trace {name:?}: expected an object, found {value}");
            }
            let trace = serde_json::from_value(value)
                .with_context(|| format!("{shown}: trace {name:?}"))?;
            Ok((name, trace))
        })
        .collect()
}

impl Trace {
    /// How it was denoised, on a model whose longest canvas is known.
    fn settings(&self, model: &DenoisingSettings) -> DenoisingSettings {
        DenoisingSettings {
            max_canvas_length: self.max_canvas_length.unwrap_or(model.max_canvas_length),
            min_canvas_length: self.min_canvas_length.unwrap_or(model.min_canvas_length),
            steps: self.steps,
            temperature: Temperature { least: self.t_min, most: self.t_max },
            sampler: match self.sampler {
                SamplerWord::Confidence => CanvasSampler::Confidence,
                SamplerWord::Entropy => CanvasSampler::Entropy,
            },
            threshold: self.threshold.or(model.threshold),
            entropy_bound: self.entropy_bound.or(model.entropy_bound),
            stopping: self.stopping.map(|words| Stopping {
                canvases: words.stability_threshold,
                entropy: words.confidence_threshold,
            }),
            stop_ids: self.eos.clone(),
        }
    }
}

fn replay(model: &Model, name: String, trace: Trace) -> anyhow::Result<Value> {
    let Some(of_model) = model.denoising_settings() else {
        bail!("models of the family {} do not denoise", model.family().name);
    };
    let settings = trace.settings(of_model);
    let options = Options { max_tokens: trace.max_tokens, text: false, ..Options::default() };
    let noise = Box::new(RecordedNoise::new(trace.draws));
    let mut session = model.session();
    let mut run = model.denoise_with(&mut session, &trace.prompt_ids, options, settings, noise)?;
    let mut blocks: Vec<Value> = Vec::new();
    let mut steps: Vec<Value> = Vec::new();
    let mut emitted = Vec::new();
    loop {
        match run.advance()? {
            Progress::Read { .. } => {}
            Progress::Step(CanvasStep { canvas_in, argmax, last, .. }) => {
                steps.push(json!({ "argmax": argmax, "canvas_in": canvas_in }));
                if last {
                    blocks.push(json!({ "steps": std::mem::take(&mut steps), "result": argmax }));
                }
            }
            Progress::Ended => break,
        }
    }
    for piece in run.by_ref() {
        emitted.extend(piece?.id);
    }
    let stats = run.stats()?;
    let reason = run.finish_reason().unwrap_or(FinishReason::Length);
    Ok(json!({
        "name": name,
        "emitted_tokens": emitted,
        "finish_reason": reason.word(),
        "generation_tokens": stats.generated_tokens,
        "denoising_steps": stats.denoising_steps,
        "blocks": blocks,
    }))
}
