//! What a layer reads of its cache: keys and values with a mask, or the stored arrays themselves.

use mlx_rs::Array;
use mlx_rs::fast::{ScaledDotProductAttentionMask, scaled_dot_product_attention};
use specc_checkpoint::map::QuantParams;

use super::codec::{Code, unrotate};
use super::kernels::{self, Kernel, Operand};
use super::mask::{Mask, MaskPool};
use super::planes::Planes;
use crate::{Result, ops};

/// Keys and values of a layer as a pass sees them. Several queries may attend with one read.
#[derive(Debug)]
pub struct Read {
    pub(super) source: Source,
    pub(super) mask: Mask,
    pub(super) kernel: Kernel,
}

/// Where a read's keys and values lie.
#[derive(Debug)]
pub(super) enum Source {
    /// Keys [B, K, S, D] and values [B, K, S, E].
    Plain { keys: Array, values: Array },
    /// Both as planes of a code and decoded tile by tile; `rotated`: values stay in the turbo
    /// codec's rotated form, and the result is turned back.
    Coded { keys: (Code, Planes), values: (Code, Planes), rotated: bool },
    /// Both as packed numbers, scales and biases.
    Affine { keys: [Array; 3], values: [Array; 3], quantisation: [QuantParams; 2] },
    /// One read for each query.
    Each(Vec<Read>),
    /// One read for each row, and where the row's queries begin and end.
    Rows(Vec<(Option<Read>, i32, i32)>),
}

/// How scores are made of products.
#[derive(Debug, Clone, Copy)]
pub struct Scores<'a> {
    /// Factor of the products.
    pub scale: f32,
    /// `tanh(s / cap) * cap`
    pub softcap: Option<f32>,
    /// \[H\], a score a head that takes weight and gives no value.
    pub sinks: Option<&'a Array>,
}

impl Read {
    /// Attends: queries [B, H, L, D] -> [B, H, L, E]; H a multiple of the key heads.
    pub fn attend(&self, masks: &mut MaskPool, q: &Array, scores: Scores<'_>) -> Result<Array> {
        match &self.source {
            Source::Plain { keys, values }
                if scores.softcap.is_none() && self.kernel == Kernel::Whole =>
            {
                let mask = match &self.mask {
                    Mask::None => None,
                    Mask::Causal => Some(ScaledDotProductAttentionMask::Causal),
                    Mask::Array(mask) => Some(ScaledDotProductAttentionMask::Array(mask)),
                };
                let (scale, sinks) = (scores.scale, scores.sinks);
                Ok(match mask {
                    Some(mask) => {
                        scaled_dot_product_attention(q, keys, values, scale, mask, sinks)?
                    }
                    None => scaled_dot_product_attention(q, keys, values, scale, None, sinks)?,
                })
            }
            Source::Plain { .. } | Source::Affine { .. } | Source::Coded { rotated: false, .. } => {
                kernels::attend(&self.source, &self.mask, self.kernel, masks, q, scores)
            }
            Source::Coded { .. } => {
                let y = kernels::attend(&self.source, &self.mask, self.kernel, masks, q, scores)?;
                ops::cast_like(&unrotate(&y)?, &y)
            }
            Source::Each(reads) => {
                let parts: Vec<Array> = (0..)
                    .zip(reads)
                    .map(|(i, read)| read.attend(masks, &ops::slice(q, 2, i, i + 1)?, scores))
                    .collect::<Result<_>>()?;
                ops::concat(&parts.iter().collect::<Vec<_>>(), 2)
            }
            Source::Rows(rows) => rowwise(rows, masks, q, scores),
        }
    }
}

/// Each row by its own read; queries without one get zeros.
fn rowwise(
    rows: &[(Option<Read>, i32, i32)],
    masks: &mut MaskPool,
    q: &Array,
    scores: Scores<'_>,
) -> Result<Array> {
    let l = q.dim(2);
    let mut parts: Vec<Option<Array>> = Vec::with_capacity(rows.len());
    for (b, (read, start, end)) in (0..).zip(rows) {
        let Some(read) = read else {
            parts.push(None);
            continue;
        };
        let q = ops::slice(&ops::slice(q, 0, b, b + 1)?, 2, *start, *end)?;
        let y = read.attend(masks.row(b as usize), &q, scores)?;
        parts.push(Some(ops::pad(&y, 2, *start, l - end)?));
    }
    let like = match parts.iter().flatten().next() {
        Some(y) => ops::zeros_like(y)?,
        None => ops::zeros_like(&ops::slice(q, 0, 0, 1)?)?,
    };
    let parts: Vec<&Array> = parts.iter().map(|y| y.as_ref().unwrap_or(&like)).collect();
    ops::concat(&parts, 0)
}

/// One of the arrays that a layer stores, [B, S, ..], as it is kept.
#[derive(Debug, Clone)]
pub struct Stored {
    pub(super) code: Code,
    pub(super) planes: Planes,
}

impl Stored {
    /// Columns, S.
    pub fn columns(&self) -> i32 {
        self.planes.first().map_or(0, |x| x.dim(1))
    }

    /// The array itself.
    pub fn decoded(&self) -> Result<Array> {
        self.code.decode(&self.planes, false)
    }

    /// For each row the columns of `index` [B, N, 1].
    pub fn picked(&self, index: &Array) -> Result<Array> {
        let planes: Planes =
            self.planes.iter().map(|x| ops::gather(x, index, 1)).collect::<Result<_>>()?;
        self.code.decode(&planes, false)
    }

    /// Whether products are taken with what is stored, without decoding it.
    pub fn packed(&self) -> bool {
        self.code.quantisation().is_some()
    }

    /// `x @ selfᵀ` or `x @ self` for each head: x [B, H, L, ..] -> [B, H, L, ..].
    pub fn product(&self, x: &Array, transpose: bool) -> Result<Array> {
        let [b, h, l, width] = ops::shape4(x, "a product with stored rows")?;
        let planes: Planes =
            self.planes.iter().map(|x| ops::expand(x, 1)).collect::<Result<_>>()?;
        let folded = ops::reshape(x, &[b, 1, h * l, width])?;
        let range = (0, self.columns());
        let product = match (planes.as_slice(), self.code.quantisation()) {
            ([w, s, bias], Some(q)) => {
                let planes = [w.clone(), s.clone(), bias.clone()];
                Operand::Affine(&planes, q).product(&folded, transpose, range, None)?
            }
            _ => Operand::Coded(&planes, self.code, false)
                .product(&folded, transpose, range, None)?,
        };
        ops::reshape(&product, &[b, h, l, product.dim(-1)])
    }
}
