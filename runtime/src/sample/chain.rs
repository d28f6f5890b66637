//! The chain top-p, min-p, XTC, top-k, categorical.

use mlx_rs::ops::{argpartition_axis, argsort_axis};
use mlx_rs::{Array, random};

use super::bounded;
use crate::array::{from_i32s, scalar};
use crate::{Result, ops};

/// How the next token is chosen. The default takes the likeliest.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 takes the likeliest token; all that follows is then without effect.
    pub temperature: f32,
    /// The share of probability that the kept tokens hold at least; 0 or 1: off.
    pub top_p: f32,
    /// The least probability relative to the likeliest token's; 0: off.
    pub min_p: f32,
    /// How many tokens `min_p` keeps at least.
    pub min_keep: i32,
    /// The chance that likely tokens but the least of them are excluded at a step; 0: off.
    pub xtc_probability: f32,
    /// What counts as likely, at most 0.5.
    pub xtc_threshold: f32,
    /// Tokens that are never excluded so, such as the end of the text and the line break.
    pub xtc_special: Vec<u32>,
    /// The number of tokens to choose from; 0: off.
    pub top_k: i32,
    /// Fixes every choice, together with the step.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 0.0,
            min_p: 0.0,
            min_keep: 1,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            xtc_special: Vec::new(),
            top_k: 0,
            seed: 0,
        }
    }
}

/// A checked [`Sampling`].
#[derive(Debug, Clone)]
pub struct Sampler {
    settings: Sampling,
    special: Option<Array>,
}

/// `logits − logsumexp(logits)` in float32: [B, V] -> [B, V].
///
/// # Errors
/// MLX's.
pub fn log_probabilities(logits: &Array) -> Result<Array> {
    let logits = ops::to_f32(logits)?;
    ops::sub(&logits, &ops::logsumexp(&logits, -1, true)?)
}

impl Sampler {
    /// Checks the settings.
    ///
    /// # Errors
    /// Names the setting that is out of range.
    pub fn new(settings: Sampling) -> Result<Self> {
        bounded("temperature", settings.temperature, 0.0, f32::MAX)?;
        bounded("top-p", settings.top_p, 0.0, 1.0)?;
        bounded("min-p", settings.min_p, 0.0, 1.0)?;
        bounded("tokens that min-p keeps", settings.min_keep as f32, 1.0, f32::MAX)?;
        bounded("XTC probability", settings.xtc_probability, 0.0, 1.0)?;
        bounded("XTC threshold", settings.xtc_threshold, 0.0, 0.5)?;
        bounded("top-k", settings.top_k as f32, 0.0, f32::MAX)?;
        let special: Vec<i32> =
            settings.xtc_special.iter().filter_map(|id| i32::try_from(*id).ok()).collect();
        let special = (!special.is_empty()).then(|| from_i32s(&special));
        Ok(Self { settings, special })
    }

    /// The settings.
    pub fn settings(&self) -> &Sampling {
        &self.settings
    }

    /// Whether the likeliest token is taken.
    pub fn is_greedy(&self) -> bool {
        self.settings.temperature == 0.0
    }

    /// The tokens of step `step`, the number of tokens generated before: logits [B, V] -> uint32 \[B\].
    ///
    /// # Errors
    /// MLX's.
    pub fn sample(&self, logits: &Array, step: u64) -> Result<Array> {
        if self.is_greedy() {
            return ops::argmax(logits, -1);
        }
        let s = &self.settings;
        let mut key = random::key(step_key(s.seed, step))?;
        let mut x = log_probabilities(logits)?;
        if s.top_p > 0.0 && s.top_p < 1.0 {
            x = top_p(&x, s.top_p)?;
        }
        if s.min_p > 0.0 {
            x = min_p(&x, s.min_p, s.min_keep)?;
        }
        if s.xtc_probability > 0.0 {
            let (uniform, categorical) = random::split(&key, 2)?;
            key = categorical;
            x = self.xtc(&x, &uniform)?;
        }
        if s.top_k > 0 && s.top_k < vocabulary(&x) {
            x = top_k(&x, s.top_k)?;
        }
        let x = ops::mul_scalar(&x, 1.0 / s.temperature)?;
        Ok(random::categorical(&x, -1, None, &key)?)
    }

    /// Excludes all likely tokens but the least likely of them, if the die falls so.
    fn xtc(&self, x: &Array, key: &Array) -> Result<Array> {
        let s = &self.settings;
        let p = ops::softmax(x, false)?;
        let infinite = lowest_of(&p, f32::INFINITY);
        let likely = ops::less(&scalar(s.xtc_threshold, p.dtype()), &p)?;
        let least = ops::min(&ops::select(&likely, &p, &infinite)?, -1, true)?;
        let mut excluded = ops::less(&least, &p)?;
        if let Some(special) = &self.special {
            let index = ops::broadcast_to(special, &[x.dim(0), special.dim(0)])?;
            excluded = excluded.put_along_axis(&index, Array::from_bool(false), -1)?;
        }
        let u = random::uniform::<_, f32>(0.0, 1.0, &[], key)?;
        let falls = ops::less_equal(&u, &Array::from_f32(s.xtc_probability))?;
        let excluded = ops::logical_and(&excluded, &falls)?;
        ops::select(&excluded, &lowest_of(x, f32::NEG_INFINITY), x)
    }
}

/// The seed of a step's key.
fn step_key(seed: u64, step: u64) -> u64 {
    seed ^ step.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn vocabulary(x: &Array) -> i32 {
    x.dim(-1)
}

fn lowest_of(like: &Array, value: f32) -> Array {
    scalar(value, like.dtype())
}

/// Keeps the likeliest tokens that together hold the share `p`: those whose cumulative probability,
/// from the least likely up, exceeds `1 − p`.
fn top_p(x: &Array, p: f32) -> Result<Array> {
    let order = argsort_axis(x, -1)?;
    let rising = ops::cumsum(&ops::exp(&ops::gather(x, &order, -1)?)?, -1)?;
    // Each token's rank, so that the sums go back to where the tokens are.
    let ranks = ops::broadcast_to(&ops::arange(0, vocabulary(x))?, x.shape())?;
    let rank = ops::zeros_like(&ranks)?.put_along_axis(&order, &ranks, -1)?;
    let mass = ops::gather(&rising, &rank, -1)?;
    let kept = ops::less(&scalar(1.0 - p, mass.dtype()), &mass)?;
    ops::select(&kept, x, &lowest_of(x, f32::NEG_INFINITY))
}

/// Keeps tokens of at least `p` times the greatest probability.
fn min_p(x: &Array, p: f32, min_keep: i32) -> Result<Array> {
    let least = ops::add_scalar(&ops::max(x, -1, true)?, f64::from(p).ln() as f32)?;
    let mut removed = ops::less(x, &least)?;
    let size = vocabulary(x);
    if min_keep > 1 && min_keep < size {
        let order = argpartition_axis(x, size - min_keep, -1)?;
        let index = ops::slice(&order, -1, size - min_keep, size)?;
        removed = removed.put_along_axis(&index, Array::from_bool(false), -1)?;
    } else if min_keep >= size {
        return Ok(x.clone());
    }
    ops::select(&removed, &lowest_of(x, f32::NEG_INFINITY), x)
}

/// Keeps the `k` likeliest tokens.
fn top_k(x: &Array, k: i32) -> Result<Array> {
    let order = argpartition_axis(ops::neg(x)?, k - 1, -1)?;
    let removed = ops::slice(&order, -1, k, vocabulary(x))?;
    Ok(x.put_along_axis(&removed, lowest_of(x, f32::NEG_INFINITY), -1)?)
}
