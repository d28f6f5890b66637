//! Shapes: views, heads, joins and gathers.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::pass::Pass;
use crate::{Error, Result, array};

/// `x` in another shape; one axis may be -1.
pub fn reshape(x: &Array, shape: &[i32]) -> Result<Array> {
    Ok(mx::reshape(x, shape)?)
}

/// Axes in another order.
pub fn transpose(x: &Array, axes: &[i32]) -> Result<Array> {
    Ok(mx::transpose_axes(x, axes)?)
}

/// Two axes exchanged.
pub fn swap(x: &Array, a: i32, b: i32) -> Result<Array> {
    Ok(mx::swap_axes(x, a, b)?)
}

/// [B, L, n·D] -> [B, n, L, D].
pub fn heads(x: &Array, n: i32) -> Result<Array> {
    let [b, l, f] = shape3(x, "heads")?;
    let d = divide(f, n, "heads")?;
    // One token: the transposed order is the same order.
    if l == 1 {
        return reshape(x, &[b, n, 1, d]);
    }
    transpose(&reshape(x, &[b, l, n, d])?, &[0, 2, 1, 3])
}

/// [B, n, L, D] -> [B, L, n·D].
pub fn merge(x: &Array) -> Result<Array> {
    let [b, n, l, d] = shape4(x, "merge")?;
    if l == 1 {
        return reshape(x, &[b, 1, n * d]);
    }
    reshape(&transpose(x, &[0, 2, 1, 3])?, &[b, l, n * d])
}

/// [.., n·D] -> [.., n, D].
pub fn heads_last(x: &Array, n: i32) -> Result<Array> {
    let mut shape = x.shape().to_vec();
    let f = shape.pop().unwrap_or(1);
    shape.extend([n, divide(f, n, "heads_last")?]);
    reshape(x, &shape)
}

/// [.., n, D] -> [.., n·D].
pub fn merge_last(x: &Array) -> Result<Array> {
    let mut shape = x.shape().to_vec();
    let (d, n) = (shape.pop().unwrap_or(1), shape.pop().unwrap_or(1));
    shape.push(n * d);
    reshape(x, &shape)
}

/// [B, L, n, D] <-> [B, n, L, D].
pub fn swap_heads(x: &Array) -> Result<Array> {
    transpose(x, &[0, 2, 1, 3])
}

/// The axis cut into parts of these sizes.
///
/// # Errors
/// When the sizes do not add up to the axis.
pub fn split<const N: usize>(x: &Array, sizes: &[i32], axis: i32) -> Result<[Array; N]> {
    let axis = axis_of(x, axis, "split")?;
    let whole = x.dim(axis as i32);
    let total: i64 = sizes.iter().map(|&s| i64::from(s)).sum();
    if sizes.len() != N || total != i64::from(whole) || sizes.iter().any(|&s| s < 0) {
        return Err(Error::input(
            "split",
            format!("{N} sizes that add up to {whole}"),
            format!("{sizes:?}"),
        ));
    }
    let mut parts = Vec::with_capacity(N);
    let mut at = 0;
    for &size in sizes {
        parts.push(slice_axis(x, axis, at, at + size)?);
        at += size;
    }
    parts.try_into().map_err(|_| Error::input("split", format!("{N} parts"), "fewer"))
}

/// `x[start..stop]` along one axis; a view. Negative ends count from the back.
pub fn slice(x: &Array, axis: i32, start: i32, stop: i32) -> Result<Array> {
    let axis = axis_of(x, axis, "slice")?;
    let whole = x.dim(axis as i32);
    let from = |i: i32| if i < 0 { i + whole } else { i };
    let (start, stop) = (from(start), from(stop));
    if start < 0 || start > stop || stop > whole {
        return Err(Error::input(
            "slice",
            format!("bounds within 0..{whole}"),
            format!("{start}..{stop}"),
        ));
    }
    slice_axis(x, axis, start, stop)
}

fn slice_axis(x: &Array, axis: usize, start: i32, stop: i32) -> Result<Array> {
    let mut from = vec![0; x.ndim()];
    let mut to = x.shape().to_vec();
    // `axis` was checked against the number of axes.
    (from[axis], to[axis]) = (start, stop);
    array::slice(x, &from, &to)
}

/// Joined along an axis.
pub fn concat(parts: &[&Array], axis: i32) -> Result<Array> {
    Ok(mx::concatenate(parts, axis)?)
}

/// `a`, then `b` along an axis.
pub fn join(a: &Array, b: &Array, axis: i32) -> Result<Array> {
    concat(&[a, b], axis)
}

/// Joined along a new axis.
pub fn stack(parts: &[&Array], axis: i32) -> Result<Array> {
    Ok(mx::stack(parts, axis)?)
}

/// Rows of `x` along `axis` by number; the axis becomes the axes of `indices`.
pub fn take(x: &Array, indices: &Array, axis: i32) -> Result<Array> {
    Ok(mx::indexing::take_axis(x, indices, axis)?)
}

/// Elements of `x` along `axis`, `indices` of the same number of axes.
pub fn gather(x: &Array, indices: &Array, axis: i32) -> Result<Array> {
    Ok(mx::indexing::take_along_axis(x, indices, axis)?)
}

/// Each element `n` times in a row along an axis.
pub fn repeat(x: &Array, n: i32, axis: i32) -> Result<Array> {
    Ok(mx::repeat_axis::<f32>(x.clone(), n, axis)?)
}

/// A new axis of length 1.
pub fn expand(x: &Array, axis: i32) -> Result<Array> {
    Ok(mx::expand_dims(x, axis)?)
}

/// The `index`-th entry of an axis, which goes away; a negative index counts from the back.
pub fn entry(x: &Array, index: i32, axis: i32) -> Result<Array> {
    let at = axis_of(x, axis, "entry")?;
    let index = if index < 0 { index + x.dim(at as i32) } else { index };
    squeeze(&slice(x, axis, index, index + 1)?, axis)
}

/// Zeros in the shape and type of `x`.
pub fn zeros_like(x: &Array) -> Result<Array> {
    Ok(mx::zeros_dtype(x.shape(), x.dtype())?)
}

/// An axis of length 1 removed.
pub fn squeeze(x: &Array, axis: i32) -> Result<Array> {
    Ok(mx::squeeze_axes(x, &[axis])?)
}

/// `x` repeated to a larger shape without a copy.
pub fn broadcast_to(x: &Array, shape: &[i32]) -> Result<Array> {
    Ok(mx::broadcast_to(x, shape)?)
}

/// Axes `first ..= last` as one.
pub fn flatten(x: &Array, first: i32, last: i32) -> Result<Array> {
    Ok(mx::flatten(x, first, last)?)
}

/// Zeros before and after along one axis.
pub fn pad(x: &Array, axis: i32, before: i32, after: i32) -> Result<Array> {
    if before == 0 && after == 0 {
        return Ok(x.clone());
    }
    let axis = axis_of(x, axis, "pad")?;
    let zeros = |n: i32| -> Result<Array> {
        let mut shape = x.shape().to_vec();
        // `axis` was checked against the number of axes.
        shape[axis] = n;
        Ok(mx::zeros_dtype(&shape, x.dtype())?)
    };
    let mut parts = Vec::with_capacity(3);
    if before > 0 {
        parts.push(zeros(before)?);
    }
    parts.push(x.clone());
    if after > 0 {
        parts.push(zeros(after)?);
    }
    Ok(mx::concatenate(&parts, axis as i32)?)
}

/// The integers `start..stop` as int32.
pub fn arange(start: i32, stop: i32) -> Result<Array> {
    Ok(mx::arange::<_, i32>(start, stop, 1)?)
}

/// Zeros in the type of `x`, the last axis of another size.
pub fn zeros(x: &Array, size: i32) -> Result<Array> {
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = size;
    }
    Ok(mx::zeros_dtype(&shape, x.dtype())?)
}

/// The numbers 0, 1, .. as float32.
pub fn range(n: i32) -> Result<Array> {
    crate::ops::to_f32(&arange(0, n)?)
}

/// Each token's true position, int32 [B, L].
pub fn positions(cx: &Pass<'_>, _ids: &Array) -> Result<Array> {
    cx.positions()
}

pub(crate) fn axis_of(x: &Array, axis: i32, what: &str) -> Result<usize> {
    let n = x.ndim() as i32;
    let at = if axis < 0 { axis + n } else { axis };
    if (0..n).contains(&at) {
        Ok(at as usize)
    } else {
        Err(Error::input(format!("{what}: axis"), format!("one of {n} axes"), axis.to_string()))
    }
}

fn divide(f: i32, n: i32, what: &str) -> Result<i32> {
    if n > 0 && f % n == 0 {
        Ok(f / n)
    } else {
        Err(Error::input(what, format!("{f} features to divide into heads"), format!("{n} heads")))
    }
}

/// The three axes of `x`.
pub(crate) fn shape3(x: &Array, what: &str) -> Result<[i32; 3]> {
    <[i32; 3]>::try_from(x.shape())
        .map_err(|_| Error::input(what, "three axes", format!("{:?}", x.shape())))
}

/// The four axes of `x`.
pub(crate) fn shape4(x: &Array, what: &str) -> Result<[i32; 4]> {
    <[i32; 4]>::try_from(x.shape())
        .map_err(|_| Error::input(what, "four axes", format!("{:?}", x.shape())))
}
