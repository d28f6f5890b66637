//! How a family denoises, and what a request makes of it.

use serde::Serialize;

use crate::weights::ModelSource;
use crate::{Error, Result};

/// Positions that a canvas has at most, whatever a configuration says.
const MAX_CANVAS: u32 = 1 << 16;

/// Steps of a canvas at most.
const MAX_STEPS: u32 = 1 << 16;

/// What a family's document says of its denoising, under `[method]`.
#[derive(Debug)]
pub struct DenoisingMethod {
    /// Positions of the longest canvas, from a model's configuration.
    pub canvas_length: fn(&ModelSource) -> Result<i64>,
    /// Positions that a canvas has at least.
    pub min_canvas_length: u32,
    /// Steps of a canvas.
    pub steps: u32,
    /// What logits are divided by.
    pub temperature: Temperature,
    /// What decides which positions stay, where a request does not say.
    pub sampler: CanvasSampler,
    /// The probability from which on a position stays.
    pub threshold: Option<f64>,
    /// The entropy, in nats, that the positions which stay share.
    pub entropy_bound: Option<f64>,
    /// Ends a canvas before its last step.
    pub stopping: Option<Stopping>,
    /// Ids that end a text; where there are none, those of the model's files do.
    pub stop_ids: &'static [u32],
}

/// What decides which positions of a canvas stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CanvasSampler {
    /// A position stays for good once its token is likely enough.
    Confidence,
    /// In each step those stay whose entropies add up to little.
    Entropy,
}

/// What logits are divided by: it falls from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Temperature {
    /// What it falls towards.
    pub least: f64,
    /// In the first step.
    pub most: f64,
}

impl Temperature {
    /// Of the step after which `left` of `steps` are left, itself included.
    pub fn at(self, left: u32, steps: u32) -> f64 {
        self.least + (self.most - self.least) * (f64::from(left) / f64::from(steps))
    }
}

/// Ends a canvas before its last step: when the likeliest tokens no longer change and are certain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stopping {
    /// How many canvases of likeliest tokens before this one have to equal it.
    pub canvases: u32,
    /// The mean entropy, in nats, that this one has to be below.
    pub entropy: f64,
}

/// What a request changes of its family's method; what is absent stays.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DenoisingOptions {
    /// What decides which positions stay.
    pub sampler: Option<CanvasSampler>,
    /// Steps of a canvas.
    pub steps: Option<u32>,
    /// The probability from which on a position stays.
    pub threshold: Option<f64>,
    /// The entropy that the positions which stay share.
    pub entropy_bound: Option<f64>,
    /// Ends a canvas before its last step.
    pub stopping: Option<Stopping>,
    /// Positions of a canvas at most.
    pub max_canvas_length: Option<u32>,
    /// Positions of a canvas at least.
    pub min_canvas_length: Option<u32>,
    /// Each canvas is as long as the model's longest.
    pub full_canvas: bool,
}

/// How a request denoises: the family's method on a model, with the request's changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DenoisingSettings {
    /// Positions of a canvas at most.
    pub max_canvas_length: u32,
    /// Positions of a canvas at least, where that many are allowed.
    pub min_canvas_length: u32,
    /// Steps of a canvas.
    pub steps: u32,
    /// What logits are divided by.
    pub temperature: Temperature,
    /// What decides which positions stay.
    pub sampler: CanvasSampler,
    /// The probability from which on a position stays, for [`CanvasSampler::Confidence`].
    pub threshold: Option<f64>,
    /// The entropy that the positions which stay share, for [`CanvasSampler::Entropy`].
    pub entropy_bound: Option<f64>,
    /// Ends a canvas before its last step.
    pub stopping: Option<Stopping>,
    /// Ids that end a text.
    pub stop_ids: Vec<u32>,
}

/// By which positions of a canvas are kept, the number of the rule included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Keep {
    /// Positions of at least this probability stay.
    Confidence(f32),
    /// Positions whose entropies add up to at most this stay.
    Entropy(f32),
}

impl DenoisingSettings {
    /// A family's method on a model.
    ///
    /// # Errors
    /// The configuration's canvas has no length that can be.
    pub(crate) fn of(method: &DenoisingMethod, source: &ModelSource) -> Result<Self> {
        let length = (method.canvas_length)(source)?;
        let fits = u32::try_from(length).ok().filter(|n| (1..=MAX_CANVAS).contains(n));
        let Some(max_canvas_length) = fits else {
            return Err(Error::Check(format!(
                "length of a canvas: expected a number from 1 to {MAX_CANVAS}, found {length}"
            )));
        };
        Ok(Self {
            max_canvas_length,
            min_canvas_length: method.min_canvas_length,
            steps: method.steps,
            temperature: method.temperature,
            sampler: method.sampler,
            threshold: method.threshold,
            entropy_bound: method.entropy_bound,
            stopping: method.stopping,
            stop_ids: method.stop_ids.to_vec(),
        })
    }

    /// The same with a request's changes.
    ///
    /// # Errors
    /// Names the number that is out of range, or that the chosen sampler lacks.
    pub fn with(&self, options: &DenoisingOptions) -> Result<Self> {
        let longest = self.max_canvas_length;
        let changed = Self {
            max_canvas_length: match options.max_canvas_length {
                Some(_) if options.full_canvas => {
                    let what = "length of a canvas";
                    return Err(Error::input(what, "a full canvas or a longest one", "both"));
                }
                most => most.unwrap_or(longest),
            },
            min_canvas_length: match options.full_canvas {
                true => longest,
                false => options.min_canvas_length.unwrap_or(self.min_canvas_length),
            },
            steps: options.steps.unwrap_or(self.steps),
            sampler: options.sampler.unwrap_or(self.sampler),
            threshold: options.threshold.or(self.threshold),
            entropy_bound: options.entropy_bound.or(self.entropy_bound),
            stopping: options.stopping.or(self.stopping),
            ..self.clone()
        };
        changed.check(longest)?;
        Ok(changed)
    }

    /// Checks numbers that may come from anywhere, on a model whose longest canvas is `longest`.
    ///
    /// # Errors
    /// Names the number that is out of range.
    pub fn check(&self, longest: u32) -> Result<()> {
        whole("length of the longest canvas", self.max_canvas_length, longest)?;
        whole("length of the shortest canvas", self.min_canvas_length, MAX_CANVAS)?;
        whole("steps of a canvas", self.steps, MAX_STEPS)?;
        let Temperature { least, most } = self.temperature;
        let tiny = f64::from(f32::MIN_POSITIVE);
        within("least temperature", least, tiny, f64::from(f32::MAX))?;
        within("highest temperature", most, least, f64::from(f32::MAX))?;
        if let Some(stopping) = self.stopping {
            whole("canvases alike before a stop", stopping.canvases, MAX_STEPS)?;
            within("mean entropy of a stop", stopping.entropy, 0.0, f64::MAX)?;
        }
        self.keep().map(drop)
    }

    /// The chosen sampler with its number.
    pub(super) fn keep(&self) -> Result<Keep> {
        let missing = |what: &str| Error::input(what, "a number", "none in the family's document");
        match self.sampler {
            CanvasSampler::Confidence => {
                let name = "confidence threshold";
                let threshold = self.threshold.ok_or_else(|| missing(name))?;
                within(name, threshold, 0.0, 1.0)?;
                Ok(Keep::Confidence(threshold as f32))
            }
            CanvasSampler::Entropy => {
                let name = "entropy bound";
                let bound = self.entropy_bound.ok_or_else(|| missing(name))?;
                within(name, bound, 0.0, f64::from(f32::MAX))?;
                Ok(Keep::Entropy(bound as f32))
            }
        }
    }

    /// Positions of the next canvas when `remaining` tokens may still come.
    pub(super) fn length(&self, remaining: usize) -> usize {
        let most = self.max_canvas_length as usize;
        most.min(remaining.max(most.min(self.min_canvas_length as usize)))
    }
}

fn whole(what: &str, value: u32, most: u32) -> Result<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::input(what, format!("a number from 1 to {most}"), value.to_string()))
}

fn within(what: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let expected = match (low, high) {
        (low, high) if high <= 1.0 => format!("a number from {low} to {high}"),
        (_, high) if value > high => format!("a number of at most {high:e}"),
        (low, _) if low == f64::from(f32::MIN_POSITIVE) => "a number above 0".to_owned(),
        (low, _) => format!("a number of at least {low}"),
    };
    let found = if value.abs() < 1e16 { value.to_string() } else { format!("{value:e}") };
    Err(Error::input(what, expected, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> DenoisingSettings {
        DenoisingSettings {
            max_canvas_length: 16,
            min_canvas_length: 4,
            steps: 8,
            temperature: Temperature { least: 0.4, most: 0.8 },
            sampler: CanvasSampler::Confidence,
            threshold: Some(0.9),
            entropy_bound: None,
            stopping: None,
            stop_ids: vec![1],
        }
    }

    #[test]
    fn a_canvas_is_as_long_as_what_is_left_within_its_bounds() {
        let lengths = |s: &DenoisingSettings| [0, 3, 4, 9, 16, 17, usize::MAX].map(|n| s.length(n));
        assert_eq!(lengths(&settings()), [4, 4, 4, 9, 16, 16, 16]);
        // The least length yields to the greatest.
        let wide = DenoisingSettings { min_canvas_length: 64, ..settings() };
        assert_eq!(lengths(&wide), [16; 7]);
        let full = DenoisingOptions { full_canvas: true, ..Default::default() };
        assert_eq!(lengths(&settings().with(&full).unwrap()), [16; 7]);
        let short = DenoisingOptions { max_canvas_length: Some(8), ..Default::default() };
        assert_eq!(lengths(&settings().with(&short).unwrap()), [4, 4, 4, 8, 8, 8, 8]);
    }

    #[test]
    fn the_temperature_falls_to_just_above_its_least() {
        let t = Temperature { least: 0.4, most: 0.8 };
        assert_eq!(t.at(8, 8), 0.8);
        assert!((t.at(1, 8) - 0.45).abs() < 1e-12);
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let off = DenoisingOptions::default;
        let stop = |canvases, entropy| Some(Stopping { canvases, entropy });
        let cases = [
            DenoisingOptions { steps: Some(0), ..off() },
            DenoisingOptions { steps: Some(u32::MAX), ..off() },
            DenoisingOptions { threshold: Some(1.5), ..off() },
            DenoisingOptions { threshold: Some(f64::NAN), ..off() },
            DenoisingOptions { sampler: Some(CanvasSampler::Entropy), ..off() },
            DenoisingOptions {
                sampler: Some(CanvasSampler::Entropy),
                entropy_bound: Some(-1.0),
                ..off()
            },
            DenoisingOptions { max_canvas_length: Some(17), ..off() },
            DenoisingOptions { min_canvas_length: Some(0), ..off() },
            DenoisingOptions { max_canvas_length: Some(8), full_canvas: true, ..off() },
            DenoisingOptions { stopping: stop(0, 0.1), ..off() },
            DenoisingOptions { stopping: stop(1, -0.1), ..off() },
        ];
        let said = cases.map(|options| settings().with(&options).unwrap_err().to_string());
        insta::assert_snapshot!(said.join("\n"), @r"
        steps of a canvas: expected a number from 1 to 65536, found 0
        steps of a canvas: expected a number from 1 to 65536, found 4294967295
        confidence threshold: expected a number from 0 to 1, found 1.5
        confidence threshold: expected a number from 0 to 1, found NaN
        entropy bound: expected a number, found none in the family's document
        entropy bound: expected a number of at least 0, found -1
        length of the longest canvas: expected a number from 1 to 16, found 17
        length of the shortest canvas: expected a number from 1 to 65536, found 0
        length of a canvas: expected a full canvas or a longest one, found both
        canvases alike before a stop: expected a number from 1 to 65536, found 0
        mean entropy of a stop: expected a number of at least 0, found -0.1
        ");
        let hot = Temperature { least: 0.9, most: 0.8 };
        let found = DenoisingSettings { temperature: hot, ..settings() }.check(16).unwrap_err();
        assert_eq!(
            found.to_string(),
            "highest temperature: expected a number of at least 0.9, found 0.8"
        );
        let cold = Temperature { least: 0.0, most: 0.8 };
        let found = DenoisingSettings { temperature: cold, ..settings() }.check(16).unwrap_err();
        assert_eq!(found.to_string(), "least temperature: expected a number above 0, found 0");
    }
}
