use mlx_rs::Array;
use specc_checkpoint::config::Mode;
use specc_checkpoint::map::QuantParams;

use crate::array::{QuantMode, Quantisation};
use crate::{Dtype, Error, Result};

/// A matrix, or a stack of them, [.., out, in].
#[derive(Debug, Clone)]
pub enum Weight {
    /// Floats.
    Dense {
        /// The numbers.
        array: Array,
        /// Their type in the checkpoint, which results take; a wider array is only for the device.
        kind: Dtype,
    },
    /// Packed numbers with scales, and biases in the affine mode.
    Packed {
        /// Words of 32 bits.
        weight: Array,
        /// One a group.
        scales: Array,
        /// One a group.
        biases: Option<Array>,
        /// How they are packed.
        quantisation: Quantisation,
    },
}

impl Weight {
    /// The shape of the dense weight.
    pub fn shape(&self) -> Vec<i64> {
        match self {
            Weight::Dense { array, .. } => array.shape().iter().map(|&d| i64::from(d)).collect(),
            Weight::Packed { scales, quantisation, .. } => {
                let mut shape: Vec<i64> = scales.shape().iter().map(|&d| i64::from(d)).collect();
                if let Some(last) = shape.last_mut() {
                    *last *= i64::from(quantisation.group_size);
                }
                shape
            }
        }
    }
}

impl TryFrom<QuantParams> for Quantisation {
    type Error = Error;

    fn try_from(params: QuantParams) -> Result<Self> {
        let int = |n: u32| {
            i32::try_from(n).map_err(|_| Error::Weights(format!("quantisation of {n} bits")))
        };
        let mode = match params.mode {
            Mode::Affine => QuantMode::Affine,
            Mode::Mxfp4 => QuantMode::Mxfp4,
            Mode::Mxfp8 => QuantMode::Mxfp8,
            Mode::Nvfp4 => QuantMode::Nvfp4,
        };
        Ok(Quantisation { bits: int(params.bits)?, group_size: int(params.group_size)?, mode })
    }
}
