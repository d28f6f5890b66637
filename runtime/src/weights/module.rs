//! A weight as modules hold it: dense or packed.

use mlx_rs::Array;
use specc_checkpoint::map::QuantParams;

use crate::Dtype;

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
        quantisation: QuantParams,
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
