//! Thin helpers over MLX arrays.

mod ffi;
mod scalar;

pub use mlx_rs::{Array, Dtype};

pub use ffi::{
    after, dequantize, dtype_bytes, from_bytes, from_fp8, gather_qmm, hadamard, operations,
    quantize, quantized_matmul, slice, slice_update, view, with_bytes,
};
pub use scalar::{from_i32s, is_float, scalar};
