//! Arithmetic with broadcasting; a scalar takes the type of the array.

use mlx_rs::ops as mx;
use mlx_rs::{Array, Dtype};

use crate::Result;
use crate::array::scalar;

fn weak(x: &Array, s: f32) -> Array {
    scalar(s, x.dtype())
}

/// `a + b`
pub fn add(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::add(a, b)?)
}

/// `a - b`
pub fn sub(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::subtract(a, b)?)
}

/// `a * b`
pub fn mul(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::multiply(a, b)?)
}

/// `a / b`
pub fn div(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::divide(a, b)?)
}

/// `a ** b`
pub fn pow(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::power(a, b)?)
}

/// `-x`
pub fn neg(x: &Array) -> Result<Array> {
    Ok(mx::negative(x)?)
}

/// `x + s`
pub fn add_scalar(x: &Array, s: f32) -> Result<Array> {
    add(x, &weak(x, s))
}

/// `x - s`
pub fn sub_scalar(x: &Array, s: f32) -> Result<Array> {
    sub(x, &weak(x, s))
}

/// `s - x`
pub fn scalar_sub(s: f32, x: &Array) -> Result<Array> {
    sub(&weak(x, s), x)
}

/// `x * s`
pub fn mul_scalar(x: &Array, s: f32) -> Result<Array> {
    mul(x, &weak(x, s))
}

/// `x / s`
pub fn div_scalar(x: &Array, s: f32) -> Result<Array> {
    div(x, &weak(x, s))
}

/// `s / x`
pub fn scalar_div(s: f32, x: &Array) -> Result<Array> {
    div(&weak(x, s), x)
}

/// `x ** s`; the square is a product.
pub fn pow_scalar(x: &Array, s: f32) -> Result<Array> {
    if s == 2.0 { Ok(mx::square(x)?) } else { pow(x, &weak(x, s)) }
}

/// `s ** x`
pub fn scalar_pow(s: f32, x: &Array) -> Result<Array> {
    pow(&weak(x, s), x)
}

/// `max(a, b)`
pub fn maximum(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::maximum(a, b)?)
}

/// `min(a, b)`
pub fn minimum(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::minimum(a, b)?)
}

/// `e ** x`
pub fn exp(x: &Array) -> Result<Array> {
    Ok(mx::exp(x)?)
}

/// Natural logarithm.
pub fn log(x: &Array) -> Result<Array> {
    Ok(mx::log(x)?)
}

/// Square root.
pub fn sqrt(x: &Array) -> Result<Array> {
    Ok(mx::sqrt(x)?)
}

/// `1 / sqrt(x)`
pub fn rsqrt(x: &Array) -> Result<Array> {
    Ok(mx::rsqrt(x)?)
}

/// `x * x`
pub fn square(x: &Array) -> Result<Array> {
    Ok(mx::square(x)?)
}

/// Absolute value.
pub fn abs(x: &Array) -> Result<Array> {
    Ok(mx::abs(x)?)
}

/// Sine.
pub fn sin(x: &Array) -> Result<Array> {
    Ok(mx::sin(x)?)
}

/// Cosine.
pub fn cos(x: &Array) -> Result<Array> {
    Ok(mx::cos(x)?)
}

/// Rounds down.
pub fn floor(x: &Array) -> Result<Array> {
    Ok(mx::floor(x)?)
}

/// Rounds to the nearest integer, halves to even.
pub fn round(x: &Array) -> Result<Array> {
    Ok(mx::round(x, 0)?)
}

/// `x` kept within `low ..= high`.
pub fn clip(x: &Array, low: f32, high: f32) -> Result<Array> {
    minimum(&maximum(x, &weak(x, low))?, &weak(x, high))
}

/// Matrix product over the last two axes, leading axes broadcast.
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::matmul(a, b)?)
}

/// `condition ? a : b`, elementwise.
pub fn select(condition: &Array, a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::select(condition, a, b)?)
}

/// `a < b`
pub fn less(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::lt(a, b)?)
}

/// Where `x` is below a number.
pub fn below(x: &Array, limit: f32) -> Result<Array> {
    less(x, &weak(x, limit))
}

/// `a <= b`
pub fn less_equal(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::le(a, b)?)
}

/// `a == b`
pub fn equal(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::eq(a, b)?)
}

/// `a // b`, rounded down.
pub fn floor_div(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::floor_divide(a, b)?)
}

/// `a and b` of booleans.
pub fn logical_and(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::logical_and(a, b)?)
}

/// `a or b` of booleans.
pub fn logical_or(a: &Array, b: &Array) -> Result<Array> {
    Ok(mx::logical_or(a, b)?)
}

/// `x` as `dtype`.
pub fn cast(x: &Array, dtype: Dtype) -> Result<Array> {
    if x.dtype() == dtype { Ok(x.clone()) } else { Ok(x.as_dtype(dtype)?) }
}

/// `x` as float32.
pub fn to_f32(x: &Array) -> Result<Array> {
    cast(x, Dtype::Float32)
}

/// `x` with the type of `like`.
pub fn cast_like(x: &Array, like: &Array) -> Result<Array> {
    cast(x, like.dtype())
}
