//! Weights that no file holds: random ones to measure with, and bare shapes to ask a graph with.

use half::{bf16, f16};
use mlx_rs::{Array, random};
use specc_checkpoint::map::QuantParams;

use super::module::Weight;
use crate::array::quantize;
use crate::{Dtype, Error, Result, ops};

/// Random weights in the shapes that a configuration gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synthetic {
    /// The type of the weights: float32, float16 or bfloat16.
    pub dtype: Dtype,
    /// How matrices are packed, where their rows divide into groups.
    pub quantisation: Option<QuantParams>,
    /// Makes the weights the same each time.
    pub seed: u64,
}

impl Synthetic {
    /// Vectors are ones, as norms like them; everything larger is small and normal.
    pub(super) fn tensor(&self, name: &str, shape: &[i64]) -> Result<Array> {
        let dims = dims(name, shape)?;
        let array = if dims.len() < 2 {
            mlx_rs::ops::ones_dtype(&dims, self.dtype)?
        } else {
            let key = random::key(self.seed ^ fingerprint(name))?;
            let scale = 0.02;
            match self.dtype {
                Dtype::Bfloat16 => random::normal::<bf16>(&dims[..], None, scale, &key)?,
                Dtype::Float16 => random::normal::<f16>(&dims[..], None, scale, &key)?,
                _ => ops::cast(&random::normal::<f32>(&dims[..], None, scale, &key)?, self.dtype)?,
            }
        };
        array.eval()?;
        Ok(array)
    }

    pub(super) fn weight(&self, name: &str, shape: &[i64]) -> Result<Weight> {
        let array = self.tensor(name, shape)?;
        let columns = shape.last().copied().unwrap_or(0);
        match self.quantisation {
            Some(q) if columns % i64::from(q.group_size) == 0 => {
                let (weight, scales, biases) = quantize(&array, q)?;
                mlx_rs::transforms::eval([&weight, &scales].into_iter().chain(&biases))?;
                Ok(Weight::Packed { weight, scales, biases, quantisation: q })
            }
            _ => Ok(Weight::Dense { array, kind: self.dtype }),
        }
    }
}

/// An array of that shape whose elements nobody will ask for.
pub(super) fn shape_only(shape: &[i32], dtype: Dtype) -> Result<Array> {
    Ok(mlx_rs::ops::zeros_dtype(shape, dtype)?)
}

fn dims(name: &str, shape: &[i64]) -> Result<Vec<i32>> {
    let dim = |&d: &i64| match i32::try_from(d) {
        Ok(d) if d > 0 => Ok(d),
        _ => Err(Error::Tensor {
            tensor: name.to_owned(),
            expected: "axes of 1 to 2^31 - 1".into(),
            found: format!("{shape:?}"),
        }),
    };
    shape.iter().map(dim).collect()
}

/// A number of a name: FNV-1a.
fn fingerprint(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
