//! Reductions over one axis.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::Result;

/// Sum.
pub fn sum(x: &Array, axis: i32, keepdims: bool) -> Result<Array> {
    Ok(mx::sum_axis(x, axis, keepdims)?)
}

/// Sum over the last axis, which stays as 1.
pub fn sum_last(x: &Array) -> Result<Array> {
    sum(x, -1, true)
}

/// Mean over the last axis, which stays as 1.
pub fn mean_last(x: &Array) -> Result<Array> {
    mean(x, -1, true)
}

/// Mean.
pub fn mean(x: &Array, axis: i32, keepdims: bool) -> Result<Array> {
    Ok(mx::mean_axis(x, axis, keepdims)?)
}

/// Greatest.
pub fn max(x: &Array, axis: i32, keepdims: bool) -> Result<Array> {
    Ok(mx::max_axis(x, axis, keepdims)?)
}

/// Least.
pub fn min(x: &Array, axis: i32, keepdims: bool) -> Result<Array> {
    Ok(mx::min_axis(x, axis, keepdims)?)
}

/// `log(sum(e ** x))`
pub fn logsumexp(x: &Array, axis: i32, keepdims: bool) -> Result<Array> {
    Ok(mx::logsumexp_axis(x, axis, keepdims)?)
}

/// Index of the greatest, as uint32.
pub fn argmax(x: &Array, axis: i32) -> Result<Array> {
    Ok(mx::indexing::argmax_axis(x, axis, false)?)
}

/// Running sum along an axis.
pub fn cumsum(x: &Array, axis: i32) -> Result<Array> {
    Ok(mx::cumsum(x, axis, false, true)?)
}
