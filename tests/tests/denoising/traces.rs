//! Whole runs of the reference's loop, draw by draw.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;
use specc_runtime::Result;
use specc_runtime::generate::denoise::{
    CanvasSampler, DenoisingSettings, Noise, Progress, Stopping, Temperature,
};
use specc_runtime::generate::{Model, Options};
use specc_runtime::weights::LoadOptions;

/// The runs of a folder, by name.
pub(crate) fn read(dir: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(dir.join("traces.json")).unwrap();
    let Value::Object(traces) = serde_json::from_str(&text).unwrap() else { panic!("no object") };
    assert_eq!(traces.len(), 6, "{}", dir.display());
    traces.into_iter().collect()
}

/// The draws of a run, counted.
struct Draws {
    all: Vec<Vec<u32>>,
    used: Rc<Cell<usize>>,
}

impl Noise for Draws {
    fn canvas(&mut self, length: usize, vocabulary: u32) -> Result<Vec<u32>> {
        let draw = self.all[self.used.get()].clone();
        self.used.set(self.used.get() + 1);
        assert_eq!(draw.len(), length);
        assert!(draw.iter().all(|id| *id < vocabulary));
        Ok(draw)
    }
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn settings(trace: &Value, model: &DenoisingSettings) -> DenoisingSettings {
    let length = |key: &str, default| match &trace[key] {
        Value::Null => default,
        value => number(value),
    };
    DenoisingSettings {
        max_canvas_length: length("max_canvas_length", model.max_canvas_length),
        min_canvas_length: length("min_canvas_length", model.min_canvas_length),
        steps: number(&trace["steps"]),
        temperature: Temperature {
            least: trace["t_min"].as_f64().unwrap(),
            most: trace["t_max"].as_f64().unwrap(),
        },
        sampler: match trace["sampler"].as_str().unwrap() {
            "confidence-threshold" => CanvasSampler::Confidence,
            "entropy-bound" => CanvasSampler::Entropy,
            other => panic!("sampler {other}"),
        },
        threshold: trace["threshold"].as_f64(),
        entropy_bound: trace["entropy_bound"].as_f64(),
        stopping: trace["stopping"].as_object().map(|stop| Stopping {
            canvases: number(&stop["stability_threshold"]),
            entropy: stop["confidence_threshold"].as_f64().unwrap(),
        }),
        stop_ids: ids(&trace["eos"]),
    }
}

/// Every step, block and figure of a run, exactly.
pub(crate) fn replay(dir: &Path, trace: &Value) {
    // As they were recorded: products with quantised weights.
    let options = LoadOptions { keep_quantized: true };
    let model = Model::load(specc_families::families(), dir, options).unwrap();
    let settings = settings(trace, model.denoising_settings().unwrap());
    let all: Vec<Vec<u32>> = trace["draws"].as_array().unwrap().iter().map(ids).collect();
    let (count, used) = (all.len(), Rc::new(Cell::new(0)));
    let draws = Box::new(Draws { all, used: Rc::clone(&used) });
    let max_tokens = number(&trace["max_tokens"]) as usize;
    let options = Options { max_tokens, text: false, ..Options::default() };
    let mut session = model.session();
    let prompt = ids(&trace["prompt_ids"]);
    let mut run = model.denoise_with(&mut session, &prompt, options, settings, draws).unwrap();

    let blocks = trace["blocks"].as_array().unwrap();
    let mut expected = blocks.iter().enumerate().flat_map(|(block, value)| {
        let steps = value["steps"].as_array().unwrap();
        let last = steps.len() - 1;
        steps.iter().enumerate().map(move |(at, step)| (block, at == last, value, step))
    });
    loop {
        let step = match run.advance().unwrap() {
            Progress::Read { .. } => continue,
            Progress::Step(step) => step,
            Progress::Ended => break,
        };
        let (block, last, whole, wanted) = expected.next().expect("more steps than there were");
        let place = format!("block {block}, step {}", step.left);
        assert_eq!((step.block, step.last), (block, last), "{place}");
        assert_eq!(step.left, number(&wanted["s"]), "{place}");
        assert_eq!(step.canvas_in, ids(&wanted["canvas_in"]), "{place}");
        let scores = wanted.get("confidence").or_else(|| wanted.get("entropy"));
        if let Some(scores) = scores {
            let scores: Vec<f32> = serde_json::from_value(scores.clone()).unwrap();
            let off = step.scores.iter().zip(&scores).map(|(a, b)| (a - b).abs());
            let off = off.fold(0f32, f32::max);
            assert!(off <= 1e-4, "{place}: scores are off by {off:e}");
        }
        assert_eq!(step.argmax, ids(&wanted["argmax"]), "{place}");
        if last {
            assert_eq!(step.argmax, ids(&whole["result"]), "{place}");
        } else {
            // The confidence sampler remembers what it took, the entropy sampler does not.
            let stays = wanted.get("revealed").unwrap_or(&wanted["take"]);
            let stays: Vec<bool> = serde_json::from_value(stays.clone()).unwrap();
            assert_eq!(step.revealed, stays, "{place}");
        }
    }
    assert!(expected.next().is_none(), "fewer steps than there were");
    assert_eq!(used.get(), count, "draws");
    let emitted: Vec<u32> = run.by_ref().filter_map(|piece| piece.unwrap().id).collect();
    assert_eq!(emitted, ids(&trace["emitted_tokens"]));
    let stats = run.stats().unwrap();
    let reason = run.finish_reason().unwrap().word();
    assert_eq!(reason, trace["finish_reason"].as_str().unwrap());
    assert_eq!(stats.generated_tokens, number(&trace["generation_tokens"]) as usize);
    assert_eq!(stats.denoising_steps, number(&trace["denoising_steps"]) as usize);
    let last = run.end_token().or(emitted.last().copied()).unwrap();
    assert_eq!(last, number(&trace["last_token"]));
}
