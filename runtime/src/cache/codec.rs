use mlx_rs::Array;

use super::planes::Planes;
use crate::array::{Quantisation, dequantize, quantize};
use crate::{Error, Result};

/// How stored arrays are written. Every codec works on single columns, so that planes can be moved
/// without it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Codec {
    /// As they came.
    Plain,
    /// Packed numbers, scales and biases of each array, in groups along the last axis.
    Affine(Quantisation),
}

impl Codec {
    /// The planes of the given arrays.
    pub fn encode(&self, arrays: &[&Array]) -> Result<Planes> {
        match self {
            Codec::Plain => Ok(arrays.iter().map(|&x| x.clone()).collect()),
            Codec::Affine(q) => {
                let mut planes = Vec::with_capacity(3 * arrays.len());
                for x in arrays {
                    let (packed, scales, biases) = quantize(x, *q)?;
                    planes.extend([packed, scales]);
                    planes.extend(biases);
                }
                Ok(planes)
            }
        }
    }

    /// The arrays that planes stand for.
    pub fn decode(&self, planes: &[Array]) -> Result<Vec<Array>> {
        match self {
            Codec::Plain => Ok(planes.to_vec()),
            Codec::Affine(q) => planes
                .chunks(3)
                .map(|triple| match triple {
                    [packed, scales, biases] => dequantize(packed, scales, Some(biases), *q, None),
                    _ => Err(Error::cache("planes of an affine storage come in threes")),
                })
                .collect(),
        }
    }
}
