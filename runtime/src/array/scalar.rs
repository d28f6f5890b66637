//! Constants of an array's own type, so that a scalar operand never changes it.

use half::{bf16, f16};
use mlx_rs::{Array, Dtype};

/// Whether elements of `dtype` are real floats.
pub fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32 | Dtype::Float64)
}

/// The zero-dimensional array `value` of type `dtype`, rounded to it. For integer types a value
/// with a fraction stays a float32.
pub fn scalar(value: f32, dtype: Dtype) -> Array {
    match dtype {
        Dtype::Float16 => Array::from_slice(&[f16::from_f32(value)], &[]),
        Dtype::Bfloat16 => Array::from_slice(&[bf16::from_f32(value)], &[]),
        Dtype::Int8 if value.fract() == 0.0 => Array::from_slice(&[value as i8], &[]),
        Dtype::Int16 if value.fract() == 0.0 => Array::from_slice(&[value as i16], &[]),
        Dtype::Int32 if value.fract() == 0.0 => Array::from_int(value as i32),
        Dtype::Int64 if value.fract() == 0.0 => Array::from_slice(&[value as i64], &[]),
        Dtype::Uint8 if value.fract() == 0.0 => Array::from_slice(&[value as u8], &[]),
        Dtype::Uint16 if value.fract() == 0.0 => Array::from_slice(&[value as u16], &[]),
        Dtype::Uint32 if value.fract() == 0.0 => Array::from_slice(&[value as u32], &[]),
        Dtype::Uint64 if value.fract() == 0.0 => Array::from_slice(&[value as u64], &[]),
        _ => Array::from_f32(value),
    }
}

/// A one-dimensional int32 array.
pub fn from_i32s(values: &[i32]) -> Array {
    // The length of a list of rows or columns always fits: it comes from the shape of an array.
    Array::from_slice(values, &[values.len() as i32])
}
