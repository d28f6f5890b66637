//! Block types that only turn into floats: codebooks (IQ), ternary (TQ) and 4-bit floats (MXFP4).
//!
//! The codebooks' points are the published tables of the format, kept as bytes in `grids.bin`: signed
//! bytes, one table after the other (see [`Grid`] for their sizes).

use super::blocks::{BlockType, half_at, short_at, tail, word_at};

static GRIDS: &[u8] = include_bytes!("grids.bin");

/// A codebook: where it begins in the tables, and the length of its points.
struct Grid {
    at: usize,
    length: usize,
}

const IQ2_XXS: Grid = Grid { at: 0, length: 8 };
const IQ2_XS: Grid = Grid { at: 2048, length: 8 };
const IQ2_S: Grid = Grid { at: 6144, length: 8 };
const IQ3_XXS: Grid = Grid { at: 14336, length: 4 };
const IQ3_S: Grid = Grid { at: 15360, length: 4 };
const IQ1: Grid = Grid { at: 17408, length: 8 };

impl Grid {
    /// The coordinates of a point; indices are as wide as the tables are long.
    fn point(&self, index: usize) -> impl Iterator<Item = f32> + use<> {
        let at = self.at + index * self.length;
        GRIDS[at..at + self.length].iter().map(|&x| f32::from(x as i8))
    }

    /// A point times a scale, with a bit of `signs` for each negative coordinate.
    fn signed(&self, index: usize, scale: f32, signs: u8, out: &mut Vec<f32>) {
        let sign = |i: usize| if signs >> i & 1 == 0 { 1.0 } else { -1.0 };
        out.extend(self.point(index).enumerate().map(|(i, x)| scale * x * sign(i)));
    }
}

/// Seven stored signs; the eighth makes their number even.
fn even_signs(seven: u32) -> u8 {
    let bits = (seven & 127) as u8;
    bits | ((bits.count_ones() as u8 & 1) << 7)
}

/// Values of 4-bit codes of the IQ4 types.
const IQ4: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];

/// Values of the 4-bit float E2M1.
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// One block's values, appended to `out`. `block` has the size of its type.
pub(super) fn dequantise(block_type: BlockType, block: &[u8], out: &mut Vec<f32>) {
    match block_type {
        BlockType::IQ2_XXS => iq2_xxs(block, out),
        BlockType::IQ2_XS => iq2_xs(block, out),
        BlockType::IQ2_S => iq2_s(block, out),
        BlockType::IQ3_XXS => iq3_xxs(block, out),
        BlockType::IQ3_S => iq3_s(block, out),
        BlockType::IQ1_S => iq1_s(block, out),
        BlockType::IQ1_M => iq1_m(block, out),
        BlockType::IQ4_NL => nibbles(&IQ4, half_at(block, 0), tail(block, 2), out),
        BlockType::IQ4_XS => iq4_xs(block, out),
        BlockType::TQ1_0 => tq1_0(block, out),
        BlockType::TQ2_0 => tq2_0(block, out),
        BlockType::MXFP4 => nibbles(&E2M1, power_of_two(block[0]), tail(block, 1), out),
        _ => {}
    }
}

/// 2 to the power `exponent − 127`.
fn power_of_two(exponent: u8) -> f32 {
    match exponent {
        0 => f32::from_bits(1 << 22),
        e => f32::from_bits(u32::from(e) << 23),
    }
}

/// 32 elements of 16 bytes: the low halves, then the high ones.
fn nibbles(values: &[f32; 16], scale: f32, bytes: &[u8], out: &mut Vec<f32>) {
    let bytes = &bytes[..16];
    out.extend(bytes.iter().map(|b| scale * values[usize::from(b & 15)]));
    out.extend(bytes.iter().map(|b| scale * values[usize::from(b >> 4)]));
}

fn nibble(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 2] >> (4 * (i % 2)) & 15
}

fn iq2_xxs(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    for group in 0..8 {
        let at = 2 + 8 * group;
        let signs = word_at(block, at + 4);
        let scale = d * (0.5 + (signs >> 28) as f32) * 0.25;
        for k in 0..4 {
            let index = usize::from(block[at + k]);
            IQ2_XXS.signed(index, scale, even_signs(signs >> (7 * k)), out);
        }
    }
}

fn iq2_xs(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    for i in 0..32 {
        let code = short_at(block, 2 + 2 * i);
        let scale = d * (0.5 + f32::from(nibble(&block[66..], i / 2))) * 0.25;
        IQ2_XS.signed(usize::from(code & 511), scale, even_signs(u32::from(code >> 9)), out);
    }
}

fn iq2_s(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    for i in 0..32 {
        let high = block[66 + i / 4] >> (2 * (i % 4)) & 3;
        let scale = d * (0.5 + f32::from(nibble(&block[74..], i / 2))) * 0.25;
        let index = usize::from(block[2 + i]) | usize::from(high) << 8;
        IQ2_S.signed(index, scale, block[34 + i], out);
    }
}

fn iq3_xxs(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    for group in 0..8 {
        let signs = word_at(block, 66 + 4 * group);
        let scale = d * (0.5 + (signs >> 28) as f32) * 0.5;
        for k in 0..8 {
            let eight = even_signs(signs >> (7 * (k / 2)));
            let index = usize::from(block[2 + 8 * group + k]);
            IQ3_XXS.signed(index, scale, eight >> (4 * (k % 2)), out);
        }
    }
}

fn iq3_s(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    for i in 0..64 {
        let high = block[66 + i / 8] >> (i % 8) & 1;
        let scale = d * (1.0 + 2.0 * f32::from(nibble(&block[106..], i / 8)));
        let index = usize::from(block[2 + i]) | usize::from(high) << 8;
        IQ3_S.signed(index, scale, block[74 + i / 2] >> (4 * (i % 2)), out);
    }
}

/// Points of the ternary codebook, moved by an eighth up or down.
fn iq1(index: usize, scale: f32, down: bool, out: &mut Vec<f32>) {
    let delta = if down { -0.125 } else { 0.125 };
    out.extend(IQ1.point(index).map(|x| scale * (x + delta)));
}

fn iq1_s(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    for i in 0..32 {
        let high = short_at(block, 34 + 2 * (i / 4));
        let scale = d * f32::from(2 * (high >> 12 & 7) + 1);
        let index = usize::from(block[2 + i]) | usize::from(high >> (3 * (i % 4)) & 7) << 8;
        iq1(index, scale, high & 0x8000 != 0, out);
    }
}

fn iq1_m(block: &[u8], out: &mut Vec<f32>) {
    let words: [u16; 4] = std::array::from_fn(|k| short_at(block, 48 + 2 * k));
    // The float16 scale lies in the top four bits of the four words.
    let bits = words.iter().enumerate().fold(0, |bits, (k, word)| bits | (word >> 12) << (4 * k));
    let d = half::f16::from_bits(bits).to_f32();
    for i in 0..32 {
        let scale = words[i / 8] >> (3 * (i / 2 % 4)) & 7;
        let high = nibble(&block[32..], i);
        let index = usize::from(block[i]) | usize::from(high & 7) << 8;
        iq1(index, d * f32::from(2 * scale + 1), high & 8 != 0, out);
    }
}

fn iq4_xs(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 0);
    let high = short_at(block, 2);
    for group in 0..8 {
        let scale = u16::from(nibble(&block[4..], group)) | (high >> (2 * group) & 3) << 4;
        let scale = d * (f32::from(scale) - 32.0);
        nibbles(&IQ4, scale, &block[8 + 16 * group..], out);
    }
}

/// Five ternary digits to a byte, as the fraction byte/256 in base three.
fn tq1_0(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 52);
    let mut digits = |bytes: &[u8], powers: &[u8]| {
        for power in powers {
            out.extend(bytes.iter().map(|byte| {
                let digit = (u16::from(byte.wrapping_mul(*power)) * 3) >> 8;
                d * (f32::from(digit) - 1.0)
            }));
        }
    };
    digits(&block[..32], &[1, 3, 9, 27, 81]);
    digits(&block[32..48], &[1, 3, 9, 27, 81]);
    digits(&block[48..52], &[1, 3, 9, 27]);
}

fn tq2_0(block: &[u8], out: &mut Vec<f32>) {
    let d = half_at(block, 64);
    for run in block[..64].chunks_exact(32) {
        for shift in [0, 2, 4, 6] {
            out.extend(run.iter().map(|byte| d * (f32::from(byte >> shift & 3) - 1.0)));
        }
    }
}
