use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};
use mlx_rs::{Array, Dtype};

use super::mask::{Mask, MaskPool};
use crate::array::{Quantisation, quantized_matmul, scalar};
use crate::ops::{self, shape4};
use crate::{Error, Result};

/// Keys and values of a layer as a pass sees them. Several queries may attend with one read.
#[derive(Debug)]
pub struct Read {
    pub(super) source: Source,
    pub(super) mask: Mask,
}

/// Where a read's keys and values lie.
#[derive(Debug)]
pub(super) enum Source {
    /// Keys [B, K, S, D] and values [B, K, S, E].
    Plain { keys: Array, values: Array },
    /// Both as packed numbers, scales and biases.
    Affine { keys: [Array; 3], values: [Array; 3], quantisation: Quantisation },
    /// One read for each query.
    Each(Vec<Read>),
    /// One read for each row.
    Rows(Vec<Read>),
}

/// Scores are scaled, capped and joined by sinks in this way.
#[derive(Debug, Clone, Copy)]
pub struct Scores<'a> {
    /// Factor of the products.
    pub scale: f32,
    /// `tanh(s / cap) * cap`
    pub softcap: Option<f32>,
    /// [H], a score a head that takes weight and gives no value.
    pub sinks: Option<&'a Array>,
}

impl Read {
    /// Attends: queries [B, H, L, D] -> [B, H, L, E]; H a multiple of the key heads.
    pub fn attend(&self, masks: &mut MaskPool, q: &Array, scores: Scores<'_>) -> Result<Array> {
        match &self.source {
            Source::Plain { keys, values } if scores.softcap.is_none() => {
                let mask = match &self.mask {
                    Mask::None => None,
                    Mask::Causal => Some(ScaledDotProductAttentionMask::Causal),
                    Mask::Array(mask) => Some(ScaledDotProductAttentionMask::Array(mask)),
                };
                let sinks = scores.sinks;
                Ok(match mask {
                    Some(mask) => {
                        scaled_dot_product_attention(q, keys, values, scores.scale, mask, sinks)?
                    }
                    None => {
                        scaled_dot_product_attention(q, keys, values, scores.scale, None, sinks)?
                    }
                })
            }
            Source::Plain { keys, values } => {
                let keys_t = ops::swap(keys, -1, -2)?;
                self.spelled_out(
                    masks,
                    q,
                    scores,
                    keys.dim(1),
                    |q, grouped| ops::matmul(q, &grouped_view(&keys_t, grouped)?),
                    |p, grouped| ops::matmul(p, &grouped_view(values, grouped)?),
                )
            }
            Source::Affine { keys, values, quantisation } => {
                let [kw, ks, kb] = keys;
                let [vw, vs, vb] = values;
                let product = |x: &Array, [w, s, b]: [&Array; 3], grouped, transpose| {
                    let (w, s, b) = (
                        grouped_view(w, grouped)?,
                        grouped_view(s, grouped)?,
                        grouped_view(b, grouped)?,
                    );
                    quantized_matmul(x, &w, &s, Some(&b), transpose, *quantisation)
                };
                self.spelled_out(
                    masks,
                    q,
                    scores,
                    kw.dim(1),
                    |q, grouped| product(q, [kw, ks, kb], grouped, true),
                    |p, grouped| product(p, [vw, vs, vb], grouped, false),
                )
            }
            Source::Each(reads) => {
                let parts: Vec<Array> = (0..)
                    .zip(reads)
                    .map(|(i, read)| read.attend(masks, &ops::slice(q, 2, i, i + 1)?, scores))
                    .collect::<Result<_>>()?;
                ops::concat(&parts.iter().collect::<Vec<_>>(), 2)
            }
            Source::Rows(reads) => {
                let parts: Vec<Array> = (0..)
                    .zip(reads)
                    .map(|(i, read)| {
                        // Rows keep masks of their own: lengths differ.
                        let mut own = MaskPool::default();
                        read.attend(&mut own, &ops::slice(q, 0, i, i + 1)?, scores)
                    })
                    .collect::<Result<_>>()?;
                ops::concat(&parts.iter().collect::<Vec<_>>(), 0)
            }
        }
    }

    /// Attention in plain operations: the definition that fast kernels are measured against.
    fn spelled_out(
        &self,
        masks: &mut MaskPool,
        q: &Array,
        scores: Scores<'_>,
        kv_heads: i32,
        score: impl Fn(&Array, bool) -> Result<Array>,
        value: impl Fn(&Array, bool) -> Result<Array>,
    ) -> Result<Array> {
        let [b, h, l, d] = shape4(q, "attention queries")?;
        if kv_heads < 1 || h % kv_heads != 0 {
            return Err(Error::input(
                "attention",
                format!("query heads that divide into {kv_heads} key heads"),
                h.to_string(),
            ));
        }
        let repeats = h / kv_heads;
        let grouped = repeats > 1;
        let mut q = ops::mul_scalar(q, scores.scale)?;
        if grouped {
            q = ops::reshape(&q, &[b, kv_heads, repeats, l, d])?;
        }
        let mut s = score(&q, grouped)?;
        if let Some(cap) = scores.softcap {
            s = ops::softcap(&s, cap)?;
        }
        if let Some(mask) = self.mask_array(masks, l, s.dim(-1))? {
            let mask = if grouped && mask.ndim() > 3 { ops::expand(&mask, -3)? } else { mask };
            s = ops::select(&mask, &s, &scalar(lowest(s.dtype()), s.dtype()))?;
        }
        let columns = s.dim(-1);
        if let Some(sinks) = scores.sinks {
            let mut shape = s.shape().to_vec();
            if let Some(last) = shape.last_mut() {
                *last = 1;
            }
            let heads: &[i32] = if grouped { &[kv_heads, repeats, 1, 1] } else { &[h, 1, 1] };
            let sinks = ops::cast_like(&ops::reshape(sinks, heads)?, &s)?;
            s = ops::concat(&[&s, &ops::broadcast_to(&sinks, &shape)?], -1)?;
        }
        let mut p = ops::softmax(&s, true)?;
        if scores.sinks.is_some() {
            p = ops::slice(&p, -1, 0, columns)?;
        }
        let y = value(&p, grouped)?;
        if grouped { ops::reshape(&y, &[b, h, l, y.dim(-1)]) } else { Ok(y) }
    }

    fn mask_array(&self, masks: &mut MaskPool, l: i32, s: i32) -> Result<Option<Array>> {
        Ok(match &self.mask {
            Mask::None => None,
            Mask::Causal if l == 1 => None,
            Mask::Causal => Some(masks.causal(l, s)?),
            Mask::Array(mask) => Some(mask.clone()),
        })
    }
}

/// [B, K, ..] as [B, K, 1, ..] when query heads are grouped by key heads.
fn grouped_view(x: &Array, grouped: bool) -> Result<Array> {
    if grouped { ops::expand(x, -3) } else { Ok(x.clone()) }
}

/// The least finite number of a float type.
pub(crate) fn lowest(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::Float16 => half::f16::MIN.to_f32(),
        Dtype::Bfloat16 => half::bf16::MIN.to_f32(),
        _ => f32::MIN,
    }
}
