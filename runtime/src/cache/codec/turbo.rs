//! The turbo codec: keys in affine groups, values rotated and quantised as N(0, 1).
//!
//! Groups are 32 features of one head vector. Keys: `(index + zero) * scale`, scales and zeros in
//! float16. Values: signs, a Hadamard transform, then the nearest centroid times the group's root
//! mean square. Decoded arrays are bfloat16.
//!
//! A group whose zero does not fit float16 (a constant, or a small spread far from 0) would decode
//! to NaN; it is written as its middle instead: scale = middle, index + zero = 1.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mlx_rs::Array;
use mlx_rs::ops as mx;
use serde::Deserialize;

use super::packing::{pack, unpack};
use crate::array::hadamard;
use crate::{Dtype, Error, Result, ops};

/// Features that share a scale.
pub(super) const GROUP: i32 = 32;

/// Head sizes that have a rotation.
pub(super) const HEADS: [i32; 4] = [64, 128, 256, 512];

const EPSILON: f32 = 1e-8;

#[derive(Deserialize)]
struct Tables {
    centroids: BTreeMap<u32, Vec<f32>>,
    boundaries: BTreeMap<u32, Vec<f32>>,
    negative: BTreeMap<i32, String>,
}

fn tables() -> Result<&'static Tables> {
    static TABLES: OnceLock<Option<Tables>> = OnceLock::new();
    let read = || serde_json::from_str(include_str!("turbo_tables.json")).ok();
    TABLES.get_or_init(read).as_ref().ok_or_else(|| missing("tables"))
}

fn missing(what: &str) -> Error {
    Error::cache(format!("the turbo codec has no {what}"))
}

/// The negatives of a list in reverse, `middle`, and the list.
fn mirrored(upper: &[f32], middle: &[f32]) -> Array {
    let mut all: Vec<f32> = upper.iter().rev().map(|x| -x).collect();
    all.extend(middle);
    all.extend(upper);
    Array::from_slice(&all, &[all.len() as i32])
}

/// ±1 for each feature of a head.
fn signs(d: i32) -> Result<Array> {
    let hex = tables()?.negative.get(&d).ok_or_else(|| missing(&format!("heads of {d}")))?;
    let mut signs = Vec::with_capacity(d as usize);
    for digit in hex.chars().rev() {
        let digit = digit.to_digit(16).unwrap_or(0);
        signs.extend((0..4).map(|bit| if digit >> bit & 1 == 1 { -1.0_f32 } else { 1.0 }));
    }
    Ok(Array::from_slice(&signs, &[signs.len() as i32]))
}

/// Float32 [.., d] -> [.., d / 32, 32].
fn grouped(x: &Array) -> Result<Array> {
    ops::heads_last(&ops::to_f32(x)?, x.dim(-1) / GROUP)
}

/// Index, scales and zeros of keys [.., d].
pub(super) fn encode_keys(x: &Array, bits: u32) -> Result<[Array; 3]> {
    let g = grouped(x)?;
    let (lo, hi) = (ops::min(&g, -1, true)?, ops::max(&g, -1, true)?);
    let signed = bits == 8;
    let levels = if signed { 254.0 } else { (1_u32 << bits) as f32 - 1.0 };
    let scale = ops::div_scalar(&ops::sub(&hi, &lo)?, levels)?;
    let safe = ops::add_scalar(&scale, EPSILON)?;
    let zero = if signed {
        ops::round(&ops::div(&ops::add(&hi, &lo)?, &ops::mul_scalar(&safe, 2.0)?)?)?
    } else {
        ops::round(&ops::div(&lo, &safe)?)?
    };
    let steps = ops::sub(&ops::div(&g, &safe)?, &zero)?;
    let (low, high) = if signed { (-127.0, 127.0) } else { (0.0, levels) };
    let index = ops::clip(&ops::round(&steps)?, low, high)?;
    let lost = ops::less(&Array::from_f32(half::f16::MAX.to_f32()), &ops::abs(&zero)?)?;
    let middle = ops::mul_scalar(&ops::add(&lo, &hi)?, 0.5)?;
    let scale = ops::select(&lost, &middle, &scale)?;
    let zero = ops::select(&lost, &Array::from_f32(1.0), &zero)?;
    let index = ops::merge_last(&ops::select(&lost, &Array::from_f32(0.0), &index)?)?;
    let index = if signed {
        ops::cast(&index, Dtype::Int8)?
    } else {
        pack(&ops::cast(&index, Dtype::Uint8)?, bits)?
    };
    let half = |x: &Array| ops::cast(&ops::squeeze(x, -1)?, Dtype::Float16);
    Ok([index, half(&scale)?, half(&zero)?])
}

/// bfloat16 keys.
pub(super) fn decode_keys(
    index: &Array,
    scales: &Array,
    zeros: &Array,
    bits: u32,
) -> Result<Array> {
    let index = if bits == 8 { index.clone() } else { unpack(index, bits)? };
    let wide = |x: &Array| ops::to_f32(&ops::expand(x, -1)?);
    let x = ops::mul(&ops::add(&grouped(&index)?, &wide(zeros)?)?, &wide(scales)?)?;
    ops::cast(&ops::merge_last(&x)?, Dtype::Bfloat16)
}

/// Index and scales of values [.., d].
pub(super) fn encode_values(x: &Array, bits: u32) -> Result<[Array; 2]> {
    let d = x.dim(-1);
    let turned = ops::mul(&ops::to_f32(x)?, &signs(d)?)?;
    encode_rotated(&hadamard(&turned, 1.0 / (d as f32).sqrt())?, bits)
}

/// As [`encode_values`], from what the rotation gives.
pub(in crate::cache) fn encode_rotated(x: &Array, bits: u32) -> Result<[Array; 2]> {
    let g = grouped(x)?;
    let scale = ops::sqrt(&ops::mean(&ops::square(&g)?, -1, true)?)?;
    let unit = ops::merge_last(&ops::div(&g, &ops::add_scalar(&scale, EPSILON)?)?)?;
    let upper = tables()?.boundaries.get(&bits).ok_or_else(|| missing("such values"))?;
    // The number of boundaries below.
    let index = mirrored(upper, &[0.0]).search_sorted(&unit, mx::SearchSide::Left)?;
    let index = pack(&ops::cast(&index, Dtype::Uint8)?, bits)?;
    Ok([index, ops::cast(&ops::squeeze(&scale, -1)?, Dtype::Float16)?])
}

/// bfloat16 values, left `rotated` or turned back.
pub(super) fn decode_values(
    index: &Array,
    scales: &Array,
    bits: u32,
    rotated: bool,
) -> Result<Array> {
    let upper = tables()?.centroids.get(&bits).ok_or_else(|| missing("such values"))?;
    let g = grouped(&ops::take(&mirrored(upper, &[]), &unpack(index, bits)?, 0)?)?;
    let x = ops::merge_last(&ops::mul(&g, &ops::to_f32(&ops::expand(scales, -1)?)?)?)?;
    let x = if rotated { x } else { unrotate(&x)? };
    ops::cast(&x, Dtype::Bfloat16)
}

/// Turns vectors [.., d] back: Hadamard, then signs, in float32.
pub(in crate::cache) fn unrotate(x: &Array) -> Result<Array> {
    let d = x.dim(-1);
    let turned = hadamard(&ops::to_f32(x)?, 1.0 / (d as f32).sqrt())?;
    ops::mul(&turned, &signs(d)?)
}
