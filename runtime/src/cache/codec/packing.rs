//! Small numbers as one little-endian stream of bits along the last axis.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::{Dtype, Result, ops};

/// uint8 [.., n] of numbers below `2 ** bits` -> uint8 [.., n * bits / 8].
pub(super) fn pack(x: &Array, bits: u32) -> Result<Array> {
    if bits == 8 {
        return Ok(x.clone());
    }
    collect(&ops::flatten(&explode(x, bits)?, -2, -1)?, 8)
}

/// The reverse of [`pack`].
pub(super) fn unpack(x: &Array, bits: u32) -> Result<Array> {
    if bits == 8 {
        return Ok(x.clone());
    }
    collect(&ops::flatten(&explode(x, 8)?, -2, -1)?, bits)
}

/// [.., n] -> [.., n, bits], the lowest bit first.
fn explode(x: &Array, bits: u32) -> Result<Array> {
    let shifted = ops::floor_div(&ops::expand(x, -1)?, &places(bits))?;
    Ok(mx::remainder(&shifted, Array::from_slice(&[2_u8], &[]))?)
}

/// [.., n * bits] of single bits -> [.., n].
fn collect(stream: &Array, bits: u32) -> Result<Array> {
    let mut shape = stream.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last /= bits as i32;
    }
    shape.push(bits as i32);
    let placed = ops::mul(&ops::reshape(stream, &shape)?, &places(bits))?;
    ops::cast(&ops::sum(&placed, -1, false)?, Dtype::Uint8)
}

/// The values of the lowest bits.
fn places(bits: u32) -> Array {
    let places: Vec<u8> = (0..bits).map(|bit| 1 << bit).collect();
    Array::from_slice(&places, &[bits as i32])
}
