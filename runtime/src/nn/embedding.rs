//! Tables of token vectors: rows by id, as the head, and the mean under probabilities.

use mlx_rs::Array;

use super::linear::Matrix;
use crate::array::{dequantize, quantized_matmul};
use crate::weights::{Loader, Weight};
use crate::{Result, ops};

/// Rows of a table by number.
#[derive(Debug)]
pub struct Embedding {
    table: Weight,
}

impl Embedding {
    /// `NAME.weight` [count, dim].
    pub fn load(ld: &mut Loader<'_>, name: &str, count: i64, dim: i64) -> Result<Self> {
        Ok(Embedding { table: ld.weight(name, &[count, dim])? })
    }

    /// ids [..S] -> [..S, dim]. Numbers must lie below `count`.
    pub fn forward(&self, ids: &Array) -> Result<Array> {
        match &self.table {
            Weight::Dense { array, kind } => ops::cast(&ops::take(array, ids, 0)?, *kind),
            Weight::Packed { weight, scales, biases, quantisation } => {
                let weight = ops::take(weight, ids, 0)?;
                let scales = ops::take(scales, ids, 0)?;
                let biases = biases.as_ref().map(|b| ops::take(b, ids, 0)).transpose()?;
                dequantize(&weight, &scales, biases.as_ref(), *quantisation, None)
            }
        }
    }
}

/// `x Eᵀ` with an embedding's table: the tied head.
#[derive(Debug)]
pub struct Unembedding {
    matrix: Matrix,
}

impl Unembedding {
    /// `NAME.weight` [count, dim], shared with the embedding of that name.
    pub fn load(ld: &mut Loader<'_>, name: &str, count: i64, dim: i64) -> Result<Self> {
        Ok(Unembedding { matrix: Matrix::new(ld.weight(name, &[count, dim])?)? })
    }

    /// [.., dim] -> [.., count]
    pub fn forward(&self, x: &Array) -> Result<Array> {
        self.matrix.product(x)
    }
}

/// Rows of an embedding's table weighed by probabilities.
#[derive(Debug)]
pub struct MeanEmbedding {
    table: Weight,
}

impl MeanEmbedding {
    /// `NAME.weight` [count, dim], shared with the embedding of that name.
    pub fn load(ld: &mut Loader<'_>, name: &str, count: i64, dim: i64) -> Result<Self> {
        Ok(MeanEmbedding { table: ld.weight(name, &[count, dim])? })
    }

    /// `p E`: [.., count] -> [.., dim].
    pub fn forward(&self, p: &Array) -> Result<Array> {
        match &self.table {
            Weight::Dense { array, kind } => ops::cast(&ops::matmul(p, array)?, *kind),
            Weight::Packed { weight, scales, biases, quantisation } => {
                quantized_matmul(p, weight, scales, biases.as_ref(), false, *quantisation)
            }
        }
    }
}
