//! The recurrences themselves, as functions of their inputs and the state before them.
//!
//! All states are float32. A position that only pads its row has to leave the state alone: callers
//! give it a decay of one and no input, see [`idle`].

use mlx_rs::ops as mx;
use mlx_rs::{Array, Dtype};

use crate::{Error, Result, array, ops};

/// Tokens that the delta rule takes at once.
const DELTA_CHUNK: i32 = 32;

/// Outputs, and the state after the last token.
pub type Scanned = (Array, Array);

/// `x` where `real`, `value` elsewhere. x: [B, L, ..], real: bool [B, L].
pub fn idle(x: &Array, real: Option<&Array>, value: f32) -> Result<Array> {
    let Some(real) = real else { return Ok(x.clone()) };
    let mut shape = real.shape().to_vec();
    shape.resize(x.ndim(), 1);
    ops::select(&ops::reshape(real, &shape)?, x, &array::scalar(value, x.dtype()))
}

/// The gated delta rule, token by token: S = g S; S += beta (v - S k) kᵀ; y = S q.
///
/// q, k: [B, L, G, K]; v: [B, L, H, V]; g, beta: [B, L, H]; state: [B, H, V, K]. y is of q's type.
pub fn delta_steps(
    q: &Array,
    k: &Array,
    v: &Array,
    g: &Array,
    beta: &Array,
    state: &Array,
) -> Result<Scanned> {
    let heads = v.dim(2);
    let (q, k) = (serve(q, heads)?, serve(k, heads)?);
    let mut state = state.clone();
    let mut outputs = Vec::new();
    for t in 0..q.dim(1) {
        // [B, H, 1, K], [B, H, V], [B, H, 1, 1]
        let (q, k) = (ops::expand(&at(&q, t)?, -2)?, ops::expand(&at(&k, t)?, -2)?);
        let (v, beta) = (at(v, t)?, ops::expand(&at(beta, t)?, -1)?);
        let g = ops::expand(&ops::expand(&at(g, t)?, -1)?, -1)?;
        state = ops::mul(&state, &g)?;
        let held = mx::sum_axis(ops::mul(&state, &k)?, -1, false)?;
        let delta = ops::mul(&ops::sub(&v, &held)?, &beta)?;
        state = ops::add(&state, &ops::mul(&k, &ops::expand(&delta, -1)?)?)?;
        outputs.push(mx::sum_axis(ops::mul(&state, &q)?, -1, false)?);
    }
    let outputs: Vec<&Array> = outputs.iter().collect();
    Ok((ops::cast_like(&ops::stack(&outputs, 1)?, &q)?, state))
}

/// A linear recurrence, token by token: S = S diag(w) + (S a) bᵀ + v kᵀ; y = S q, where `pair` is
/// (a, b).
///
/// q, k, w, a, b: [B, L, H, K]; v: [B, L, H, V]; state: [B, H, V, K]. y is of q's type.
pub fn linear_steps(
    [q, k, v, w]: [&Array; 4],
    pair: Option<(&Array, &Array)>,
    state: &Array,
) -> Result<Scanned> {
    // [B, H, 1, K]
    let row = |x: &Array, t: i32| -> Result<Array> { ops::expand(&at(x, t)?, -2) };
    let mut state = state.clone();
    let mut outputs = Vec::new();
    for t in 0..q.dim(1) {
        let written = ops::mul(&ops::expand(&at(v, t)?, -1)?, &row(k, t)?)?;
        let mut next = ops::mul(&state, &row(w, t)?)?;
        if let Some((a, b)) = pair {
            let read = mx::sum_axis(ops::mul(&state, &row(a, t)?)?, -1, true)?;
            next = ops::add(&next, &ops::mul(&read, &row(b, t)?)?)?;
        }
        state = ops::add(&next, &written)?;
        outputs.push(mx::sum_axis(ops::mul(&state, &row(q, t)?)?, -1, false)?);
    }
    let outputs: Vec<&Array> = outputs.iter().collect();
    Ok((ops::cast_like(&ops::stack(&outputs, 1)?, q)?, state))
}

/// A decayed sum, token by token: h = w h + x. x, w: [B, L, C]; state: [B, C]. y is of x's type.
pub fn sum_steps(x: &Array, w: &Array, state: &Array) -> Result<Scanned> {
    let mut state = state.clone();
    let mut outputs = Vec::new();
    for t in 0..x.dim(1) {
        state = ops::add(&ops::mul(&state, &at(w, t)?)?, &at(x, t)?)?;
        outputs.push(state.clone());
    }
    let outputs: Vec<&Array> = outputs.iter().collect();
    Ok((ops::cast_like(&ops::stack(&outputs, 1)?, x)?, state))
}

/// The gated delta rule in chunks: the same sums in another order.
///
/// Within a chunk the writes delta solve (I + A) delta = beta (v - Γ S k) with
/// A[i, j] = beta_i Γ[i, j] k_i·k_j below the diagonal, Γ[i, j] the decay from j to i
/// (Yang et al. 2024, "Gated Delta Networks"). Shapes as in [`delta_steps`].
pub fn delta_chunks(
    q: &Array,
    k: &Array,
    v: &Array,
    g: &Array,
    beta: &Array,
    state: &Array,
) -> Result<Scanned> {
    let (heads, tokens) = (v.dim(2), v.dim(1));
    let c = DELTA_CHUNK.min(tokens.max(1));
    // [B, H, N, C, ..], float32, the tail filled with tokens that do nothing.
    let chunked = |x: &Array, fill: f32| -> Result<Array> { chunks(x, c, fill) };
    let (qc, kc) = (chunked(&serve(q, heads)?, 0.0)?, chunked(&serve(k, heads)?, 0.0)?);
    let vc = chunked(v, 0.0)?;
    let beta = ops::expand(&chunked(beta, 0.0)?, -1)?;
    let tiny = array::scalar(f32::MIN_POSITIVE, Dtype::Float32);
    let logs = ops::log(&ops::maximum(&chunked(g, 1.0)?, &tiny)?)?;
    let total = ops::cumsum(&logs, -1)?;
    // Γ [B, H, N, C, C] on and below the diagonal, and the decay since the chunk's beginning.
    let lower = lower(c, 0)?;
    let span = ops::sub(&ops::expand(&total, -1)?, &ops::expand(&total, -2)?)?;
    let zero = array::scalar(0.0, Dtype::Float32);
    let decay = ops::select(&lower, &ops::exp(&ops::select(&lower, &span, &zero)?)?, &zero)?;
    let since = ops::expand(&ops::exp(&total)?, -1)?;

    let kt = ops::swap(&kc, -1, -2)?;
    let strict = crate::ops::select(&self::lower(c, -1)?, &decay, &zero)?;
    let a = ops::mul(&ops::mul(&ops::matmul(&kc, &kt)?, &strict)?, &beta)?;
    let inverse = unit_lower_inverse(&a, c)?;
    // What the chunk would write into an empty state, and what it takes of the state before it.
    let fresh = ops::matmul(&inverse, &ops::mul(&vc, &beta)?)?;
    let taken = ops::matmul(&inverse, &ops::mul(&ops::mul(&kc, &since)?, &beta)?)?;
    let mixed = ops::mul(&ops::matmul(&qc, &kt)?, &decay)?;
    let queries = ops::mul(&qc, &since)?;
    // Decay from each token to the chunk's end [B, H, N, C, 1], and over the whole chunk.
    let last = ops::slice(&total, -1, c - 1, c)?;
    let rest = ops::expand(&ops::exp(&ops::sub(&last, &total)?)?, -1)?;
    let keys = ops::mul(&kc, &rest)?;
    let whole = ops::expand(&ops::exp(&last)?, -1)?;

    let mut state = state.clone();
    let mut outputs = Vec::new();
    for n in 0..vc.dim(2) {
        let part = |x: &Array| -> Result<Array> { ops::squeeze(&ops::slice(x, 2, n, n + 1)?, 2) };
        let before = ops::swap(&state, -1, -2)?;
        let delta = ops::sub(&part(&fresh)?, &ops::matmul(&part(&taken)?, &before)?)?;
        let seen = ops::matmul(&part(&queries)?, &before)?;
        outputs.push(ops::add(&seen, &ops::matmul(&part(&mixed)?, &delta)?)?);
        let written = ops::matmul(&ops::swap(&delta, -1, -2)?, &part(&keys)?)?;
        state = ops::add(&ops::mul(&state, &part(&whole)?)?, &written)?;
    }
    let outputs: Vec<&Array> = outputs.iter().collect();
    // [B, H, N, C, V] -> [B, L, H, V]
    let y = ops::flatten(&ops::stack(&outputs, 2)?, 2, 3)?;
    let y = ops::swap_heads(&ops::slice(&y, 2, 0, tokens)?)?;
    Ok((ops::cast_like(&y, q)?, state))
}

/// (I + a)⁻¹ of strictly lower triangular matrices [.., C, C], row by row.
fn unit_lower_inverse(a: &Array, c: i32) -> Result<Array> {
    let row = |x: &Array, i: i32| ops::slice(x, -2, i, i + 1);
    let unit = ops::broadcast_to(&mx::eye::<f32>(c, None, None)?, a.shape())?;
    let mut done = row(&unit, 0)?;
    for i in 1..c {
        let left = ops::slice(&row(a, i)?, -1, 0, i)?;
        let next = ops::sub(&row(&unit, i)?, &ops::matmul(&left, &done)?)?;
        done = ops::concat(&[&done, &next], -2)?;
    }
    Ok(done)
}

/// State space duality (Dao and Gu 2024): S = exp(dt a) S + dt x bᵀ; y = S c.
///
/// x: [B, L, H, P]; a: float32 [H]; b, c: [B, L, G, N]; dt: float32 [B, L, H];
/// state: [B, H, P, N]. y is of x's type. Takes `chunk` tokens at once.
pub fn ssd(
    x: &Array,
    a: &Array,
    b: &Array,
    c: &Array,
    dt: &Array,
    state: &Array,
    chunk: i32,
) -> Result<Scanned> {
    let tokens = x.dim(1);
    let rate = ops::mul(dt, a)?;
    let input = ops::mul(&ops::expand(dt, -1)?, x)?;
    let mut state = state.clone();
    let mut outputs = Vec::new();
    let mut from = 0;
    while from < tokens {
        let to = (from + chunk).min(tokens);
        let part = |x: &Array| ops::slice(x, 1, from, to);
        let (y, next) = ssd_chunk(&part(&input)?, &part(&rate)?, &part(b)?, &part(c)?, &state)?;
        outputs.push(y);
        state = next;
        from = to;
    }
    let outputs: Vec<&Array> = outputs.iter().collect();
    Ok((ops::cast_like(&ops::concat(&outputs, 1)?, x)?, state))
}

/// One chunk. input: dt x [B, S, H, P]; rate: dt a [B, S, H].
fn ssd_chunk(input: &Array, rate: &Array, b: &Array, c: &Array, state: &Array) -> Result<Scanned> {
    let (s, heads) = (input.dim(1), input.dim(2));
    let (b, c) = (ops::swap_heads(b)?, ops::swap_heads(c)?);
    let zero = array::scalar(0.0, Dtype::Float32);
    // [B, H, S]: log decay up to and with each token.
    let total = ops::cumsum(&ops::swap(rate, 1, 2)?, -1)?;
    let lower = lower(s, 0)?;
    let span = ops::sub(&ops::expand(&total, -1)?, &ops::expand(&total, -2)?)?;
    let decay = ops::select(&lower, &ops::exp(&ops::select(&lower, &span, &zero)?)?, &zero)?;
    let pairs = serve_axis(&ops::matmul(&c, &ops::swap(&b, -1, -2)?)?, heads, 1)?;
    let input = ops::swap_heads(input)?;
    let own = ops::matmul(&ops::mul(&pairs, &decay)?, &input)?;
    let (b, c) = (serve_axis(&b, heads, 1)?, serve_axis(&c, heads, 1)?);
    let before = ops::matmul(&ops::to_f32(&c)?, &ops::swap(state, -1, -2)?)?;
    let y = ops::add(&own, &ops::mul(&ops::expand(&ops::exp(&total)?, -1)?, &before)?)?;
    let last = ops::slice(&total, -1, s - 1, s)?;
    let rest = ops::exp(&ops::sub(&last, &total)?)?;
    let written = ops::mul(&input, &ops::expand(&rest, -1)?)?;
    let written = ops::matmul(&ops::swap(&written, -1, -2)?, &ops::to_f32(&b)?)?;
    let kept = ops::mul(state, &ops::expand(&ops::exp(&last)?, -1)?)?;
    Ok((ops::swap_heads(&y)?, ops::add(&kept, &written)?))
}

/// Selective scan (Gu and Dao 2023): S = exp(dt a) S + dt x bᵀ; y = S c.
///
/// x, dt: [B, L, I]; a: float32 [I, N]; b, c: [B, L, N]; state: [B, I, N]. y is of x's type.
/// Takes `chunk` tokens at once.
pub fn selective(
    x: &Array,
    a: &Array,
    b: &Array,
    c: &Array,
    dt: &Array,
    state: &Array,
    chunk: i32,
) -> Result<Scanned> {
    let tokens = x.dim(1);
    let dt = ops::to_f32(dt)?;
    let input = ops::mul(&dt, &ops::to_f32(x)?)?;
    let (b, c) = (ops::to_f32(b)?, ops::to_f32(c)?);
    let mut state = state.clone();
    let mut outputs = Vec::new();
    let mut from = 0;
    while from < tokens {
        let to = (from + chunk).min(tokens);
        let part = |x: &Array| ops::slice(x, 1, from, to);
        // [B, S, I, N]
        let decay = ops::exp(&ops::mul(&ops::expand(&part(&dt)?, -1)?, a)?)?;
        let written = ops::mul(&ops::expand(&part(&input)?, -1)?, &ops::expand(&part(&b)?, -2)?)?;
        let (kept, written) = running(decay, written, to - from)?;
        let states = ops::add(&ops::mul(&kept, &ops::expand(&state, 1)?)?, &written)?;
        let y = ops::matmul(&states, &ops::expand(&part(&c)?, -1)?)?;
        outputs.push(ops::squeeze(&y, -1)?);
        state = ops::squeeze(&ops::slice(&states, 1, to - from - 1, to - from)?, 1)?;
        from = to;
    }
    let outputs: Vec<&Array> = outputs.iter().collect();
    Ok((ops::cast_like(&ops::concat(&outputs, 1)?, x)?, state))
}

/// The composition of the maps s -> decay s + written of all tokens up to each, along axis 1, by
/// doubling spans.
fn running(mut decay: Array, mut written: Array, tokens: i32) -> Result<(Array, Array)> {
    let mut span = 1;
    while span < tokens {
        let shape = |n: i32| {
            let mut shape = decay.shape().to_vec();
            shape[1] = n;
            shape
        };
        let ones = mx::ones_dtype(&shape(span), Dtype::Float32)?;
        let zeros = mx::zeros_dtype(&shape(span), Dtype::Float32)?;
        let earlier = |x: &Array, fill: &Array| -> Result<Array> {
            ops::concat(&[fill, &ops::slice(x, 1, 0, tokens - span)?], 1)
        };
        written = ops::add(&ops::mul(&decay, &earlier(&written, &zeros)?)?, &written)?;
        decay = ops::mul(&decay, &earlier(&decay, &ones)?)?;
        span *= 2;
    }
    Ok((decay, written))
}

/// bool [n, n], true on and below the diagonal `k`.
fn lower(n: i32, k: i32) -> Result<Array> {
    let rows = ops::reshape(&ops::arange(k, n + k)?, &[n, 1])?;
    ops::less_equal(&ops::expand(&ops::arange(0, n)?, 0)?, &rows)
}

/// Token `t` of [B, L, ..].
fn at(x: &Array, t: i32) -> Result<Array> {
    ops::squeeze(&ops::slice(x, 1, t, t + 1)?, 1)
}

/// [B, L, G, D] -> [B, L, heads, D]: each of G serves as many heads, one after the other.
fn serve(x: &Array, heads: i32) -> Result<Array> {
    serve_axis(x, heads, 2)
}

fn serve_axis(x: &Array, heads: i32, axis: i32) -> Result<Array> {
    let groups = x.dim(axis);
    if groups == heads {
        return Ok(x.clone());
    }
    if groups < 1 || heads % groups != 0 {
        return Err(Error::input("heads", format!("a multiple of {groups}"), heads.to_string()));
    }
    // A view per group: [.., G, 1, ..] -> [.., G, n, ..].
    let mut shape = x.shape().to_vec();
    let one = ops::expand(x, axis + 1)?;
    shape.insert(axis as usize + 1, heads / groups);
    ops::flatten(&ops::broadcast_to(&one, &shape)?, axis, axis + 1)
}

/// [B, L, H, ..] -> float32 [B, H, N, c, ..], filled up to whole chunks.
fn chunks(x: &Array, c: i32, fill: f32) -> Result<Array> {
    let mut shape = x.shape().to_vec();
    let tokens = x.dim(1);
    let short = (c - tokens % c) % c;
    let mut x = ops::to_f32(x)?;
    if short > 0 {
        shape[1] = short;
        let tail = mx::full::<f32>(&shape, Array::from_f32(fill))?;
        x = ops::concat(&[&x, &tail], 1)?;
    }
    let x = ops::swap(&x, 1, 2)?;
    shape = x.shape().to_vec();
    shape[2] = c;
    shape.insert(2, (tokens + short) / c);
    ops::reshape(&x, &shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(shape: &[i32], seed: u64, low: f32, high: f32) -> Array {
        let key = mlx_rs::random::key(seed).unwrap();
        mlx_rs::random::uniform::<_, f32>(low, high, shape, Some(&key)).unwrap()
    }

    fn distance(a: &Array, b: &Array) -> f32 {
        assert_eq!(a.shape(), b.shape());
        mx::max(ops::sub(a, b).unwrap().abs().unwrap(), None).unwrap().item_cast::<f32>()
    }

    fn delta_inputs(tokens: i32) -> [Array; 6] {
        let k = noise(&[2, tokens, 2, 8], 2, -0.5, 0.5);
        [
            noise(&[2, tokens, 2, 8], 1, -1.0, 1.0),
            k,
            noise(&[2, tokens, 4, 6], 3, -1.0, 1.0),
            noise(&[2, tokens, 4], 4, 0.2, 1.0),
            noise(&[2, tokens, 4], 5, 0.0, 1.0),
            noise(&[2, 4, 6, 8], 6, -1.0, 1.0),
        ]
    }

    #[test]
    fn the_delta_rule_in_chunks_is_the_rule_token_by_token() {
        for tokens in [1, 5, 32, 33, 100] {
            let [q, k, v, g, beta, state] = &delta_inputs(tokens);
            let (y, s) = delta_steps(q, k, v, g, beta, state).unwrap();
            let (yc, sc) = delta_chunks(q, k, v, g, beta, state).unwrap();
            assert!(distance(&y, &yc) < 2e-5, "{tokens} tokens: outputs");
            assert!(distance(&s, &sc) < 2e-5, "{tokens} tokens: state");
        }
    }

    #[test]
    fn a_vanished_decay_forgets_all() {
        let [q, k, v, _, beta, state] = &delta_inputs(40);
        let none = mx::zeros_dtype(&[2, 40, 4], Dtype::Float32).unwrap();
        let (y, _) = delta_steps(q, k, v, &none, beta, state).unwrap();
        let (yc, _) = delta_chunks(q, k, v, &none, beta, state).unwrap();
        assert!(distance(&y, &yc) < 2e-5);
    }

    #[test]
    fn idle_tokens_leave_the_state_alone() {
        let [q, k, v, g, beta, state] = &delta_inputs(7);
        let none = Array::from_slice(&[false; 14], &[2, 7]);
        let (g, beta) = (idle(g, Some(&none), 1.0).unwrap(), idle(beta, Some(&none), 0.0).unwrap());
        let (_, s) = delta_steps(q, k, v, &g, &beta, state).unwrap();
        let (_, sc) = delta_chunks(q, k, v, &g, &beta, state).unwrap();
        assert_eq!((distance(&s, state), distance(&sc, state)), (0.0, 0.0));
    }

    #[test]
    fn chunks_of_a_state_space_scan_do_not_show() {
        let (x, dt) = (noise(&[2, 50, 4, 6], 1, -1.0, 1.0), noise(&[2, 50, 4], 2, 0.0, 0.5));
        let (b, c) = (noise(&[2, 50, 2, 8], 3, -1.0, 1.0), noise(&[2, 50, 2, 8], 4, -1.0, 1.0));
        let (a, state) = (noise(&[4], 5, -3.0, 0.0), noise(&[2, 4, 6, 8], 6, -1.0, 1.0));
        let (y, s) = ssd(&x, &a, &b, &c, &dt, &state, 1).unwrap();
        for chunk in [7, 50, 256] {
            let (yc, sc) = ssd(&x, &a, &b, &c, &dt, &state, chunk).unwrap();
            assert!(distance(&y, &yc) < 2e-5 && distance(&s, &sc) < 2e-5, "chunks of {chunk}");
        }
    }

    #[test]
    fn chunks_of_a_selective_scan_do_not_show() {
        let (x, dt) = (noise(&[2, 50, 5], 1, -1.0, 1.0), noise(&[2, 50, 5], 2, 0.0, 0.5));
        let (b, c) = (noise(&[2, 50, 8], 3, -1.0, 1.0), noise(&[2, 50, 8], 4, -1.0, 1.0));
        let (a, state) = (noise(&[5, 8], 5, -3.0, 0.0), noise(&[2, 5, 8], 6, -1.0, 1.0));
        let (y, s) = selective(&x, &a, &b, &c, &dt, &state, 1).unwrap();
        for chunk in [7, 50, 64] {
            let (yc, sc) = selective(&x, &a, &b, &c, &dt, &state, chunk).unwrap();
            assert!(distance(&y, &yc) < 2e-5 && distance(&s, &sc) < 2e-5, "chunks of {chunk}");
        }
    }

    #[test]
    fn the_delta_rule_is_a_recurrence_of_low_rank() {
        let [q, k, v, g, beta, state] = &delta_inputs(9);
        let (y, s) = delta_steps(q, k, v, g, beta, state).unwrap();
        let wide = |x: &Array| ops::expand(x, -1).unwrap();
        let (q, k) = (serve(q, 4).unwrap(), serve(k, 4).unwrap());
        let decay = ops::mul(&wide(g), &mx::ones_like(&k).unwrap()).unwrap();
        let a = ops::mul(&decay, &k).unwrap();
        let b = ops::neg(&ops::mul(&k, &wide(beta)).unwrap()).unwrap();
        let v = ops::mul(v, &wide(beta)).unwrap();
        let (yl, sl) = linear_steps([&q, &k, &v, &decay], Some((&a, &b)), state).unwrap();
        assert!(distance(&y, &yl) < 2e-5 && distance(&s, &sl) < 2e-5);
    }

    #[test]
    fn a_decayed_sum_is_what_its_name_says() {
        let of = |values: &[f32]| Array::from_slice(values, &[1, values.len() as i32, 1]);
        let state = Array::from_slice(&[4.0_f32], &[1, 1]);
        let (y, s) = sum_steps(&of(&[1.0, 2.0]), &of(&[0.5, 0.25]), &state).unwrap();
        assert_eq!(distance(&y, &of(&[3.0, 2.75])), 0.0);
        assert_eq!(s.item_cast::<f32>(), 2.75);
    }

    #[test]
    fn one_token_is_the_recurrence_itself() {
        let scalar = |v: f32, shape: &[i32]| Array::from_slice(&[v], shape);
        // S = exp(0.5 · -2) · 3 + 0.5 · 4 · 7; y = S · 2
        let (y, s) = ssd(
            &scalar(4.0, &[1, 1, 1, 1]),
            &scalar(-2.0, &[1]),
            &scalar(7.0, &[1, 1, 1, 1]),
            &scalar(2.0, &[1, 1, 1, 1]),
            &scalar(0.5, &[1, 1, 1]),
            &scalar(3.0, &[1, 1, 1, 1]),
            256,
        )
        .unwrap();
        let expected = (-1.0_f32).exp() * 3.0 + 14.0;
        assert!((s.item_cast::<f32>() - expected).abs() < 1e-5);
        assert!((y.item_cast::<f32>() - 2.0 * expected).abs() < 1e-5);
        // S = 0.5 · 3; S += 0.25 · (5 - 1.5 · 2) · 2; y = S · 4
        let (y, s) = delta_steps(
            &scalar(4.0, &[1, 1, 1, 1]),
            &scalar(2.0, &[1, 1, 1, 1]),
            &scalar(5.0, &[1, 1, 1, 1]),
            &scalar(0.5, &[1, 1, 1]),
            &scalar(0.25, &[1, 1, 1]),
            &scalar(3.0, &[1, 1, 1, 1]),
        )
        .unwrap();
        assert_eq!((s.item_cast::<f32>(), y.item_cast::<f32>()), (2.5, 10.0));
    }
}
