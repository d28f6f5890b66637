//! Attention over latents: one latent and one rotated key a token, shared by all heads.

use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};
use mlx_rs::ops as mx;
use mlx_rs::{Array, Dtype};

use crate::cache::{Mask, Slot, Stored, lowest};
use crate::nn::MultiLinear;
use crate::pass::Pass;
use crate::phase::Phase;
use crate::weights::Loader;
use crate::{Error, Result, array, ops};

/// Multi-head latent attention, from queries and latents on.
#[derive(Debug)]
pub struct LatentAttention {
    /// [H, C, N]: a head's latent to its key; its transpose a query to a latent.
    embed_q: MultiLinear,
    /// [H, V, C]: a head's latent to its value.
    unembed_out: MultiLinear,
    scale: f32,
}

impl LatentAttention {
    /// Reads embed_q.weight [heads, rank, nope] and unembed_out.weight [heads, values, rank].
    ///
    /// # Errors
    /// When one is missing or of another shape.
    pub fn load(
        ld: &mut Loader<'_>,
        name: &str,
        heads: i64,
        nope: i64,
        rank: i64,
        values: i64,
        scale: f32,
    ) -> Result<Self> {
        ld.at(name, |ld| {
            let embed_q = MultiLinear::load(ld, "embed_q", heads, rank, nope)?;
            let unembed_out = MultiLinear::load(ld, "unembed_out", heads, values, rank)?;
            Ok(LatentAttention { embed_q, unembed_out, scale })
        })
    }

    #[cfg(test)]
    pub(crate) fn of(embed_q: MultiLinear, unembed_out: MultiLinear, scale: f32) -> Self {
        LatentAttention { embed_q, unembed_out, scale }
    }

    /// Queries [B, H, L, N] and rotated queries [B, H, L, R] over this layer's latents and those
    /// of these tokens, [B, L, C] with rotated keys [B, 1, L, R] -> [B, H, L, V].
    ///
    /// `selection` [B, 1, L, K] holds the columns that each query may see.
    ///
    /// # Errors
    /// When the layer keeps no latents, or the shapes do not agree.
    #[allow(clippy::too_many_arguments)]
    pub fn forward(
        &self,
        cx: &mut Pass<'_>,
        slot: Slot,
        q: &Array,
        q_rope: &Array,
        latent: &Array,
        k_rope: &Array,
        selection: Option<&Array>,
    ) -> Result<Array> {
        let (stored, mask) = cx.store(slot, &[latent, &ops::squeeze(k_rope, 1)?])?;
        cx.holds_scores(slot, q.dim(1));
        let [latent, rope] = parts(&stored)?;
        let mask = visible(cx, mask, q.dim(2), latent.columns())?;
        self.attend(cx, q, q_rope, latent, &rope.decoded()?, mask, selection)
    }

    /// stored: [B, S, C]; rope: [B, S, R]; mask: bool, broadcast to [B, 1, L, S].
    #[allow(clippy::too_many_arguments)]
    fn attend(
        &self,
        cx: &Pass<'_>,
        q: &Array,
        q_rope: &Array,
        stored: &Stored,
        rope: &Array,
        mask: Option<Array>,
        selection: Option<&Array>,
    ) -> Result<Array> {
        let (mut latent, mut rope, mut mask) = (None, rope.clone(), mask);
        // A selection of all columns is none.
        if let Some(chosen) = selection.filter(|s| s.dim(-1) < stored.columns()) {
            if cx.phase() == Phase::Decode {
                let rows = ops::expand(&ops::squeeze(&ops::squeeze(chosen, 1)?, 1)?, -1)?;
                latent = Some(stored.picked(&rows)?);
                rope = ops::gather(&rope, &rows, 1)?;
                mask =
                    mask.map(|m| ops::gather(&broadcast(&m, chosen)?, chosen, -1)).transpose()?;
            } else {
                let [b, _, l, _] = ops::shape4(chosen, "selection")?;
                let none = mx::zeros_dtype(&[b, 1, l, stored.columns()], Dtype::Bool)?;
                let some = mx::indexing::put_along_axis(none, chosen, Array::from_bool(true), -1)?;
                mask = Some(match mask {
                    Some(mask) => ops::logical_and(&some, &mask)?,
                    None => some,
                });
            }
        }
        let rope = ops::expand(&rope, 1)?;
        let mut scores =
            ops::matmul(&ops::mul_scalar(q_rope, self.scale)?, &ops::swap(&rope, -1, -2)?)?;
        if let Some(mask) = mask {
            let least = array::scalar(lowest(scores.dtype()), scores.dtype());
            scores = ops::select(&mask, &scores, &least)?;
        }
        if latent.is_none() && cx.absorbed() && stored.packed() {
            // What is stored is read as it lies: decoded it would be larger than all of the cache.
            let q = ops::mul_scalar(&self.embed_q.forward(q)?, self.scale)?;
            let scores = ops::add(&stored.product(&q, true)?, &scores)?;
            let weights = ops::softmax(&scores, true)?;
            return self.unembed_out.forward(&stored.product(&weights, false)?);
        }
        let latent = match latent {
            Some(latent) => latent,
            None => stored.decoded()?,
        };
        let latent = ops::expand(&latent, 1)?;
        let read = |q: &Array, k: &Array, v: &Array| -> Result<Array> {
            let added = ScaledDotProductAttentionMask::Array(&scores);
            Ok(scaled_dot_product_attention(q, k, v, self.scale, added, None)?)
        };
        if cx.absorbed() {
            let q = self.embed_q.forward(q)?;
            self.unembed_out.forward(&read(&q, &latent, &latent)?)
        } else {
            let (k, v) = (self.embed_q.reversed(&latent)?, self.unembed_out.forward(&latent)?);
            read(q, &k, &v)
        }
    }
}

/// Latent attention over the columns that an index of its own selects.
#[derive(Debug)]
pub struct IndexedLatentAttention {
    attention: LatentAttention,
    top_k: i32,
}

impl IndexedLatentAttention {
    /// As [`LatentAttention::load`]; each query sees at most `top_k` columns.
    ///
    /// # Errors
    /// When a tensor is missing or of another shape, or `top_k` is not positive.
    #[allow(clippy::too_many_arguments)]
    pub fn load(
        ld: &mut Loader<'_>,
        name: &str,
        heads: i64,
        nope: i64,
        rank: i64,
        values: i64,
        scale: f32,
        top_k: i64,
    ) -> Result<Self> {
        let attention = LatentAttention::load(ld, name, heads, nope, rank, values, scale)?;
        let top_k = i32::try_from(top_k)
            .ok()
            .filter(|&k| k > 0)
            .ok_or_else(|| Error::input("top_k", "a positive number", top_k.to_string()))?;
        Ok(IndexedLatentAttention { attention, top_k })
    }

    #[cfg(test)]
    pub(super) fn of(attention: LatentAttention, top_k: i32) -> Self {
        IndexedLatentAttention { attention, top_k }
    }

    /// As [`LatentAttention::forward`], with index queries [B, J, L, D], index keys [B, 1, L, D]
    /// and weights [B, L, J]; also gives the selection [B, 1, L, K].
    ///
    /// # Errors
    /// When the layer keeps no latents, or the shapes do not agree.
    #[allow(clippy::too_many_arguments)]
    pub fn forward(
        &self,
        cx: &mut Pass<'_>,
        slot: Slot,
        q: &Array,
        q_rope: &Array,
        latent: &Array,
        k_rope: &Array,
        iq: &Array,
        ik: &Array,
        weights: &Array,
    ) -> Result<(Array, Array)> {
        let (k_rope, ik) = (ops::squeeze(k_rope, 1)?, ops::squeeze(ik, 1)?);
        let (stored, mask) = cx.store(slot, &[latent, &k_rope, &ik])?;
        let [latent, rope, keys] = parts(&stored)?;
        let mask = visible(cx, mask, q.dim(2), latent.columns())?;
        let selection = select(iq, &keys.decoded()?, weights, mask.as_ref(), self.top_k)?;
        let rope = rope.decoded()?;
        let y = self.attention.attend(cx, q, q_rope, latent, &rope, mask, Some(&selection))?;
        Ok((y, selection))
    }
}

/// The columns with the `top_k` largest Σ_j weights_j relu(q_j k) for each query, in order; ties
/// (many sums are 0) go to the later column. All columns while there are no more.
///
/// q: [B, J, L, D]; keys: [B, S, D]; weights: [B, L, J]; mask as in [`LatentAttention`].
fn select(
    q: &Array,
    keys: &Array,
    weights: &Array,
    mask: Option<&Array>,
    top_k: i32,
) -> Result<Array> {
    let [b, heads, l, _] = ops::shape4(q, "index queries")?;
    let s = keys.dim(1);
    if s <= top_k {
        return ops::broadcast_to(
            &ops::reshape(&ops::arange(0, s)?, &[1, 1, 1, s])?,
            &[b, 1, l, s],
        );
    }
    let keys = ops::expand(&ops::swap(keys, -1, -2)?, 1)?;
    let mut scores: Option<Array> = None;
    // Head by head: scores of all heads at once may not fit.
    for j in 0..heads {
        let one = ops::matmul(&ops::slice(q, 1, j, j + 1)?, &keys)?;
        let one = ops::maximum(&one, &array::scalar(0.0, one.dtype()))?;
        let one = ops::mul(&one, &ops::expand(&ops::slice(weights, 2, j, j + 1)?, 1)?)?;
        scores = Some(match scores {
            Some(scores) => ops::add(&scores, &one)?,
            None => one,
        });
    }
    let Some(mut scores) = scores else {
        return Err(Error::input("index queries", "at least one head", "none"));
    };
    if let Some(mask) = mask {
        let none = array::scalar(f32::NEG_INFINITY, scores.dtype());
        scores = ops::select(mask, &scores, &none)?;
    }
    // A stable sort, so that ties go to the later column whatever else is stored.
    let best = ops::slice(&mx::argsort_axis(&scores, -1)?, -1, s - top_k, s)?;
    Ok(mx::sort_axis(&best, -1)?)
}

/// `mask` as an array; `None` when every column is seen.
fn visible(cx: &mut Pass<'_>, mask: Mask, l: i32, s: i32) -> Result<Option<Array>> {
    Ok(match mask {
        Mask::None => None,
        Mask::Causal if l == 1 => None,
        Mask::Causal => Some(cx.causal_mask(l, s)?),
        Mask::Array(mask) => Some(mask),
    })
}

/// A mask as [B, 1, L, S], B and L as in `chosen` [B, 1, L, K].
fn broadcast(mask: &Array, chosen: &Array) -> Result<Array> {
    ops::broadcast_to(mask, &[chosen.dim(0), 1, chosen.dim(2), mask.dim(-1)])
}

fn parts<const N: usize>(stored: &[Stored]) -> Result<[&Stored; N]> {
    let found = stored.len();
    let parts: Vec<&Stored> = stored.iter().collect();
    parts
        .try_into()
        .map_err(|_| Error::Cache(format!("expected {N} stored arrays a layer, found {found}")))
}
