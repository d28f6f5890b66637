//! The passes of a denoising graph, and what they say of a canvas.

use mlx_rs::{Array, transforms};

use super::canvas::Judgement;
use super::method::Keep;
use crate::cache::{CachePlan, CacheSet};
use crate::generate::generation::row;
use crate::graph::Denoiser;
use crate::pass::Pass;
use crate::phase::{Padding, Phase};
use crate::{Dtype, Error, Result, ops};

/// The width and the type of a graph's hidden states: those of the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hidden {
    pub width: i32,
    pub dtype: Dtype,
}

/// Appends ids to the caches; what hidden states are like.
pub(super) fn read(graph: &dyn Denoiser, caches: &mut CacheSet, ids: &[u32]) -> Result<Hidden> {
    let ids = row(ids)?;
    let mut pass = Pass::begin(caches, Phase::Prompt, &ids, Padding::default())?;
    let hidden = graph.encode(&mut pass, &ids)?;
    pass.finish()?;
    Ok(Hidden { width: hidden.dim(-1), dtype: hidden.dtype() })
}

/// What hidden states are like, from a pass over one token that is not computed.
pub(super) fn hidden(graph: &dyn Denoiser, plan: &CachePlan) -> Result<Hidden> {
    read(graph, &mut plan.make(), &[0])
}

/// Ids below this number have logits, from passes that are not computed.
pub(super) fn vocabulary(graph: &dyn Denoiser, plan: &CachePlan) -> Result<Option<u32>> {
    let mut caches = plan.make();
    let hidden = read(graph, &mut caches, &[0])?;
    let logits = logits(graph, &mut caches, &[0], &zeros(hidden, 1)?)?;
    Ok(u32::try_from(logits.dim(-1)).ok())
}

/// Logits [1, C, V] of a canvas beside what the caches hold; `signal` [1, C, hidden].
pub(super) fn logits(
    graph: &dyn Denoiser,
    caches: &mut CacheSet,
    canvas: &[u32],
    signal: &Array,
) -> Result<Array> {
    let ids = row(canvas)?;
    let mut pass = Pass::begin(caches, Phase::ReadBlock, &ids, Padding::default())?;
    let logits = graph.denoise(&mut pass, &ids, signal)?;
    pass.finish()?;
    Ok(logits)
}

/// The signal of a first step: no belief at all.
pub(super) fn zeros(hidden: Hidden, length: usize) -> Result<Array> {
    // A canvas has at most 2^16 positions.
    let shape = [1, length as i32, hidden.width];
    Ok(mlx_rs::ops::zeros_dtype(&shape, hidden.dtype)?)
}

/// Logits of a step, judged; and what the next step's signal is made of.
pub(super) struct Judged {
    pub judgement: Judgement,
    /// The logits over their temperature, float32 [1, C, V].
    scaled: Array,
}

/// Reads logits [1, C, V] at a temperature; `mean` asks for the mean entropy whatever the rule.
pub(super) fn judge(logits: &Array, temperature: f64, keep: Keep, mean: bool) -> Result<Judged> {
    let z = ops::div_scalar(&ops::to_f32(logits)?, temperature as f32)?;
    let best = ops::argmax(&z, -1)?;
    let total = ops::logsumexp(&z, -1, true)?;
    let entropies = || -> Result<Array> {
        let log = ops::sub(&z, &total)?;
        ops::neg(&ops::sum(&ops::mul(&ops::exp(&log)?, &log)?, -1, false)?)
    };
    let (scores, entropy) = match keep {
        Keep::Confidence(_) => {
            let most = ops::max(&z, -1, true)?;
            let confidence = ops::squeeze(&ops::exp(&ops::sub(&most, &total)?)?, -1)?;
            (confidence, if mean { Some(entropies()?) } else { None })
        }
        Keep::Entropy(_) => {
            let entropies = entropies()?;
            (entropies.clone(), mean.then_some(entropies))
        }
    };
    transforms::eval([&best, &scores].into_iter().chain(&entropy))?;
    let mean_entropy = entropy.map(|h| numbers(&h)).transpose()?;
    let mean_entropy = mean_entropy.map(|h| h.iter().sum::<f32>() / h.len().max(1) as f32);
    let best = best.try_as_slice::<u32>().map_err(|e| Error::Mlx(e.to_string()))?.to_vec();
    let judgement = Judgement { best, scores: numbers(&scores)?, mean_entropy };
    Ok(Judged { judgement, scaled: z })
}

impl Judged {
    /// The signal for the next step, not computed yet.
    pub(super) fn signal(self, graph: &dyn Denoiser, hidden: Hidden) -> Result<Array> {
        // Of its own making for either sampler: the entropies' probabilities differ in the last bits.
        let p = ops::softmax(&self.scaled, true)?;
        ops::cast(&graph.soft_embeddings(&p)?, hidden.dtype)
    }
}

fn numbers(x: &Array) -> Result<Vec<f32>> {
    Ok(x.try_as_slice::<f32>().map_err(|e| Error::Mlx(e.to_string()))?.to_vec())
}
