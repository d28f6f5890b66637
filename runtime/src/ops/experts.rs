//! Moving tokens to their experts and back.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::pass::Pass;
use crate::{Dtype, Result, array, ops};

/// Each token once for each of its experts.
///
/// x: [B, L, F]; index: [B, L, K] -> rows [B·L·K, F], the expert of each row, and for each token
/// and choice in order the row that holds it.
///
/// # Errors
/// When the shapes do not agree.
pub fn dispatch(cx: &Pass<'_>, x: &Array, index: &Array) -> Result<(Array, Array, Array)> {
    arrange(x, index, cx.grouped())
}

fn arrange(x: &Array, index: &Array, grouped: bool) -> Result<(Array, Array, Array)> {
    let [b, l, k] = ops::shape3(index, "chosen experts")?;
    let pairs = b * l * k;
    let rows = ops::reshape(x, &[b * l, x.dim(-1)])?;
    let experts = ops::reshape(index, &[pairs])?;
    if grouped {
        let order = mx::argsort_axis(&experts, 0)?;
        let place = mx::argsort_axis(&order, 0)?;
        let token = ops::floor_div(&order, &array::from_i32s(&[k]).as_dtype(order.dtype())?)?;
        Ok((ops::take(&rows, &token, 0)?, ops::take(&experts, &order, 0)?, place))
    } else {
        let copies = ops::broadcast_to(&ops::expand(&rows, 1)?, &[b * l, k, x.dim(-1)])?;
        Ok((ops::reshape(&copies, &[pairs, x.dim(-1)])?, experts, ops::arange(0, pairs)?))
    }
}

/// Rows [B·L·K, F] of [`dispatch`] back to [B, L, K, F], K in the order of `index` [B, L, K].
///
/// # Errors
/// When the shapes do not agree.
pub fn collect(cx: &Pass<'_>, index: &Array, y: &Array, place: &Array) -> Result<Array> {
    let [b, l, k] = ops::shape3(index, "chosen experts")?;
    let shape = [b, l, k, y.dim(-1)];
    if cx.grouped() {
        ops::reshape(&ops::take(y, place, 0)?, &shape)
    } else {
        ops::reshape(y, &shape)
    }
}

/// Each row through the matrix of its expert, rows of one expert being beside one another: blocks of
/// `size` rows of one expert are multiplied as matrices, the last of an expert filled up.
///
/// x: [N, I]; matrices: [experts, I, O]; expert: \[N\] -> [N, O].
///
/// # Errors
/// When the shapes do not agree.
pub(crate) fn product_by_blocks(
    x: &Array,
    matrices: &Array,
    expert: &Array,
    size: i32,
) -> Result<Array> {
    let (rows, experts) = (x.dim(0), matrices.dim(0));
    // Each expert that has rows fills up one block at most.
    let most = (rows / size + rows.min(experts)).min(rows);
    let column = |n: i32| ops::expand(&ops::arange(0, n)?, 1);
    let count = |mask: &Array, axis: i32| ops::sum(&ops::cast(mask, Dtype::Int32)?, axis, false);
    let expert = ops::cast(expert, Dtype::Int32)?;
    let own = count(&ops::equal(&column(experts)?, &expert)?, 1)?;
    let first_row = ops::sub(&ops::cumsum(&own, 0)?, &own)?;
    let whole = array::from_i32s(&[size]);
    let filled = ops::add(&own, &array::from_i32s(&[size - 1]))?;
    let blocks = ops::floor_div(&filled, &whole)?;
    let last_block = ops::cumsum(&blocks, 0)?;
    let first_block = ops::sub(&last_block, &blocks)?;
    // The expert of each block; blocks behind the last one compute what nobody takes.
    let owner = count(&ops::less_equal(&last_block, &column(most)?)?, 1)?;
    let owner = ops::minimum(&owner, &array::from_i32s(&[experts - 1]))?;
    let of = |x: &Array, index: &Array| ops::take(x, index, 0);
    let start = ops::sub(&ops::arange(0, most)?, &of(&first_block, &owner)?)?;
    let start = ops::add(&of(&first_row, &owner)?, &ops::mul(&start, &whole)?)?;
    let from = ops::add(&ops::expand(&start, 1)?, &ops::arange(0, size)?)?;
    let from = ops::minimum(&from, &array::from_i32s(&[rows - 1]))?;
    let owner = ops::cast(&owner, Dtype::Uint32)?;
    let y = mx::gather_mm(of(x, &from)?, matrices, None, &owner, false)?;
    let place = ops::sub(&ops::arange(0, rows)?, &of(&first_row, &expert)?)?;
    let place = ops::add(&ops::mul(&of(&first_block, &expert)?, &whole)?, &place)?;
    of(&ops::reshape(&y, &[most * size, y.dim(-1)])?, &place)
}

/// Σ_k y_k · weight_k in the type of `y`: [.., K, F], [.., K] -> [.., F].
pub fn weighted_sum(y: &Array, weights: &Array) -> Result<Array> {
    let products = ops::mul(y, &ops::expand(weights, -1)?)?;
    ops::cast_like(&mx::sum_axis(products, -2, false)?, y)
}

/// (clip(up, ±limit) + 1) · g · sigmoid(alpha · g) with g = min(gate, limit).
pub fn clamped_swiglu(gate: &Array, up: &Array, alpha: f32, limit: f32) -> Result<Array> {
    let gate = ops::minimum(gate, &array::scalar(limit, gate.dtype()))?;
    let up = ops::add_scalar(&ops::clip(up, -limit, limit)?, 1.0)?;
    let gated = ops::mul(&gate, &ops::sigmoid(&ops::mul_scalar(&gate, alpha)?)?)?;
    ops::mul(&up, &gated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_rows_are_the_same_rows() {
        let x = Array::from_slice(&[0.0_f32, 0.5, 1.0, 1.5, 2.0, 2.5], &[1, 3, 2]);
        let index = Array::from_slice(&[3_u32, 1, 0, 3, 1, 0], &[1, 3, 2]);
        let [plain, sorted] = [false, true].map(|g| arrange(&x, &index, g).unwrap());
        assert_eq!(plain.1.as_slice::<u32>(), [3, 1, 0, 3, 1, 0]);
        assert_eq!(sorted.1.as_slice::<u32>(), [0, 0, 1, 1, 3, 3]);
        let back = |(rows, experts, place): &(Array, Array, Array)| {
            let rows = ops::take(rows, place, 0).unwrap();
            let experts = ops::take(experts, place, 0).unwrap();
            (rows.as_slice::<f32>().to_vec(), experts.as_slice::<u32>().to_vec())
        };
        assert_eq!(back(&plain), back(&sorted));
    }

    #[test]
    fn blocks_of_one_expert_give_the_products_of_rows() {
        let noise = |shape: &[i32], seed: u64| {
            let key = mlx_rs::random::key(seed).unwrap();
            mlx_rs::random::normal::<f32>(shape, None, None, Some(&key)).unwrap()
        };
        // Experts without rows, of one row, of a whole block, of more.
        let sorted = [0_u32, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 6];
        for (experts, expert) in [(8, &sorted[..]), (7, &sorted[1..9]), (7, &sorted[14..])] {
            let n = expert.len() as i32;
            let (x, w) = (noise(&[n, 3], 1), noise(&[experts, 3, 5], 2));
            let expert = Array::from_slice(expert, &[n]);
            let rows = ops::expand(&x, 1).unwrap();
            let expected = mx::gather_mm(rows, &w, None, &expert, false).unwrap();
            let expected = ops::squeeze(&expected, 1).unwrap();
            for size in [1, 4, 32] {
                let y = product_by_blocks(&x, &w, &expert, size).unwrap();
                assert_eq!(y.shape(), expected.shape());
                let (y, expected) = (y.as_slice::<f32>(), expected.as_slice::<f32>());
                let worst = y.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(worst < 1e-5, "{experts} experts, blocks of {size}: {worst}");
            }
        }
    }
}
