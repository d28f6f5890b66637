//! Attention in plain operations: the definition that fast kernels are measured against.

use mlx_rs::{Array, Dtype};
use specc_checkpoint::map::QuantParams;

use super::codec::Code;
use super::mask::{Mask, MaskPool};
use super::read::{Scores, Source};
use crate::array::{quantized_matmul, scalar};
use crate::backend::Backend;
use crate::ops::{self, shape4};
use crate::{Error, Result, array};

/// How a read goes over the stored positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// All at once; by MLX's own fused attention where keys and values are plain.
    Whole,
    /// So many positions at a time, with a running softmax.
    Tiled(i32),
    /// All at once, the query heads of a key head folded into its queries; for one row.
    Folded,
}

/// The kernels of a layer by what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kernels {
    /// One query.
    pub decode: Kernel,
    /// Several queries, plainly causal.
    pub window: Kernel,
    /// Several queries with a mask of their own.
    pub masked: Kernel,
}

impl Kernels {
    /// All at once, always.
    pub const WHOLE: Kernels =
        Kernels { decode: Kernel::Whole, window: Kernel::Whole, masked: Kernel::Whole };
}

/// The least finite number of a float type.
pub(crate) fn lowest(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::Float16 => half::f16::MIN.to_f32(),
        Dtype::Bfloat16 => half::bf16::MIN.to_f32(),
        _ => f32::MIN,
    }
}

/// Keys and values that products can be taken with, cut to a range of positions.
pub(super) enum Operand<'a> {
    Plain(&'a Array),
    Affine(&'a [Array; 3], QuantParams),
    /// Decoded as far as they are read; values of the turbo code stay rotated if so.
    Coded(&'a [Array], Code, bool),
}

impl Operand<'_> {
    fn first(&self) -> Option<&Array> {
        match self {
            Operand::Plain(x) => Some(x),
            Operand::Affine([x, ..], _) => Some(x),
            Operand::Coded(planes, ..) => planes.first(),
        }
    }

    fn heads(&self) -> i32 {
        self.first().map_or(0, |x| x.dim(1))
    }

    fn columns(&self) -> i32 {
        self.first().map_or(0, |x| x.dim(2))
    }

    /// `x @ selfᵀ` or `x @ self` over `range`, not before `done` is computed; x [B, K, (R,) M, ..].
    pub(super) fn product(
        &self,
        x: &Array,
        transpose: bool,
        range: (i32, i32),
        done: Option<&Array>,
    ) -> Result<Array> {
        let whole = range == (0, self.columns());
        let grouped = x.ndim() == 5;
        let cut = |y: &Array| -> Result<Array> {
            if whole { Ok(y.clone()) } else { ops::slice(y, 2, range.0, range.1) }
        };
        let spread =
            |y: Array| -> Result<Array> { if grouped { ops::expand(&y, 2) } else { Ok(y) } };
        match self {
            Operand::Plain(y) => plain(x, &spread(cut(y)?)?, transpose),
            Operand::Affine(planes, q) if Backend::current()?.policy().split_quantised => {
                by_head(x, planes, *q, transpose, range)
            }
            Operand::Affine([w, s, b], q) => {
                let (w, s, b) = (spread(cut(w)?)?, spread(cut(s)?)?, spread(cut(b)?)?);
                quantized_matmul(x, &w, &s, Some(&b), transpose, *q)
            }
            Operand::Coded(planes, code, rotated) => {
                let mut planes = planes.iter().map(cut).collect::<Result<Vec<_>>>()?;
                if let Some(done) = done {
                    let own: Vec<&Array> = planes.iter().collect();
                    planes = array::after(&own, &[done])?;
                }
                plain(x, &spread(code.decode(&planes, *rotated)?)?, transpose)
            }
        }
    }
}

fn plain(x: &Array, y: &Array, transpose: bool) -> Result<Array> {
    if transpose { ops::matmul(x, &ops::swap(y, -1, -2)?) } else { ops::matmul(x, y) }
}

/// A quantised product, head by head of each row: every operand lies in one piece.
fn by_head(
    x: &Array,
    planes: &[Array; 3],
    q: QuantParams,
    transpose: bool,
    range: (i32, i32),
) -> Result<Array> {
    let (rows, heads) = (planes[0].dim(0), planes[0].dim(1));
    // The axes between key heads and features; all numbers together may be more than an i32 counts.
    let between = x.shape().get(2..x.ndim().saturating_sub(1)).unwrap_or_default();
    let (m, width) = (between.iter().product::<i32>(), x.dim(-1));
    let flat = ops::reshape(x, &[rows, heads, m, width])?;
    let mut parts = Vec::with_capacity(rows as usize);
    for row in 0..rows {
        let mut own = Vec::with_capacity(heads as usize);
        for head in 0..heads {
            let one = |y: &Array, range: (i32, i32)| {
                let (from, to) = ([row, head, range.0, 0], [row + 1, head + 1, range.1, y.dim(3)]);
                array::slice(y, &from, &to)
            };
            let [w, s, b] = planes;
            let (w, s, b) = (one(w, range)?, one(s, range)?, one(b, range)?);
            own.push(quantized_matmul(&one(&flat, (0, m))?, &w, &s, Some(&b), transpose, q)?);
        }
        parts.push(ops::concat(&own.iter().collect::<Vec<_>>(), 1)?);
    }
    let product = match parts.as_slice() {
        [one] => one.clone(),
        _ => ops::concat(&parts.iter().collect::<Vec<_>>(), 0)?,
    };
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = product.dim(-1);
    }
    ops::reshape(&product, &shape)
}

/// Attends by `kernel`: queries [B, H, L, D] -> [B, H, L, E].
pub(super) fn attend(
    source: &Source,
    mask: &Mask,
    kernel: Kernel,
    masks: &mut MaskPool,
    q: &Array,
    scores: Scores<'_>,
) -> Result<Array> {
    let (keys, values) = match source {
        Source::Plain { keys, values } => (Operand::Plain(keys), Operand::Plain(values)),
        Source::Coded { keys: (k, keys), values: (v, values), rotated } => {
            (Operand::Coded(keys, *k, false), Operand::Coded(values, *v, *rotated))
        }
        Source::Affine { keys, values, quantisation: [k, v] } => {
            (Operand::Affine(keys, *k), Operand::Affine(values, *v))
        }
        Source::Each(_) | Source::Rows(_) => {
            return Err(Error::cache("a list of reads is read one by one"));
        }
    };
    let [b, h, l, d] = shape4(q, "attention queries")?;
    if let Source::Affine { keys, values, quantisation } = source
        && Backend::current()?.policy().split_quantised
        && keys[0].dim(0) * keys[0].dim(1) > 1
        && h % keys[0].dim(1).max(1) == 0
    {
        return apart((keys, values), *quantisation, mask, kernel, masks, q, scores);
    }
    let heads = keys.heads();
    if heads < 1 || h % heads != 0 {
        return Err(Error::input(
            "attention",
            format!("query heads that divide into {heads} key heads"),
            h.to_string(),
        ));
    }
    let repeats = h / heads;
    let columns = keys.columns();
    let q = ops::mul_scalar(q, scores.scale)?;
    let folded = kernel == Kernel::Folded && b == 1 && !matches!(mask, Mask::Array(_));
    let q = match (folded, repeats) {
        (true, _) => ops::reshape(&q, &[b, heads, repeats * l, d])?,
        (false, 1) => q,
        (false, _) => ops::reshape(&q, &[b, heads, repeats, l, d])?,
    };
    let visible = match mask {
        Mask::None => None,
        Mask::Causal if l == 1 => None,
        Mask::Causal if folded => Some(folded_mask(repeats, l, columns)?),
        Mask::Causal => Some(masks.causal(l, columns)?),
        Mask::Array(mask) if q.ndim() == 5 && mask.ndim() > 3 => Some(ops::expand(mask, -3)?),
        Mask::Array(mask) => Some(mask.clone()),
    };
    let sinks = match scores.sinks {
        None => None,
        Some(sinks) => {
            let shape: &[i32] = match (folded, repeats) {
                (true, _) => &[heads, repeats, 1],
                (false, 1) => &[h, 1, 1],
                (false, _) => &[heads, repeats, 1, 1],
            };
            let sinks = ops::reshape(sinks, shape)?;
            Some(if folded {
                let rows = ops::broadcast_to(&sinks, &[heads, repeats, l])?;
                ops::reshape(&rows, &[heads, repeats * l, 1])?
            } else {
                sinks
            })
        }
    };
    let parts = Parts { keys, values, visible, sinks, softcap: scores.softcap, columns };
    let y = match kernel {
        Kernel::Tiled(tile) => parts.tiled(&q, tile)?,
        Kernel::Whole | Kernel::Folded => parts.whole(&q)?,
    };
    ops::reshape(&y, &[b, h, l, y.dim(-1)])
}

/// Attends key head by key head of each row, one after the other: scores of one at a time.
fn apart(
    (keys, values): (&[Array; 3], &[Array; 3]),
    quantisation: [QuantParams; 2],
    mask: &Mask,
    kernel: Kernel,
    masks: &mut MaskPool,
    q: &Array,
    scores: Scores<'_>,
) -> Result<Array> {
    let (rows, heads) = (keys[0].dim(0), keys[0].dim(1));
    let repeats = q.dim(1) / heads;
    let mut done: Option<Array> = None;
    let mut parts = Vec::with_capacity(rows as usize);
    for row in 0..rows {
        let mask = match mask {
            Mask::Array(mask) if mask.ndim() > 3 && mask.dim(0) > 1 => {
                Mask::Array(ops::slice(mask, 0, row, row + 1)?)
            }
            other => other.clone(),
        };
        let mut own = Vec::with_capacity(heads as usize);
        for head in 0..heads {
            let cut = |x: &Array, from: i32, to: i32| {
                ops::slice(&ops::slice(x, 0, row, row + 1)?, 1, from, to)
            };
            let one = |planes: &[Array; 3]| -> Result<[Array; 3]> {
                let [w, s, b] = planes;
                let cut = |x: &Array| cut(x, head, head + 1);
                Ok([cut(w)?, cut(s)?, cut(b)?])
            };
            let (first, last) = (head * repeats, (head + 1) * repeats);
            let mut q = cut(q, first, last)?;
            if let Some(done) = &done {
                q = array::after(&[&q], &[done])?.pop().unwrap_or(q);
            }
            let sinks = scores.sinks.map(|sinks| ops::slice(sinks, 0, first, last)).transpose()?;
            let scores = Scores { sinks: sinks.as_ref(), ..scores };
            let source = Source::Affine { keys: one(keys)?, values: one(values)?, quantisation };
            let y = attend(&source, &mask, kernel, masks, &q, scores)?;
            done = Some(y.clone());
            own.push(y);
        }
        parts.push(ops::concat(&own.iter().collect::<Vec<_>>(), 1)?);
    }
    ops::concat(&parts.iter().collect::<Vec<_>>(), 0)
}

/// Row (r, i) of the folded queries sees the columns up to its own.
fn folded_mask(repeats: i32, l: i32, columns: i32) -> Result<Array> {
    let last: Vec<i32> = (0..repeats * l).map(|row| columns - l + row % l).collect();
    let last = Array::from_slice(&last, &[repeats * l, 1]);
    let keys = ops::reshape(&ops::arange(0, columns)?, &[1, columns])?;
    ops::less_equal(&keys, &last)
}

struct Parts<'a> {
    keys: Operand<'a>,
    values: Operand<'a>,
    visible: Option<Array>,
    sinks: Option<Array>,
    softcap: Option<f32>,
    columns: i32,
}

impl Parts<'_> {
    /// Scores of the columns in `range`, capped and masked.
    fn scores(&self, q: &Array, range: (i32, i32), done: Option<&Array>) -> Result<Array> {
        let mut s = self.keys.product(q, true, range, done)?;
        if let Some(cap) = self.softcap {
            s = ops::softcap(&s, cap)?;
        }
        if let Some(visible) = &self.visible {
            let visible = if range == (0, self.columns) {
                visible.clone()
            } else {
                ops::slice(visible, -1, range.0, range.1)?
            };
            s = ops::select(&visible, &s, &scalar(lowest(s.dtype()), s.dtype()))?;
        }
        Ok(s)
    }

    fn whole(&self, q: &Array) -> Result<Array> {
        let range = (0, self.columns);
        let mut s = self.scores(q, range, None)?;
        if let Some(sinks) = &self.sinks {
            let mut shape = s.shape().to_vec();
            if let Some(last) = shape.last_mut() {
                *last = 1;
            }
            let sinks = ops::broadcast_to(&ops::cast_like(sinks, &s)?, &shape)?;
            s = ops::concat(&[&s, &sinks], -1)?;
        }
        let mut p = ops::softmax(&s, true)?;
        if self.sinks.is_some() {
            p = ops::slice(&p, -1, 0, self.columns)?;
        }
        self.values.product(&p, false, range, None)
    }

    fn tiled(&self, q: &Array, tile: i32) -> Result<Array> {
        // Greatest score so far, sum of weights and weighted sum of values.
        let mut state: Option<(Array, Array, Array)> = None;
        let mut start = 0;
        while start < self.columns {
            let range = (start, (start + tile).min(self.columns));
            start = range.1;
            // One tile after the other: what a tile needs is given back before the next.
            let done = state.as_ref().map(|(_, _, mixed): &(Array, Array, Array)| mixed.clone());
            let s = self.scores(q, range, done.as_ref())?;
            let dtype = s.dtype();
            let s = ops::to_f32(&s)?;
            let highest = ops::max(&s, -1, true)?;
            let top = match (&state, &self.sinks) {
                (Some((top, ..)), _) => ops::maximum(top, &highest)?,
                (None, Some(sinks)) => ops::maximum(&ops::to_f32(sinks)?, &highest)?,
                (None, None) => highest,
            };
            let p = ops::exp(&ops::sub(&s, &top)?)?;
            let weight = ops::sum(&p, -1, true)?;
            let mixed = self.values.product(&ops::cast(&p, dtype)?, false, range, Some(&weight))?;
            let value = ops::to_f32(&mixed)?;
            state = Some(match (state, &self.sinks) {
                (Some((before, sum, mixed)), _) => {
                    let fade = ops::exp(&ops::sub(&before, &top)?)?;
                    let sum = ops::add(&ops::mul(&sum, &fade)?, &weight)?;
                    let mixed = ops::add(&ops::mul(&mixed, &fade)?, &value)?;
                    (top, sum, mixed)
                }
                (None, Some(sinks)) => {
                    let sink = ops::exp(&ops::sub(&ops::to_f32(sinks)?, &top)?)?;
                    (top, ops::add(&weight, &sink)?, value)
                }
                (None, None) => (top, weight, value),
            });
        }
        let (_, sum, mixed) = state.ok_or_else(|| Error::cache("attention over nothing"))?;
        ops::cast_like(&ops::div(&mixed, &sum)?, q)
    }
}
