//! A linear layer, and the product of a row with a dense or packed matrix.

use mlx_rs::Array;
use mlx_rs::ops as mx;
use specc_checkpoint::map::QuantParams;

use crate::array::quantized_matmul;
use crate::weights::{Loader, Weight};
use crate::{Dtype, Result, ops};

/// `x Wᵀ + b`: [.., in] -> [.., out], dense or quantised as the checkpoint has it.
#[derive(Debug)]
pub struct Linear {
    matrix: Matrix,
    bias: Option<Array>,
}

impl Linear {
    /// `NAME.weight` [output, input] and, with `bias`, `NAME.bias` \[output\].
    pub fn load(
        ld: &mut Loader<'_>,
        name: &str,
        input: i64,
        output: i64,
        bias: bool,
    ) -> Result<Self> {
        let matrix = Matrix::new(ld.weight(name, &[output, input])?)?;
        let bias = if bias { Some(ld.tensor(&format!("{name}.bias"), &[output])?) } else { None };
        Ok(Linear { matrix, bias })
    }

    /// [.., in] -> [.., out]
    pub fn forward(&self, x: &Array) -> Result<Array> {
        match (&self.matrix, &self.bias) {
            (matrix, None) => matrix.product(x),
            (Matrix::Dense { transposed, kind: None }, Some(bias)) => {
                Ok(mx::addmm(bias, x, transposed, None, None)?)
            }
            (matrix, Some(bias)) => ops::add(&matrix.product(x)?, bias),
        }
    }
}

/// A weight [.., out, in], ready for products with its transpose.
#[derive(Debug)]
pub(super) enum Matrix {
    /// `kind` is set when results take another type than the product has.
    Dense { transposed: Array, kind: Option<Dtype> },
    /// Packed numbers.
    Packed { weight: Array, scales: Array, biases: Option<Array>, quantisation: QuantParams },
}

impl Matrix {
    pub fn new(weight: Weight) -> Result<Matrix> {
        Ok(match weight {
            Weight::Dense { array, kind } => Matrix::Dense {
                transposed: ops::swap(&array, -1, -2)?,
                kind: (kind != array.dtype()).then_some(kind),
            },
            Weight::Packed { weight, scales, biases, quantisation } => {
                Matrix::Packed { weight, scales, biases, quantisation }
            }
        })
    }

    /// `x Wᵀ`
    pub fn product(&self, x: &Array) -> Result<Array> {
        match self {
            Matrix::Dense { transposed, kind } => {
                let y = ops::matmul(x, transposed)?;
                narrowed(y, x, *kind)
            }
            Matrix::Packed { weight, scales, biases, quantisation } => {
                quantized_matmul(x, weight, scales, biases.as_ref(), true, *quantisation)
            }
        }
    }
}

/// The result in the type that a product of `x` with a weight of `kind` has.
pub(super) fn narrowed(y: Array, x: &Array, kind: Option<Dtype>) -> Result<Array> {
    match kind {
        Some(kind) if kind == x.dtype() => ops::cast(&y, kind),
        _ => Ok(y),
    }
}
