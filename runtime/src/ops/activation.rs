//! Activations and weightless norms.

use std::f32::consts::SQRT_2;
use std::f64::consts::PI;

use mlx_rs::ops as mx;
use mlx_rs::{Array, Dtype};

use super::{
    add_scalar, cast, clip, div, div_scalar, maximum, mul, mul_scalar, pow_scalar, sqrt, square,
    sum, to_f32,
};
use crate::Result;
use crate::array::scalar;

/// `1 / (1 + e ** -x)`
pub fn sigmoid(x: &Array) -> Result<Array> {
    Ok(mx::sigmoid(x)?)
}

/// `x * sigmoid(x)`
pub fn silu(x: &Array) -> Result<Array> {
    mul(x, &sigmoid(x)?)
}

/// Gaussian error linear unit, exact: `x * (1 + erf(x / sqrt 2)) / 2`.
pub fn gelu(x: &Array) -> Result<Array> {
    let erf = mx::erf(div_scalar(x, SQRT_2)?)?;
    div_scalar(&mul(x, &add_scalar(&erf, 1.0)?)?, 2.0)
}

/// The tanh approximation of [`gelu`].
pub fn gelu_tanh(x: &Array) -> Result<Array> {
    // A power is many times slower than two products; half types keep the single rounding.
    let cube = match x.dtype() {
        Dtype::Float32 => mul(&square(x)?, x)?,
        _ => pow_scalar(x, 3.0)?,
    };
    let inner = mx::add(x, mul_scalar(&cube, 0.044_715)?)?;
    // Rounded once: the root of a rounded quotient is another number.
    let tanh = tanh(&mul_scalar(&inner, (2.0 / PI).sqrt() as f32)?)?;
    mul(&mul_scalar(x, 0.5)?, &add_scalar(&tanh, 1.0)?)
}

/// `max(x, 0)`
pub fn relu(x: &Array) -> Result<Array> {
    maximum(x, &scalar(0.0, x.dtype()))
}

/// `relu(x) ** 2`
pub fn relu2(x: &Array) -> Result<Array> {
    square(&relu(x)?)
}

/// Hyperbolic tangent.
pub fn tanh(x: &Array) -> Result<Array> {
    Ok(mx::tanh(x)?)
}

/// `log(1 + e ** x)`
pub fn softplus(x: &Array) -> Result<Array> {
    Ok(mx::logaddexp(x, scalar(0.0, x.dtype()))?)
}

/// Softmax over the last axis; `precise` accumulates in float32.
pub fn softmax(x: &Array, precise: bool) -> Result<Array> {
    Ok(mx::softmax_axis(x, -1, precise)?)
}

/// `tanh(x / cap) * cap` in the type of `x`.
pub fn softcap(x: &Array, cap: f32) -> Result<Array> {
    mul_scalar(&tanh(&div_scalar(x, cap)?)?, cap)
}

/// [`softcap`] in float32.
pub fn softcap_f32(x: &Array, cap: f32) -> Result<Array> {
    softcap(&to_f32(x)?, cap)
}

/// `silu(gate) * up`
pub fn swiglu(gate: &Array, up: &Array) -> Result<Array> {
    mul(&silu(gate)?, up)
}

/// `gelu_tanh(gate) * up`
pub fn geglu(gate: &Array, up: &Array) -> Result<Array> {
    mul(&gelu_tanh(gate)?, up)
}

/// `a + b`; float16 sums are taken in float32 and held within float16's range.
pub fn clipped_add(a: &Array, b: &Array) -> Result<Array> {
    if a.dtype() != Dtype::Float16 {
        return Ok(mx::add(a, b)?);
    }
    let (low, high) = (half::f16::MIN.to_f32(), half::f16::MAX.to_f32());
    let sum = mx::add(to_f32(a)?, to_f32(b)?)?;
    cast(&clip(&sum, low, high)?, Dtype::Float16)
}

/// RMS norm of the last axis without a weight.
pub fn unit_rms_norm(x: &Array, eps: f32) -> Result<Array> {
    Ok(mlx_rs::fast::rms_norm(x, None, eps)?)
}

/// RMS norm of the last axis with a computed gain \[D\].
pub fn gained_rms_norm(x: &Array, gain: &Array, eps: f32) -> Result<Array> {
    Ok(mlx_rs::fast::rms_norm(x, Some(gain), eps)?)
}

/// `(x - mean) / sqrt(var + eps)` over the last axis.
pub fn unit_layer_norm(x: &Array, eps: f32) -> Result<Array> {
    Ok(mlx_rs::fast::layer_norm(x, None, None, eps)?)
}

/// `x / |x|` over the last axis, the length at least `eps`.
pub fn l2norm(x: &Array, eps: f32) -> Result<Array> {
    let length = sqrt(&sum(&square(x)?, -1, true)?)?;
    div(x, &maximum(&length, &scalar(eps, x.dtype()))?)
}
