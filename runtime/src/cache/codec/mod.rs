//! How stored arrays are written.
//!
//! Every code works along the last axis of single columns, so that planes are moved without it.

mod packing;
mod turbo;

use mlx_rs::Array;
use specc_checkpoint::map::QuantParams;

use super::planes::Planes;
use crate::array::{dequantize, dtype_bytes, quantize};
use crate::{Dtype, Error, Result};

#[cfg(test)]
pub(super) use turbo::encode_rotated;
pub(super) use turbo::unrotate;

/// MLX's affine quantisation; bits and groups are positive.
fn affine(bits: i32, group_size: i32) -> QuantParams {
    QuantParams::affine(bits as u32, group_size as u32)
}

/// How one of the arrays that a layer stores is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Code {
    /// As it came.
    Plain,
    /// Packed numbers, scales and biases of groups.
    Affine {
        /// Bits of a number.
        bits: i32,
        /// Numbers that share a scale.
        group_size: i32,
    },
    /// Indices, scales and zeros of groups of 32.
    TurboKeys {
        /// 2, 4, 5 or 8.
        bits: u32,
    },
    /// Indices of a rotated vector's quantiser, and scales of groups of 32.
    TurboValues {
        /// 2, 3, 4, 5 or 8.
        bits: u32,
    },
}

impl Code {
    /// Arrays that one array becomes.
    pub(super) fn planes(self) -> usize {
        match self {
            Code::Plain => 1,
            Code::Affine { .. } | Code::TurboKeys { .. } => 3,
            Code::TurboValues { .. } => 2,
        }
    }

    /// MLX's quantisation, where it is the code.
    pub(super) fn quantisation(self) -> Option<QuantParams> {
        match self {
            Code::Affine { bits, group_size } => Some(affine(bits, group_size)),
            _ => None,
        }
    }

    /// # Errors
    /// When vectors of `width` numbers cannot be written so.
    pub(super) fn check(self, width: i32) -> Result<()> {
        let expected = match self {
            Code::Plain => return Ok(()),
            Code::Affine { bits, group_size } => {
                if width % group_size == 0 && (width * bits) % 32 == 0 {
                    return Ok(());
                }
                format!("a multiple of {group_size}")
            }
            Code::TurboKeys { .. } | Code::TurboValues { .. } => {
                if turbo::HEADS.contains(&width) {
                    return Ok(());
                }
                "64, 128, 256 or 512".to_owned()
            }
        };
        Err(Error::input("size of stored vectors", expected, width.to_string()))
    }

    /// Bytes of a vector of `width` numbers that come as `dtype`.
    pub(super) fn bytes(self, width: usize, dtype: Dtype) -> usize {
        let item = dtype_bytes(dtype);
        let packed = |bits: u32| width * bits as usize / 8;
        match self {
            Code::Plain => width * item,
            // Bits and groups are positive.
            Code::Affine { bits, group_size } => {
                packed(bits as u32) + 2 * item * (width / group_size as usize)
            }
            Code::TurboKeys { bits } => packed(bits) + 4 * (width / turbo::GROUP as usize),
            Code::TurboValues { bits } => packed(bits) + 2 * (width / turbo::GROUP as usize),
        }
    }

    /// Last axes and types of the planes of vectors of `width` numbers that come as `dtype`.
    pub(super) fn layout(self, width: i32, dtype: Dtype) -> Vec<(i32, Dtype)> {
        let packed = |bits: u32| width * bits as i32 / 8;
        let groups = width / turbo::GROUP;
        match self {
            Code::Plain => vec![(width, dtype)],
            Code::Affine { bits, group_size } => {
                let scales = (width / group_size, dtype);
                vec![(width * bits / 32, Dtype::Uint32), scales, scales]
            }
            Code::TurboKeys { bits } => {
                let index = if bits == 8 { Dtype::Int8 } else { Dtype::Uint8 };
                vec![(packed(bits), index), (groups, Dtype::Float16), (groups, Dtype::Float16)]
            }
            Code::TurboValues { bits } => {
                vec![(packed(bits), Dtype::Uint8), (groups, Dtype::Float16)]
            }
        }
    }

    fn encode(self, x: &Array, planes: &mut Planes) -> Result<()> {
        match self {
            Code::Plain => planes.push(x.clone()),
            Code::Affine { bits, group_size } => {
                let (packed, scales, biases) = quantize(x, affine(bits, group_size))?;
                planes.extend([packed, scales]);
                planes.extend(biases);
            }
            Code::TurboKeys { bits } => planes.extend(turbo::encode_keys(x, bits)?),
            Code::TurboValues { bits } => planes.extend(turbo::encode_values(x, bits)?),
        }
        Ok(())
    }

    /// The array that these planes stand for; values of the turbo code stay `rotated` if asked to.
    pub(super) fn decode(self, planes: &[Array], rotated: bool) -> Result<Array> {
        match (self, planes) {
            (Code::Plain, [x]) => Ok(x.clone()),
            (Code::Affine { bits, group_size }, [packed, scales, biases]) => {
                let q = affine(bits, group_size);
                dequantize(packed, scales, Some(biases), q, None)
            }
            (Code::TurboKeys { bits }, [index, scales, zeros]) => {
                turbo::decode_keys(index, scales, zeros, bits)
            }
            (Code::TurboValues { bits }, [index, scales]) => {
                turbo::decode_values(index, scales, bits, rotated)
            }
            _ => Err(Error::cache("planes do not fit their code")),
        }
    }
}

/// The codes of the arrays that a layer stores, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Codes(pub(super) Vec<Code>);

impl Codes {
    /// All arrays as they came.
    pub(super) fn plain(arrays: usize) -> Codes {
        Codes(vec![Code::Plain; arrays])
    }

    /// The planes of the given arrays.
    pub(super) fn encode(&self, arrays: &[&Array]) -> Result<Planes> {
        if arrays.len() > self.0.len() {
            return Err(Error::cache(format!(
                "a layer stores {} arrays and was given {}",
                self.0.len(),
                arrays.len()
            )));
        }
        let mut planes = Vec::with_capacity(3 * arrays.len());
        for (code, x) in self.0.iter().zip(arrays) {
            code.encode(x, &mut planes)?;
        }
        Ok(planes)
    }

    /// The arrays that planes stand for.
    pub(super) fn decode(&self, planes: &[Array]) -> Result<Vec<Array>> {
        self.split(planes)?.into_iter().map(|(code, planes)| code.decode(planes, false)).collect()
    }

    /// Each code with its planes.
    pub(super) fn split<'p>(&self, planes: &'p [Array]) -> Result<Vec<(Code, &'p [Array])>> {
        let wrong = || Error::cache("planes do not fit their codes");
        let mut rest = planes;
        let mut parts = Vec::with_capacity(self.0.len());
        for code in &self.0 {
            // Trailing arrays may be absent.
            if rest.is_empty() {
                break;
            }
            let (own, others) = rest.split_at_checked(code.planes()).ok_or_else(wrong)?;
            parts.push((*code, own));
            rest = others;
        }
        if rest.is_empty() { Ok(parts) } else { Err(wrong()) }
    }
}
