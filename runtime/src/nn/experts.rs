//! Stacks of matrices: one of each expert, and one of each head.

use mlx_rs::Array;
use mlx_rs::ops as mx;

use super::linear::narrowed;
use crate::array::{gather_qmm, quantized_matmul};
use crate::pass::Pass;
use crate::weights::{Loader, Weight};
use crate::{Dtype, Result, ops};

/// A stack of linear layers, one an expert.
#[derive(Debug)]
pub struct ExpertLinear {
    weight: Weight,
    bias: Option<Array>,
    /// See [`Policy`](crate::backend::Policy).
    block: Option<i32>,
}

impl ExpertLinear {
    /// `NAME.weight` [experts, output, input] and, with `bias`, `NAME.bias` [experts, output].
    ///
    /// # Errors
    /// When one is missing or of another shape.
    pub fn load(
        ld: &mut Loader<'_>,
        name: &str,
        experts: i64,
        input: i64,
        output: i64,
        bias: bool,
    ) -> Result<Self> {
        let weight = ld.weight(name, &[experts, output, input])?;
        let bias =
            if bias { Some(ld.tensor(&format!("{name}.bias"), &[experts, output])?) } else { None };
        Ok(ExpertLinear { weight, bias, block: ld.policy().expert_block })
    }

    /// Rows [N, in], each through the layer that `expert` \[N\] says -> [N, out].
    ///
    /// # Errors
    /// When the shapes do not agree.
    pub fn forward(&self, cx: &Pass<'_>, x: &Array, expert: &Array) -> Result<Array> {
        let sorted = cx.grouped();
        let y = match &self.weight {
            Weight::Dense { array, kind } => {
                let rows = alike(x, array)?;
                let matrices = ops::swap(array, -1, -2)?;
                let y = match self.block.filter(|_| sorted) {
                    Some(size) => ops::product_by_blocks(&rows, &matrices, expert, size)?,
                    None => {
                        let rows = ops::expand(&rows, 1)?;
                        let y = mx::gather_mm(&rows, matrices, None, expert, sorted)?;
                        ops::squeeze(&y, 1)?
                    }
                };
                narrowed(y, x, widened(array, *kind))?
            }
            Weight::Packed { weight, scales, biases, quantisation } => {
                let (rows, biases) = (ops::expand(x, 1)?, biases.as_ref());
                let y = gather_qmm(&rows, weight, scales, biases, expert, sorted, *quantisation)?;
                ops::squeeze(&y, 1)?
            }
        };
        match &self.bias {
            Some(bias) => ops::add(&y, &ops::take(bias, expert, 0)?),
            None => Ok(y),
        }
    }
}

/// One matrix a head.
#[derive(Debug)]
pub struct MultiLinear {
    weight: Weight,
}

impl MultiLinear {
    /// `NAME.weight` of the shape [heads, rows, columns].
    ///
    /// # Errors
    /// When it is missing or of another shape.
    pub fn load(
        ld: &mut Loader<'_>,
        name: &str,
        heads: i64,
        rows: i64,
        columns: i64,
    ) -> Result<Self> {
        Ok(MultiLinear { weight: ld.weight(name, &[heads, rows, columns])? })
    }

    #[cfg(test)]
    pub(crate) fn of(array: Array) -> Self {
        let kind = array.dtype();
        MultiLinear { weight: Weight::Dense { array, kind } }
    }

    /// `x Wᵀ` a head: [B, heads or 1, L, columns] -> [B, heads, L, rows].
    ///
    /// # Errors
    /// When the shapes do not agree.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        self.product(x, true)
    }

    /// `x W` a head: [B, heads or 1, L, rows] -> [B, heads, L, columns].
    ///
    /// # Errors
    /// When the shapes do not agree.
    pub fn reversed(&self, x: &Array) -> Result<Array> {
        self.product(x, false)
    }

    fn product(&self, x: &Array, transpose: bool) -> Result<Array> {
        match &self.weight {
            Weight::Dense { array, kind } => {
                let y = if transpose {
                    ops::matmul(x, &ops::swap(array, -1, -2)?)?
                } else {
                    ops::matmul(x, array)?
                };
                narrowed(y, x, widened(array, *kind))
            }
            Weight::Packed { weight, scales, biases, quantisation } => {
                quantized_matmul(x, weight, scales, biases.as_ref(), transpose, *quantisation)
            }
        }
    }
}

/// The type in the checkpoint of a weight that the device made wider.
fn widened(array: &Array, kind: Dtype) -> Option<Dtype> {
    (kind != array.dtype()).then_some(kind)
}

/// `x` in the wider type of the two: gathered products do not promote.
fn alike(x: &Array, array: &Array) -> Result<Array> {
    if array.dtype() == Dtype::Float32 { ops::to_f32(x) } else { Ok(x.clone()) }
}
