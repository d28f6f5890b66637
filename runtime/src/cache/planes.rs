//! Stored arrays that grow along one axis, moved without regard to what they mean.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::{Error, Result, array, ops};

/// Arrays of equal batch and sequence lengths, such as keys and values, or the packed numbers,
/// scales and biases of each.
pub(super) type Planes = Vec<Array>;

/// The columns `start..stop` of an array; a view.
pub(super) fn columns(x: &Array, axis: usize, start: i32, stop: i32) -> Result<Array> {
    let mut from = vec![0; x.ndim()];
    let mut to = x.shape().to_vec();
    // Planes always have the axis: they are made with it.
    (from[axis], to[axis]) = (start, stop);
    array::slice(x, &from, &to)
}

/// The columns `start..stop` of each plane.
pub(super) fn view(planes: &[Array], axis: usize, start: i32, stop: i32) -> Result<Planes> {
    planes.iter().map(|x| columns(x, axis, start, stop)).collect()
}

/// Writes `new` into `planes` from column `at` on, in place where MLX can.
pub(super) fn write(planes: &mut Planes, new: &[Array], axis: usize, at: i32) -> Result<()> {
    // A plane leaves the list while it is written: the update must hold its only reference.
    for (i, new) in new.iter().enumerate() {
        let Some(slot) = planes.get_mut(i) else { return Err(Error::cache("planes do not agree")) };
        let old = std::mem::replace(slot, Array::from_bool(false));
        let mut from = vec![0; new.ndim()];
        let mut to = new.shape().to_vec();
        to[axis] += at;
        from[axis] = at;
        *slot = array::slice_update(old, new, &from, &to)?;
    }
    Ok(())
}

/// `plane`, cut to its first `len` columns, followed by zeros up to `capacity`.
pub(super) fn grown(plane: &Array, axis: usize, len: i32, capacity: i32) -> Result<Array> {
    let mut shape = plane.shape().to_vec();
    shape[axis] = capacity - len;
    let zeros = mx::zeros_dtype(&shape, plane.dtype())?;
    if len == 0 {
        return Ok(zeros);
    }
    let kept =
        if plane.dim(axis as i32) == len { plane.clone() } else { columns(plane, axis, 0, len)? };
    ops::concat(&[&kept, &zeros], axis as i32)
}

/// Columns in another order or fewer of them.
pub(super) fn pick(planes: &[Array], axis: usize, columns: &[i32]) -> Result<Planes> {
    let index = array::from_i32s(columns);
    planes.iter().map(|x| ops::take(x, &index, axis as i32)).collect()
}

/// Planes one after the other along the sequence.
pub(super) fn joined(a: &[Array], b: &[Array], axis: usize) -> Result<Planes> {
    a.iter().zip(b).map(|(a, b)| ops::concat(&[a, b], axis as i32)).collect()
}

/// Rows by number.
pub(super) fn rows(planes: &[Array], keep: &[i32]) -> Result<Planes> {
    pick(planes, 0, keep)
}

/// Each row's columns moved right by `shifts[b]`; what falls off at the right comes in at the left.
pub(super) fn rolled(planes: &[Array], axis: usize, shifts: &[i32]) -> Result<Planes> {
    let n = planes.first().map_or(0, |x| x.dim(axis as i32));
    let index: Vec<i32> = shifts
        .iter()
        .flat_map(|&shift| (0..n).map(move |i| (i - shift).rem_euclid(n.max(1))))
        .collect();
    picked_by_row(planes, axis, shifts.len(), &index)
}

/// Columns by number, for each row its own; `index` lists them row by row.
pub(super) fn picked_by_row(
    planes: &[Array],
    axis: usize,
    rows: usize,
    index: &[i32],
) -> Result<Planes> {
    let one = |x: &Array| {
        let mut shape = vec![1; x.ndim()];
        (shape[0], shape[axis]) = (rows as i32, (index.len() / rows.max(1)) as i32);
        ops::gather(x, &Array::from_slice(index, &shape), axis as i32)
    };
    planes.iter().map(one).collect()
}
