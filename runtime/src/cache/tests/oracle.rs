//! What attention should give, computed position by position in float64.

use mlx_rs::Array;

use crate::cache::{Codes, Sight};

/// Heads and sizes of the layers under test.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub heads: usize,
    pub kv_heads: usize,
    pub dim: usize,
}

/// A number in [-1, 1) that depends on all of its coordinates.
fn noise(parts: &[u64]) -> f32 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for part in parts {
        state ^= part.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^= state >> 32;
    }
    (state >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// A vector of a row's token: `kind` 0 queries, 1 keys, 2 values.
pub fn vector(
    sizes: Sizes,
    row: u64,
    layer: usize,
    kind: u64,
    position: i32,
    head: usize,
) -> Vec<f32> {
    (0..sizes.dim)
        .map(|d| {
            let bend = if kind == 0 { 3.0 } else { 1.0 };
            bend * noise(&[row, layer as u64, kind, position as u64, head as u64, d as u64])
        })
        .collect()
}

/// What is left of a stored vector that was written by a code and read again.
pub fn stored(codes: &Codes, kind: u64, vector: &[f32]) -> Vec<f32> {
    let code = codes.0[kind as usize - 1];
    let x = Array::from_slice(vector, &[1, 1, 1, vector.len() as i32]);
    let codes = Codes(vec![code]);
    let planes = codes.encode(&[&x]).unwrap();
    codes.decode(&planes).unwrap()[0].to_vec_cast::<f32>().unwrap()
}

/// Attention of the query at `position` of a row: one vector a head. `read` gives the key or value
/// of a position as it is stored, `last` is the newest position that there is.
pub fn attend(
    sizes: Sizes,
    sight: &Sight,
    position: i32,
    last: i32,
    causal: bool,
    query: impl Fn(usize) -> Vec<f32>,
    read: impl Fn(u64, i32, usize) -> Vec<f32>,
) -> Vec<f32> {
    let mut out = Vec::new();
    for head in 0..sizes.heads {
        let q = query(head);
        let kv = head * sizes.kv_heads / sizes.heads;
        let seen: Vec<i32> = (0..=last)
            .filter(|&k| if causal { k <= position && sight.sees(position, k) } else { true })
            .collect();
        let scores: Vec<f64> = seen
            .iter()
            .map(|&k| {
                let key = read(1, k, kv);
                let dot: f64 = q.iter().zip(&key).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                dot * 0.5
            })
            .collect();
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut mixed = vec![0.0; sizes.dim];
        for (&k, weight) in seen.iter().zip(&weights) {
            for (m, v) in mixed.iter_mut().zip(read(2, k, kv)) {
                *m += weight / total * f64::from(v);
            }
        }
        out.extend(mixed.iter().map(|&m| m as f32));
    }
    out
}
