//! Mixers that carry a state from token to token.

use mlx_rs::ops as mx;
use mlx_rs::{Array, Dtype};

use super::scan::{self, Scanned, idle};
use crate::cache::Slot;
use crate::pass::Pass;
use crate::weights::Loader;
use crate::{Error, Result, array, ops};

/// Tokens of a prompt that a state space scan takes at once.
const SSD_CHUNK: i32 = 256;
/// Tokens of a prompt that a selective scan takes at once.
const SELECTIVE_CHUNK: i32 = 64;

/// A depthwise convolution over each token and those before it.
#[derive(Debug)]
pub struct CausalConv {
    taps: Taps,
    /// Inputs that are kept for the next pass.
    held: i32,
    bias: Option<Array>,
}

/// The weights in the form that the device likes.
#[derive(Debug)]
enum Taps {
    /// [C, kernel, 1]
    Convolution(Array),
    /// One float32 [C] for each distance, the farthest first.
    Shifted(Vec<Array>),
}

impl CausalConv {
    /// Reads `name`.weight [C, kernel, 1] and, where `bias`, `name`.bias \[C\].
    ///
    /// # Errors
    /// When one is missing or of another shape.
    pub fn load(
        ld: &mut Loader<'_>,
        name: &str,
        channels: i64,
        kernel: i64,
        bias: bool,
    ) -> Result<Self> {
        let shifted = ld.policy().shift_convolutions;
        ld.at(name, |ld| {
            let weight = ld.tensor("weight", &[channels, kernel, 1])?;
            let bias = if bias { Some(ld.tensor("bias", &[channels])?) } else { None };
            CausalConv::of(&weight, bias, shifted)
        })
    }

    pub(super) fn of(weight: &Array, bias: Option<Array>, shifted: bool) -> Result<Self> {
        let kernel = weight.dim(1);
        let tap = |j: i32| -> Result<Array> {
            let tap = ops::reshape(&ops::slice(weight, 1, j, j + 1)?, &[-1])?;
            Ok(ops::to_f32(&tap)?.contiguous()?)
        };
        let taps = if shifted {
            Taps::Shifted((0..kernel).map(tap).collect::<Result<_>>()?)
        } else {
            Taps::Convolution(weight.clone())
        };
        Ok(CausalConv { taps, held: kernel - 1, bias })
    }

    /// x: [B, L, C] -> [B, L, C]. State: the last `kernel` - 1 inputs.
    ///
    /// # Errors
    /// When the layer keeps no states, or MLX refuses.
    pub fn forward(&self, cx: &mut Pass<'_>, slot: Slot, x: &Array) -> Result<Array> {
        let (input, l) = after_held(cx, slot, x, self.held, "convolution input")?;
        let y = self.convolve(&input, l)?;
        match &self.bias {
            Some(bias) => ops::add(&y, bias),
            None => Ok(y),
        }
    }

    /// [B, kernel - 1 + L, C] -> [B, L, C]
    fn convolve(&self, input: &Array, l: i32) -> Result<Array> {
        match &self.taps {
            Taps::Convolution(weight) => Ok(mx::conv1d(input, weight, 1, 0, 1, input.dim(2))?),
            Taps::Shifted(taps) => {
                let wide = ops::to_f32(input)?;
                let mut sum: Option<Array> = None;
                for (j, tap) in (0..).zip(taps) {
                    let product = ops::mul(&ops::slice(&wide, 1, j, j + l)?, tap)?;
                    sum = Some(match sum {
                        Some(sum) => ops::add(&sum, &product)?,
                        None => product,
                    });
                }
                let none = || Error::input("convolution kernel", "at least one tap", "none");
                ops::cast_like(&sum.ok_or_else(none)?, input)
            }
        }
    }
}

/// The inputs [B, L, C] after the last `held` ones before them, [B, held + L, C], zeros before the
/// first; and L. The last `held` become the layer's state.
pub(super) fn after_held(
    cx: &mut Pass<'_>,
    slot: Slot,
    x: &Array,
    held: i32,
    what: &'static str,
) -> Result<(Array, i32)> {
    let x = idle(x, cx.real_tokens()?.as_ref(), 0.0)?;
    let [b, l, c] = ops::shape3(&x, what)?;
    let ends = cx.ends();
    let part = cx.state(slot)?;
    let before = match part.before() {
        Some(before) => before,
        None => mx::zeros_dtype(&[b, held, c], x.dtype())?,
    };
    let input = ops::concat(&[&before, &x], 1)?;
    let state = window(&input, held, &ends.unwrap_or_else(|| vec![l; b as usize]))?;
    let kept = input.clone();
    part.set(state, Box::new(move |_, keep| window(&kept, held, keep)))?;
    Ok((input, l))
}

/// The `n` columns from column `starts[b]` of row `b` on: [B, S, C] -> [B, n, C].
fn window(x: &Array, n: i32, starts: &[i32]) -> Result<Array> {
    let first = starts.first().copied().unwrap_or(0);
    let window = if starts.iter().all(|&s| s == first) {
        ops::slice(x, 1, first, first + n)?
    } else {
        let index: Vec<i32> = starts.iter().flat_map(|s| (0..n).map(move |i| s + i)).collect();
        ops::gather(x, &Array::from_slice(&index, &[starts.len() as i32, n, 1]), 1)?
    };
    // A copy, so that the state does not hold the whole pass's input.
    Ok(window.contiguous()?)
}

/// The gated delta rule; queries and keys [B, L, G, K], values [B, L, H, V], decay and write
/// strength [B, L, H] -> [B, L, H, V]. State: float32 [B, H, V, K].
///
/// # Errors
/// When the layer keeps no states, or the shapes do not agree.
pub fn gated_delta(
    cx: &mut Pass<'_>,
    slot: Slot,
    q: &Array,
    k: &Array,
    v: &Array,
    decay: &Array,
    beta: &Array,
) -> Result<Array> {
    let shape = [q.dim(0), v.dim(2), v.dim(3), q.dim(3)];
    let form = if stepwise(cx) { scan::delta_steps } else { scan::delta_chunks };
    let inputs = [q, k, v, decay, beta].map(Clone::clone);
    run(cx, slot, &shape, inputs, move |[q, k, v, decay, beta], real, state| {
        let (decay, beta) = (idle(decay, real, 1.0)?, idle(beta, real, 0.0)?);
        form(q, k, v, &decay, &beta, state)
    })
}

/// State space duality; x [B, L, H, P], rates `a` \[H\], input and output vectors [B, L, G, N],
/// steps [B, L, H] -> [B, L, H, P]. State: float32 [B, H, P, N].
///
/// # Errors
/// When the layer keeps no states, or the shapes do not agree.
pub fn ssd(
    cx: &mut Pass<'_>,
    slot: Slot,
    x: &Array,
    a: &Array,
    b: &Array,
    c: &Array,
    dt: &Array,
) -> Result<Array> {
    let shape = [x.dim(0), x.dim(2), x.dim(3), b.dim(3)];
    let chunk = if stepwise(cx) { 1 } else { SSD_CHUNK };
    let a = a.clone();
    let inputs = [x, b, c, dt].map(Clone::clone);
    run(cx, slot, &shape, inputs, move |[x, b, c, dt], real, state| {
        scan::ssd(x, &a, b, c, &idle(dt, real, 0.0)?, state, chunk)
    })
}

/// Selective scan; x and steps [B, L, I], rates `a` [I, N], input and output vectors [B, L, N]
/// -> [B, L, I]. State: float32 [B, I, N].
///
/// # Errors
/// When the layer keeps no states, or the shapes do not agree.
pub fn selective_scan(
    cx: &mut Pass<'_>,
    slot: Slot,
    x: &Array,
    a: &Array,
    b: &Array,
    c: &Array,
    dt: &Array,
) -> Result<Array> {
    let shape = [x.dim(0), x.dim(2), a.dim(1)];
    let chunk = if stepwise(cx) { 1 } else { SELECTIVE_CHUNK };
    let a = a.clone();
    let inputs = [x, b, c, dt].map(Clone::clone);
    run(cx, slot, &shape, inputs, move |[x, b, c, dt], real, state| {
        scan::selective(x, &a, b, c, &idle(dt, real, 0.0)?, state, chunk)
    })
}

/// Whether a pass takes its tokens one by one: then each has the arithmetic of a decode.
fn stepwise(cx: &Pass<'_>) -> bool {
    cx.phase().is_small()
}

/// Runs `scan` over inputs [B, L, ..] from the state before, zeros of `shape` at first, and keeps
/// what it leaves.
pub(super) fn run<const N: usize>(
    cx: &mut Pass<'_>,
    slot: Slot,
    shape: &[i32],
    inputs: [Array; N],
    scan: impl Fn(&[Array; N], Option<&Array>, &Array) -> Result<Scanned> + 'static,
) -> Result<Array> {
    let real = cx.real_tokens()?;
    let zeros = mx::zeros_dtype(shape, Dtype::Float32)?;
    let part = cx.state(slot)?;
    let (y, state) = scan(&inputs, real.as_ref(), part.before().as_ref().unwrap_or(&zeros))?;
    part.set(
        state,
        Box::new(move |before, keep| {
            let tokens = keep.iter().copied().max().unwrap_or(0);
            let mut inputs = inputs.clone();
            for x in &mut inputs {
                *x = ops::slice(x, 1, 0, tokens)?;
            }
            let steps = ops::expand(&ops::arange(0, tokens)?, 0)?;
            let kept = ops::less(&steps, &ops::expand(&array::from_i32s(keep), 1)?)?;
            Ok(scan(&inputs, Some(&kept), before.unwrap_or(&zeros))?.1)
        }),
    )?;
    Ok(y)
}
