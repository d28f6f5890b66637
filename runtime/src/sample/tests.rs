//! Draws and penalties against the reference.

use super::*;
use mlx_rs::Array;

const LOGITS: [f32; 12] =
    [1.633, -2.045, 0.334, -0.454, -0.362, -0.172, -1.616, -0.186, -0.692, 2.658, 0.181, -0.282];

fn logits() -> Array {
    Array::from_slice(&LOGITS, &[1, 12])
}

fn draw(settings: Sampling) -> Vec<u32> {
    let sampler = Sampler::new(settings).unwrap();
    let token = |step| sampler.sample(&logits(), step).unwrap().as_slice::<u32>()[0];
    (0..24).map(token).collect()
}

/// The tokens that an independent program draws in MLX's Python from the same logits, keys and chain.
#[test]
fn choices_are_those_of_the_reference() {
    let off = || Sampling { temperature: 1.0, ..Sampling::default() };
    let cases: [(Sampling, [u32; 24]); 9] = [
        (off(), [0, 3, 0, 2, 0, 0, 9, 2, 8, 9, 0, 9, 9, 9, 10, 9, 9, 9, 0, 9, 0, 0, 9, 2]),
        (
            Sampling { temperature: 0.7, seed: 1, ..off() },
            [9, 0, 9, 9, 9, 9, 0, 0, 2, 9, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 9, 0],
        ),
        (
            Sampling { temperature: 1.5, top_p: 0.6, seed: 2, ..off() },
            [0, 9, 0, 9, 0, 0, 9, 9, 0, 9, 0, 9, 9, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        ),
        (
            Sampling { temperature: 1.2, min_p: 0.2, seed: 3, ..off() },
            [9, 9, 9, 9, 9, 0, 9, 9, 0, 9, 9, 0, 9, 9, 9, 9, 0, 0, 9, 0, 0, 9, 9, 9],
        ),
        (
            Sampling { temperature: 1.2, min_p: 0.9, min_keep: 4, seed: 3, ..off() },
            [9, 9, 9, 9, 9, 0, 9, 9, 0, 9, 9, 0, 9, 9, 9, 9, 0, 0, 9, 0, 0, 2, 9, 9],
        ),
        (
            Sampling { temperature: 2.0, top_k: 3, seed: 4, ..off() },
            [0, 0, 9, 9, 9, 0, 9, 9, 9, 9, 9, 9, 2, 2, 2, 0, 0, 0, 0, 9, 0, 9, 9, 2],
        ),
        (
            Sampling { xtc_probability: 0.5, xtc_threshold: 0.1, seed: 5, ..off() },
            [10, 10, 2, 9, 0, 7, 0, 0, 9, 4, 4, 9, 10, 8, 8, 9, 11, 8, 9, 10, 10, 0, 0, 10],
        ),
        (
            Sampling {
                xtc_probability: 1.0,
                xtc_threshold: 0.05,
                xtc_special: vec![0, 5],
                seed: 6,
                ..off()
            },
            [8, 0, 11, 2, 2, 3, 2, 0, 2, 0, 0, 0, 5, 2, 0, 0, 11, 0, 0, 0, 8, 0, 8, 2],
        ),
        (
            Sampling {
                temperature: 1.3,
                top_p: 0.95,
                min_p: 0.02,
                xtc_probability: 0.4,
                xtc_threshold: 0.15,
                top_k: 6,
                seed: (1 << 63) + 5,
                ..off()
            },
            [0, 5, 11, 11, 7, 9, 5, 11, 7, 0, 9, 2, 5, 0, 9, 0, 9, 2, 0, 2, 10, 0, 9, 2],
        ),
    ];
    for (settings, expected) in cases {
        assert_eq!(draw(settings.clone()), expected, "{settings:?}");
    }
    assert_eq!(draw(Sampling::default()), [9; 24]);
}

#[test]
fn a_row_of_a_batch_is_the_row_alone_when_greedy() {
    let two = Array::from_slice(&[LOGITS, LOGITS.map(|x| -x)].concat(), &[2, 12]);
    let sampler = Sampler::new(Sampling::default()).unwrap();
    assert_eq!(sampler.sample(&two, 0).unwrap().as_slice::<u32>(), [9, 1]);
}

#[test]
fn more_candidates_than_tokens_change_nothing() {
    let wide =
        Sampling { temperature: 1.0, top_k: 500, min_p: 0.5, min_keep: 500, ..Default::default() };
    assert_eq!(draw(wide), draw(Sampling { temperature: 1.0, ..Default::default() }));
}

fn penalised(context: usize, pushed: usize) -> Vec<f32> {
    let said = [3u32, 7, 3, 1, 3, 9];
    let settings = Penalties {
        logit_bias: vec![(2, 1.5), (3, -2.0)],
        repetition: 1.3,
        repetition_context: context,
        presence: 0.5,
        presence_context: context,
        frequency: 0.25,
        frequency_context: context,
    };
    let prompt = &said[..said.len() - pushed];
    let mut history = History::new(&settings, prompt).unwrap();
    // Tokens that come later count as those of the prompt do.
    for token in &said[said.len() - pushed..] {
        history.apply(&logits()).unwrap();
        history.push(&Array::from_slice(&[*token], &[1])).unwrap();
    }
    history.apply(&logits()).unwrap().as_slice::<f32>().to_vec()
}

#[test]
fn penalties_are_those_of_the_reference() {
    let all = [
        1.633, -3.4085, 1.834, -4.4402, -0.362, -0.172, -1.616, -0.9918, -0.692, 1.294_62, 0.181,
        -0.282,
    ];
    let mut last_four = all;
    (last_four[3], last_four[7]) = (-4.1902, -0.186);
    for (context, expected) in [(0, all), (20, all), (4, last_four)] {
        for pushed in [0, 2, 6] {
            let found = penalised(context, pushed);
            for (i, (a, b)) in found.iter().zip(expected).enumerate() {
                assert!(
                    (a - b).abs() < 2e-5,
                    "context {context}, {pushed} pushed, token {i}: {a} {b}"
                );
            }
        }
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let error = |settings| Sampler::new(settings).unwrap_err().to_string();
    let base = Sampling::default;
    let penalty = Penalties { repetition: 0.0, ..Default::default() };
    let rows = [
        error(Sampling { temperature: -1.0, ..base() }),
        error(Sampling { temperature: f32::NAN, ..base() }),
        error(Sampling { top_p: 1.5, ..base() }),
        error(Sampling { min_p: -0.1, ..base() }),
        error(Sampling { xtc_threshold: 0.6, ..base() }),
        error(Sampling { top_k: -1, ..base() }),
        History::new(&penalty, &[1]).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(rows.join("\n"), @r#"
    temperature: expected a number of at least 0, found -1
    temperature: expected a number of at least 0, found NaN
    top-p: expected a number from 0 to 1, found 1.5
    min-p: expected a number from 0 to 1, found -0.1
    XTC threshold: expected a number from 0 to 0.5, found 0.6
    top-k: expected a number of at least 0, found -1
    repetition penalty: expected a number of at least 0.000000000000000000000000000000000000011754944, found 0
    "#);
}
