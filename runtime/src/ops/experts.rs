//! Moving tokens to their experts and back.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use crate::pass::Pass;
use crate::{Result, array, ops};

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
}
