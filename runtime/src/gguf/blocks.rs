//! Block types: what they are called, how large they are, and what their bits mean.
//!
//! Three kinds: plain floats; blocks whose values are `scale · q + bias` in groups of 32, which are
//! MLX's affine quantisation in another order of bits; and the rest, which only turn into floats.

use std::fmt;

use half::{bf16, f16};

use super::lattice;

/// How the values of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the format's own name")]
#[expect(non_camel_case_types, reason = "each variant is the format's own name")]
pub enum BlockType {
    F32,
    F16,
    BF16,
    F64,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    IQ1_S,
    IQ1_M,
    IQ2_XXS,
    IQ2_XS,
    IQ2_S,
    IQ3_XXS,
    IQ3_S,
    IQ4_NL,
    IQ4_XS,
    TQ1_0,
    TQ2_0,
    MXFP4,
}

use BlockType as T;

/// Type, code, elements and bytes of a block.
const TABLE: [(BlockType, u32, u64, u64); 26] = [
    (T::F32, 0, 1, 4),
    (T::F16, 1, 1, 2),
    (T::BF16, 30, 1, 2),
    (T::F64, 28, 1, 8),
    (T::Q4_0, 2, 32, 18),
    (T::Q4_1, 3, 32, 20),
    (T::Q5_0, 6, 32, 22),
    (T::Q5_1, 7, 32, 24),
    (T::Q8_0, 8, 32, 34),
    (T::Q2_K, 10, 256, 84),
    (T::Q3_K, 11, 256, 110),
    (T::Q4_K, 12, 256, 144),
    (T::Q5_K, 13, 256, 176),
    (T::Q6_K, 14, 256, 210),
    (T::IQ1_S, 19, 256, 50),
    (T::IQ1_M, 29, 256, 56),
    (T::IQ2_XXS, 16, 256, 66),
    (T::IQ2_XS, 17, 256, 74),
    (T::IQ2_S, 22, 256, 82),
    (T::IQ3_XXS, 18, 256, 98),
    (T::IQ3_S, 21, 256, 110),
    (T::IQ4_NL, 20, 32, 18),
    (T::IQ4_XS, 23, 256, 136),
    (T::TQ1_0, 34, 256, 54),
    (T::TQ2_0, 35, 256, 66),
    (T::MXFP4, 39, 32, 17),
];

/// A group of MLX's affine quantisation: `scale · code + bias`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Group {
    /// Codes in element order.
    pub codes: [u8; 32],
    /// Step.
    pub scale: f32,
    /// Value of code 0.
    pub bias: f32,
}

impl BlockType {
    /// The type of this code; none for codes that are unknown or hold no weights.
    pub fn from_code(code: u32) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == code).map(|row| row.0)
    }

    fn row(self) -> (u64, u64) {
        TABLE.iter().find(|row| row.0 == self).map_or((1, 4), |row| (row.2, row.3))
    }

    /// Elements in a block.
    pub fn elements(self) -> u64 {
        self.row().0
    }

    /// Bytes of a block.
    pub fn bytes(self) -> u64 {
        self.row().1
    }

    /// Bits of a code where MLX's affine quantisation holds the values exactly.
    pub(super) fn affine_bits(self) -> Option<u32> {
        match self {
            T::Q4_0 | T::Q4_1 | T::Q4_K => Some(4),
            T::Q5_0 | T::Q5_1 | T::Q5_K => Some(5),
            T::Q8_0 => Some(8),
            _ => None,
        }
    }

    /// The groups of 32 of one block of an affine type; none for other types.
    pub(super) fn groups(self, block: &[u8], mut each: impl FnMut(&Group)) {
        match self {
            T::Q4_0 => each(&low_bits(half_at(block, 0), None, 8.0, tail(block, 2), None)),
            T::Q4_1 => {
                let m = Some(half_at(block, 2));
                each(&low_bits(half_at(block, 0), m, 0.0, tail(block, 4), None));
            }
            T::Q5_0 => {
                let high = Some(word_at(block, 2));
                each(&low_bits(half_at(block, 0), None, 16.0, tail(block, 6), high));
            }
            T::Q5_1 => {
                let (m, high) = (Some(half_at(block, 2)), Some(word_at(block, 4)));
                each(&low_bits(half_at(block, 0), m, 0.0, tail(block, 8), high));
            }
            T::Q8_0 => {
                let scale = half_at(block, 0);
                let mut codes = [0; 32];
                for (code, q) in codes.iter_mut().zip(tail(block, 2)) {
                    *code = q.wrapping_add(128);
                }
                each(&Group { codes, scale, bias: scale * -128.0 });
            }
            T::Q4_K => six_bit_groups(block, tail(block, 16), None, each),
            T::Q5_K => six_bit_groups(block, tail(block, 48), block.get(16..48), each),
            _ => {}
        }
    }

    /// The block as MLX's mxfp4: four words of codes and the exponent; none for other types.
    pub(super) fn mxfp4(self, block: &[u8]) -> Option<([u32; 4], u8)> {
        if self != T::MXFP4 {
            return None;
        }
        let mut words = [0u32; 4];
        for (i, byte) in tail(block, 1).iter().take(16).enumerate() {
            // Byte j holds element j in its low half and element j + 16 in its high half.
            words[i / 8] |= u32::from(byte & 15) << (4 * (i % 8));
            words[2 + i / 8] |= u32::from(byte >> 4) << (4 * (i % 8));
        }
        Some((words, block.first().copied().unwrap_or(0)))
    }

    /// The values of whole blocks, appended to `out`.
    pub(super) fn dequantise(self, blocks: &[u8], out: &mut Vec<f32>) {
        for block in blocks.chunks_exact(self.bytes() as usize) {
            if self.affine_bits().is_some() {
                self.groups(block, |group| {
                    out.extend(group.codes.map(|q| group.scale * f32::from(q) + group.bias));
                });
                continue;
            }
            match self {
                T::F32 => out.push(f32::from_bits(word_at(block, 0))),
                T::F16 => out.push(half_at(block, 0)),
                T::BF16 => out.push(bf16::from_bits(short_at(block, 0)).to_f32()),
                T::F64 => {
                    let bits = u64::from(word_at(block, 4)) << 32 | u64::from(word_at(block, 0));
                    out.push(f64::from_bits(bits) as f32);
                }
                T::Q2_K => q2_k(block, out),
                T::Q3_K => q3_k(block, out),
                T::Q6_K => q6_k(block, out),
                _ => lattice::dequantise(self, block, out),
            }
        }
    }
}

impl fmt::Display for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The bytes from `at` on; blocks have their type's size, so that nothing is cut off.
pub(super) fn tail(block: &[u8], at: usize) -> &[u8] {
    block.get(at..).unwrap_or_default()
}

/// Little-endian 16 bits at a byte.
pub(super) fn short_at(block: &[u8], at: usize) -> u16 {
    block.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

/// Little-endian 32 bits at a byte.
pub(super) fn word_at(block: &[u8], at: usize) -> u32 {
    block.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// A float16 at a byte.
pub(super) fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_bits(short_at(block, at)).to_f32()
}

/// A group from 16 bytes of nibbles (byte j: elements j and j + 16) and a word of fifth bits.
fn low_bits(scale: f32, min: Option<f32>, centre: f32, nibbles: &[u8], high: Option<u32>) -> Group {
    let mut codes = [0; 32];
    for (j, byte) in nibbles.iter().take(16).enumerate() {
        codes[j] = byte & 15;
        codes[j + 16] = byte >> 4;
    }
    if let Some(high) = high {
        for (i, code) in codes.iter_mut().enumerate() {
            *code |= ((high >> i) as u8 & 1) << 4;
        }
    }
    Group { codes, scale, bias: min.unwrap_or(-centre * scale) }
}

/// The eight groups of Q4_K and Q5_K: 6-bit scales and minima, `d·sc·q − dmin·mn`.
fn six_bit_groups(block: &[u8], low: &[u8], high: Option<&[u8]>, mut each: impl FnMut(&Group)) {
    let (d, dmin) = (half_at(block, 0), half_at(block, 2));
    let Some(s) = block.get(4..16) else { return };
    for (pair, run) in low.chunks_exact(32).take(4).enumerate() {
        for half in 0..2 {
            let g = 2 * pair + half;
            let (sc, mn) = if g < 4 {
                (s[g] & 63, s[g + 4] & 63)
            } else {
                ((s[g + 4] & 15) | (s[g - 4] >> 6) << 4, (s[g + 4] >> 4) | (s[g] >> 6) << 4)
            };
            let mut codes = [0; 32];
            for (i, (code, byte)) in codes.iter_mut().zip(run).enumerate() {
                *code = (byte >> (4 * half)) & 15;
                if let Some(bits) = high.and_then(|h| h.get(i)) {
                    *code |= ((bits >> g) & 1) << 4;
                }
            }
            each(&Group { codes, scale: d * f32::from(sc), bias: -(dmin * f32::from(mn)) });
        }
    }
}

/// Q2_K: 16 groups of 16; a byte holds the group's 4-bit scale and minimum.
fn q2_k(block: &[u8], out: &mut Vec<f32>) {
    let (d, dmin) = (half_at(block, 80), half_at(block, 82));
    for i in 0..256 {
        let scale = block[i / 16];
        let q = block[16 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
        let (dl, ml) = (d * f32::from(scale & 15), dmin * f32::from(scale >> 4));
        out.push(dl * f32::from(q) - ml);
    }
}

/// Q3_K: 16 groups of 16; signed 6-bit scales spread over 12 bytes; the third bit in a mask.
fn q3_k(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 108);
    let packed = tail(block, 96);
    let scales: [f32; 16] = std::array::from_fn(|g| {
        let low = packed[g % 8] >> (4 * (g / 8)) & 15;
        let high = packed[8 + g % 4] >> (2 * (g / 4)) & 3;
        d * (f32::from(low | high << 4) - 32.0)
    });
    for i in 0..256 {
        let low = block[32 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
        // A set bit of the mask stands for no offset.
        let offset = if block[i % 32] >> (i / 32) & 1 == 0 { 4.0 } else { 0.0 };
        out.push(scales[i / 16] * (f32::from(low) - offset));
    }
}

/// Q6_K: 16 groups of 16 with signed 8-bit scales; codes in 4 + 2 bits, centred at 32.
fn q6_k(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 208);
    for i in 0..256 {
        let low = block[64 * (i / 128) + i % 64] >> (4 * (i % 128 / 64)) & 15;
        let high = block[128 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
        let scale = d * f32::from(block[192 + i / 16] as i8);
        out.push(scale * (f32::from(low | high << 4) - 32.0));
    }
}
