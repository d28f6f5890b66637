//! Routers: which experts a token goes to, and with what weight.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::{Error, Result, ops};

/// Positions of the `k` largest entries of the last axis, uint32 [.., k].
///
/// Falling, ties to the lower position; `rising`: the largest last, ties to the higher position.
///
/// # Errors
/// When the axis has fewer than `k` entries.
pub fn top_k(scores: &Array, k: i32, rising: bool) -> Result<Array> {
    let n = scores.shape().last().copied().unwrap_or(0);
    if k < 1 || k > n {
        return Err(Error::input("top_k", format!("1 to {n} entries"), k.to_string()));
    }
    // A stable sort, so that every device breaks ties alike; there are few experts.
    if rising {
        ops::slice(&mx::argsort_axis(scores, -1)?, -1, n - k, n)
    } else {
        ops::slice(&mx::argsort_axis(ops::neg(scores)?, -1)?, -1, 0, k)
    }
}

/// Entries of the last axis at `index`: [.., E], [.., K] -> [.., K].
pub fn at_index(x: &Array, index: &Array) -> Result<Array> {
    ops::gather(x, index, -1)
}

/// Entries of a vector \[E\] by number, in the shape of `index`.
pub fn pick(table: &Array, index: &Array) -> Result<Array> {
    ops::take(table, index, 0)
}

/// Scores [.., E] with every group but the `kept` best set to zero.
///
/// Groups are `groups` equal runs of the axis; one is worth the sum of its two best scores.
///
/// # Errors
/// When the groups do not divide the axis, or `kept` is not from 1 to `groups`.
pub fn keep_groups(scores: &Array, groups: i32, kept: i32) -> Result<Array> {
    let shape = scores.shape().to_vec();
    let n = shape.last().copied().unwrap_or(0);
    if groups < 1 || n % groups != 0 || !(1..=groups).contains(&kept) {
        return Err(Error::input(
            "keep_groups",
            format!("groups that divide {n} scores, at most all of them kept"),
            format!("{kept} of {groups} groups"),
        ));
    }
    if kept == groups {
        return Ok(scores.clone());
    }
    let size = n / groups;
    let mut parts = shape.clone();
    parts.pop();
    parts.extend([groups, size]);
    let grouped = ops::reshape(scores, &parts)?;
    let best = ops::slice(&mx::sort_axis(&grouped, -1)?, -1, size - size.min(2), size)?;
    let worth = mx::sum_axis(best, -1, true)?;
    // [.., G, 1] -> the kept groups' numbers [.., kept, 1].
    let order = mx::argsort_axis(ops::neg(&worth)?, -2)?;
    let chosen = ops::slice(&order, -2, 0, kept)?;
    let none = mx::zeros_dtype(worth.shape(), mlx_rs::Dtype::Bool)?;
    let mask = mx::indexing::put_along_axis(none, chosen, Array::from_bool(true), -2)?;
    let zero = mx::zeros_dtype(&[], scores.dtype())?;
    ops::reshape(&ops::select(&mask, &grouped, &zero)?, &shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(x: &Array) -> Vec<u32> {
        let x = x.as_dtype(mlx_rs::Dtype::Uint32).unwrap();
        x.as_slice::<u32>().to_vec()
    }

    #[test]
    fn ties_go_to_the_lower_position_when_falling() {
        let scores = Array::from_slice(&[1.0_f32, 3.0, 3.0, 2.0, 3.0], &[1, 5]);
        assert_eq!(numbers(&top_k(&scores, 2, false).unwrap()), [1, 2]);
        assert_eq!(numbers(&top_k(&scores, 2, true).unwrap()), [2, 4]);
        assert!(top_k(&scores, 6, false).is_err());
    }

    #[test]
    fn only_the_best_groups_stay() {
        let scores = Array::from_slice(&[0.9_f32, 0.0, 0.5, 0.5, -0.1, 0.2], &[1, 6]);
        let kept = keep_groups(&scores, 3, 1).unwrap();
        assert_eq!(kept.as_slice::<f32>(), [0.0, 0.0, 0.5, 0.5, 0.0, 0.0]);
        let two = keep_groups(&scores, 3, 2).unwrap();
        assert_eq!(two.as_slice::<f32>(), [0.9, 0.0, 0.5, 0.5, 0.0, 0.0]);
        assert!(keep_groups(&scores, 4, 1).is_err());
    }
}
