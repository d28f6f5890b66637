//! Attention of queries to keys and values: of a cache, of another layer, of the whole sequence.

use mlx_rs::Array;
use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};

use crate::cache::{Scores, Slot};
use crate::pass::Pass;
use crate::{Result, ops};

/// Attention over the layer's past and these tokens: queries [B, H, L, D], keys [B, K, L, D],
/// values [B, K, L, E] -> [B, H, L, E]. `softcap` caps scores, `sinks` \[H\] join them.
#[allow(clippy::too_many_arguments)]
pub fn attend(
    cx: &mut Pass<'_>,
    slot: Slot,
    q: &Array,
    k: &Array,
    v: &Array,
    scale: f32,
    softcap: Option<f32>,
    sinks: Option<&Array>,
) -> Result<Array> {
    cx.attend(slot, q, k, v, Scores { scale, softcap, sinks })
}

/// Attention with the keys and values that the donor, the layer of `slot`, read in this pass.
pub fn attend_shared(cx: &mut Pass<'_>, slot: Slot, q: &Array, scale: f32) -> Result<Array> {
    cx.attend_shared(slot, q, Scores { scale, softcap: None, sinks: None })
}

/// Attention of every real token to every real token of its row, nothing stored.
pub fn attend_all(cx: &Pass<'_>, q: &Array, k: &Array, v: &Array, scale: f32) -> Result<Array> {
    Ok(match cx.real_tokens()? {
        Some(real) => {
            let [b, l] = [real.dim(0), real.dim(1)];
            let mask = ops::reshape(&real, &[b, 1, 1, l])?;
            let mask = ScaledDotProductAttentionMask::Array(&mask);
            scaled_dot_product_attention(q, k, v, scale, mask, None)?
        }
        None => scaled_dot_product_attention(q, k, v, scale, None, None)?,
    })
}
