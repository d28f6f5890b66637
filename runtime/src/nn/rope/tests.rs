//! Every type of rope at positions in the thousands, against its formula in float64.

use std::f64::consts::PI;

use specc_checkpoint::config::RopeScaling;

use super::{Rope, RopeConfig};
use crate::Array;
use crate::cache::Offset;

const HEAD: usize = 16;
const FIRST: i32 = 4000;
const TOKENS: usize = 3;
const BASE: f64 = 1e4;

/// Radians a position of each pair of features, `dims` of them rotated.
fn plain(dims: usize) -> Vec<f64> {
    (0..dims / 2).map(|i| BASE.powf(-2.0 * i as f64 / dims as f64)).collect()
}

/// x [TOKENS, HEAD], its leading features times `gain` and turned.
fn turned(x: &[f32], radians: &[f64], gain: f64, traditional: bool) -> Vec<f64> {
    let dims = 2 * radians.len();
    let mut out: Vec<f64> = x.iter().map(|value| f64::from(*value)).collect();
    for (token, row) in out.chunks_mut(HEAD).enumerate() {
        let position = f64::from(FIRST) + token as f64;
        for (i, radians) in radians.iter().enumerate() {
            let (a, b) = if traditional { (2 * i, 2 * i + 1) } else { (i, i + dims / 2) };
            let (sin, cos) = (position * radians).sin_cos();
            let (first, second) = (gain * row[a], gain * row[b]);
            (row[a], row[b]) = (first * cos - second * sin, first * sin + second * cos);
        }
    }
    out
}

fn check(name: &str, config: &RopeConfig, radians: &[f64], gain: f64) {
    let x: Vec<f32> = (0..TOKENS * HEAD).map(|i| (i as f32 * 0.37).sin()).collect();
    let array = Array::from_slice(&x, &[1, 1, TOKENS as i32, HEAD as i32]);
    for traditional in [false, true] {
        let rope = Rope::new(config, HEAD as i64, traditional).unwrap();
        let rows = Array::from_slice(&[FIRST], &[1]);
        for offset in [Offset::Same(FIRST), Offset::Rows(vec![FIRST], rows)] {
            let ours = rope.at(&offset, &array).unwrap().to_vec_cast::<f32>().unwrap();
            let expected = turned(&x, radians, gain, traditional);
            for (at, (ours, expected)) in ours.iter().zip(&expected).enumerate() {
                // An angle of thousands has an error of a few ten-thousandths in float32.
                let difference = (f64::from(*ours) - expected).abs();
                assert!(difference < 2e-3, "{name}, {traditional}, {at}: {ours}, not {expected}");
            }
        }
    }
}

fn config(scaling: RopeScaling) -> RopeConfig {
    RopeConfig { theta: BASE, scaling, max_positions: Some(8192), ..RopeConfig::default() }
}

#[test]
fn far_positions_turn_as_the_formulas_say() {
    let _alone = crate::alone();
    check("default", &config(RopeScaling::Default), &plain(HEAD), 1.0);
    let half = RopeConfig { partial: 0.5, ..config(RopeScaling::Default) };
    check("partial", &half, &plain(HEAD / 2), 1.0);
    let slower = |by: f64| plain(HEAD).iter().map(|radians| radians / by).collect::<Vec<_>>();
    check("linear", &config(RopeScaling::Linear { factor: 4.0 }), &slower(4.0), 1.0);
    let proportional =
        RopeConfig { partial: 0.25, ..config(RopeScaling::Proportional { factor: 2.0 }) };
    let rotated = slower(2.0).into_iter().enumerate().map(|(i, r)| if i < 2 { r } else { 0.0 });
    check("proportional", &proportional, &rotated.collect::<Vec<_>>(), 1.0);
}

#[test]
fn dynamic_ropes_grow_with_what_is_read() {
    let _alone = crate::alone();
    let scaling = RopeScaling::Dynamic {
        factor: 2.0,
        alpha: None,
        original_max_position_embeddings: Some(1024),
    };
    let (length, d) = (f64::from(FIRST) + TOKENS as f64, HEAD as f64);
    let base = BASE * (2.0 * length / 1024.0 - 1.0).powf(d / (d - 2.0));
    let radians: Vec<f64> = (0..HEAD / 2).map(|i| base.powf(-2.0 * i as f64 / d)).collect();
    check("dynamic", &config(scaling), &radians, 1.0);
}

#[test]
fn llama3_stretches_long_waves() {
    let _alone = crate::alone();
    let (factor, low, high, context) = (8.0, 1.0, 4.0, 256.0);
    let scaling = RopeScaling::Llama3 {
        factor,
        low_freq_factor: low,
        high_freq_factor: high,
        original_max_position_embeddings: 256,
    };
    let stretched = |radians: &f64| {
        let wave = 2.0 * PI / radians;
        let kept = ((context / wave - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 - kept) * radians / factor + kept * radians
    };
    let radians: Vec<f64> = plain(HEAD).iter().map(stretched).collect();
    check("llama3", &config(scaling), &radians, 1.0);
}

#[test]
fn yarn_blends_along_a_ramp_of_rotations() {
    let _alone = crate::alone();
    let (factor, original, fast, slow) = (4.0_f64, 1024.0_f64, 32.0_f64, 1.0_f64);
    let scaling = RopeScaling::Yarn {
        factor,
        original_max_position_embeddings: Some(1024),
        beta_fast: fast,
        beta_slow: slow,
        mscale: Some(1.0),
        mscale_all_dim: Some(0.5),
        attention_factor: None,
        truncate: true,
    };
    let d = HEAD as f64;
    let correction = |n: f64| d * (original / (n * 2.0 * PI)).ln() / (2.0 * BASE.ln());
    let low = correction(fast).floor().max(0.0);
    let high = correction(slow).ceil().min(d - 1.0);
    let radians: Vec<f64> = plain(HEAD)
        .iter()
        .enumerate()
        .map(|(i, radians)| {
            let ramp = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
            radians / factor * ramp + radians * (1.0 - ramp)
        })
        .collect();
    let magnitude = |m: f64| 0.1 * m * factor.ln() + 1.0;
    check("yarn", &config(scaling), &radians, magnitude(1.0) / magnitude(0.5));
}

#[test]
fn longrope_has_a_factor_for_each_pair() {
    let _alone = crate::alone();
    let long: Vec<f64> = (0..HEAD / 2).map(|i| 1.0 + i as f64).collect();
    let scaling = RopeScaling::LongRope {
        short_factor: vec![1.0; HEAD / 2],
        long_factor: long.clone(),
        original_max_position_embeddings: Some(1024),
        factor: None,
        short_mscale: None,
        long_mscale: None,
        attention_factor: None,
    };
    let radians: Vec<f64> = plain(HEAD).iter().zip(&long).map(|(r, by)| r / by).collect();
    let gain = (1.0 + 8.0_f64.ln() / 1024.0_f64.ln()).sqrt();
    check("longrope", &config(scaling), &radians, gain);
}
