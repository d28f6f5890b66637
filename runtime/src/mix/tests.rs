//! Chunks, padding and rollback do not show in what recurrent and latent layers compute.

use mlx_rs::Array;

use super::*;
use crate::cache::{CacheLayer, CachePlan, CacheSet, Slot, StorageLayout, storages};
use crate::nn::MultiLinear;
use crate::pass::Pass;
use crate::phase::{Padding, Phase};
use crate::{Result, ops};

const TOLERANCE: f32 = 2e-5;

fn noise(shape: &[i32], seed: u64) -> Array {
    let key = mlx_rs::random::key(seed).unwrap();
    mlx_rs::random::uniform::<_, f32>(-1.0_f32, 1.0_f32, shape, Some(&key)).unwrap()
}

fn distance(a: &Array, b: &Array) -> f32 {
    assert_eq!(a.shape(), b.shape());
    mlx_rs::ops::max(ops::sub(a, b).unwrap().abs().unwrap(), None).unwrap().item_cast::<f32>()
}

type Mix = Box<dyn Fn(&mut Pass<'_>, &Array) -> Result<Array>>;

/// A layer of one kind under test: inputs [B, L, 12] -> [B, L, ..].
struct Layer {
    storage: &'static StorageLayout,
    mix: Mix,
}

fn part(x: &Array, from: i32, to: i32) -> Array {
    ops::slice(x, -1, from, to).unwrap()
}

fn layers() -> Vec<Layer> {
    let slot = Slot::new(0);
    let conv = || CausalConv::of(&noise(&[12, 4, 1], 90), Some(noise(&[12], 91)), true).unwrap();
    let recurrent = |mix| Layer { storage: &storages::RECURRENT, mix };
    let (one, two, three) = (conv(), conv(), conv());
    vec![
        recurrent(Box::new(move |cx: &mut Pass<'_>, x: &Array| {
            let c = one.forward(cx, slot, x)?;
            let (q, k) =
                (ops::heads_last(&part(&c, 0, 4), 1)?, ops::heads_last(&part(&c, 4, 8), 1)?);
            let v = ops::heads_last(&part(&c, 8, 12), 2)?;
            let (g, beta) = (ops::sigmoid(&part(x, 0, 2))?, ops::sigmoid(&part(x, 2, 4))?);
            ops::merge_last(&gated_delta(cx, slot, &q, &ops::mul_scalar(&k, 0.3)?, &v, &g, &beta)?)
        })),
        recurrent(Box::new(move |cx: &mut Pass<'_>, x: &Array| {
            let c = two.forward(cx, slot, x)?;
            let u = ops::heads_last(&part(&c, 0, 4), 2)?;
            let (b, c) =
                (ops::heads_last(&part(&c, 4, 8), 1)?, ops::heads_last(&part(&c, 8, 12), 1)?);
            let a = Array::from_slice(&[-0.5_f32, -1.0], &[2]);
            ops::merge_last(&ssd(cx, slot, &u, &a, &b, &c, &ops::sigmoid(&part(x, 0, 2))?)?)
        })),
        recurrent(Box::new(move |cx: &mut Pass<'_>, x: &Array| {
            let c = three.forward(cx, slot, x)?;
            let a = ops::neg(&noise(&[4, 4], 92).abs().map_err(crate::Error::from)?)?;
            let dt = ops::sigmoid(&part(x, 0, 4))?;
            selective_scan(cx, slot, &part(&c, 0, 4), &a, &part(&c, 4, 8), &part(&c, 8, 12), &dt)
        })),
        recurrent(Box::new(move |cx: &mut Pass<'_>, x: &Array| {
            let before = previous(cx, slot, x)?;
            let head = |from| ops::heads_last(&part(&before, from, from + 4), 2);
            let (q, k, v) = (head(0)?, head(4)?, head(8)?);
            let decay = ops::heads_last(&ops::sigmoid(&part(x, 0, 4))?, 2)?;
            let y = gated_linear(cx, slot, &q, &k, &v, &decay)?;
            let (a, b) = (ops::mul(&k, &decay)?, ops::mul_scalar(&k, -0.5)?);
            let z = low_rank_recurrence(cx, slot, &q, &k, &v, &decay, &a, &b)?;
            ops::merge_last(&ops::add(&y, &z)?)
        })),
        recurrent(Box::new(move |cx: &mut Pass<'_>, x: &Array| {
            decayed_sum(cx, slot, x, &ops::sigmoid(x)?)
        })),
        latent(None),
        latent(Some(3)),
    ]
}

/// Two heads: queries of 2 + 2, latents of 4, rotated keys of 2, an index of 2.
fn latent(top_k: Option<i32>) -> Layer {
    let weight = |seed, shape: [i32; 3]| MultiLinear::of(noise(&shape, seed));
    let (embed_q, unembed_out) = (weight(93, [2, 4, 2]), weight(94, [2, 3, 4]));
    let attention = LatentAttention::of(embed_q, unembed_out, 0.5);
    let slot = Slot::new(0);
    let split = |x: &Array| {
        let q = ops::heads(&part(x, 0, 8), 2).unwrap();
        (part(&q, 0, 2), part(&q, 2, 4), part(x, 6, 10), ops::heads(&part(x, 10, 12), 1).unwrap())
    };
    let Some(top_k) = top_k else {
        return Layer {
            storage: &storages::LATENT,
            mix: Box::new(move |cx, x| {
                let (q, q_rope, latent, k_rope) = split(x);
                ops::merge(&attention.forward(cx, slot, &q, &q_rope, &latent, &k_rope, None)?)
            }),
        };
    };
    let attention = IndexedLatentAttention::of(attention, top_k);
    Layer {
        storage: &storages::LATENT,
        mix: Box::new(move |cx, x| {
            let (q, q_rope, latent, k_rope) = split(x);
            let (iq, ik) = (ops::heads(&part(x, 1, 5), 2)?, ops::heads(&part(x, 5, 7), 1)?);
            let w = part(x, 3, 5);
            let (y, _) =
                attention.forward(cx, slot, &q, &q_rope, &latent, &k_rope, &iq, &ik, &w)?;
            ops::merge(&y)
        }),
    }
}

impl Layer {
    fn caches(&self) -> CacheSet {
        CachePlan::new(&[CacheLayer::new(self.storage)]).unwrap().make()
    }

    fn run(&self, caches: &mut CacheSet, phase: Phase, x: &Array, padding: Padding) -> Array {
        let ids = ops::reshape(&ops::arange(0, x.dim(0) * x.dim(1)).unwrap(), &x.shape()[..2]);
        let mut pass = Pass::begin(caches, phase, &ids.unwrap(), padding).unwrap();
        let y = (self.mix)(&mut pass, x).unwrap();
        pass.finish().unwrap();
        y
    }

    fn prompt(&self, caches: &mut CacheSet, x: &Array) -> Array {
        self.run(caches, Phase::Prompt, x, Padding::default())
    }

    fn decode(&self, caches: &mut CacheSet, x: &Array) -> Array {
        self.run(caches, Phase::Decode, x, Padding::default())
    }
}

fn tokens(x: &Array, from: i32, to: i32) -> Array {
    ops::slice(x, 1, from, to).unwrap()
}

fn row(x: &Array, b: i32) -> Array {
    ops::slice(x, 0, b, b + 1).unwrap()
}

#[test]
fn chunks_do_not_show() {
    for (n, layer) in layers().iter().enumerate() {
        let x = noise(&[2, 41, 12], 1);
        let whole = layer.prompt(&mut layer.caches(), &x);
        let mut caches = layer.caches();
        let mut parts = vec![
            layer.prompt(&mut caches, &tokens(&x, 0, 33)),
            layer.prompt(&mut caches, &tokens(&x, 33, 35)),
        ];
        parts.extend((35..41).map(|t| layer.decode(&mut caches, &tokens(&x, t, t + 1))));
        let parts = ops::concat(&parts.iter().collect::<Vec<_>>(), 1).unwrap();
        assert!(distance(&whole, &parts) < TOLERANCE, "layer {n}");
    }
}

#[test]
fn a_padded_row_is_the_row_alone() {
    for (n, layer) in layers().iter().enumerate() {
        let x = noise(&[2, 9, 12], 2);
        let more = noise(&[2, 1, 12], 3);
        // Row 1 has five tokens of its own, at the end or at the beginning of the padded row.
        let left = Padding { left: vec![0, 4], right: Vec::new() };
        let right = Padding { left: Vec::new(), right: vec![0, 4] };
        for (padding, from) in [(left, 4), (right, 0)] {
            let mut together = layer.caches();
            let y = layer.run(&mut together, Phase::MultiSequencePrompt, &x, padding);
            let next = layer.decode(&mut together, &more);
            for (b, (from, to)) in [(0, 9), (from, from + 5)].into_iter().enumerate() {
                let b = b as i32;
                let mut alone = layer.caches();
                let own = layer.prompt(&mut alone, &tokens(&row(&x, b), from, to));
                let there = tokens(&row(&y, b), from, to);
                assert!(distance(&own, &there) < TOLERANCE, "layer {n}, row {b}");
                let own = layer.decode(&mut alone, &row(&more, b));
                assert!(distance(&own, &row(&next, b)) < TOLERANCE, "layer {n}, row {b}: next");
            }
        }
    }
}

#[test]
fn what_is_taken_back_was_never_there() {
    for (n, layer) in layers().iter().enumerate() {
        let x = noise(&[2, 6, 12], 4);
        let drafts = noise(&[2, 4, 12], 5);
        let more = noise(&[2, 1, 12], 6);
        for keep in [[1, 3], [2, 2], [4, 4], [0, 0]] {
            let mut caches = layer.caches();
            layer.prompt(&mut caches, &x);
            let verified = layer.run(&mut caches, Phase::Verify, &drafts, Padding::default());
            caches.resolve(&keep).unwrap();
            let next = layer.decode(&mut caches, &more);
            for (b, keep) in (0..).zip(keep) {
                let mut alone = layer.caches();
                layer.prompt(&mut alone, &row(&x, b));
                for t in 0..keep {
                    let y = layer.decode(&mut alone, &tokens(&row(&drafts, b), t, t + 1));
                    let there = tokens(&row(&verified, b), t, t + 1);
                    assert!(distance(&y, &there) < TOLERANCE, "layer {n}, draft {t}");
                }
                let own = layer.decode(&mut alone, &row(&more, b));
                let there = row(&next, b);
                assert!(distance(&own, &there) < TOLERANCE, "layer {n}, row {b}, {keep} kept");
            }
        }
    }
}

#[test]
fn shifted_products_are_the_convolution() {
    let (weight, bias) = (noise(&[12, 4, 1], 11), Some(noise(&[12], 12)));
    let x = noise(&[2, 9, 12], 13);
    let [a, b] = [false, true].map(|shifted| {
        let conv = CausalConv::of(&weight, bias.clone(), shifted).unwrap();
        let mix: Mix = Box::new(move |cx, x| conv.forward(cx, Slot::new(0), x));
        let layer = Layer { storage: &storages::RECURRENT, mix };
        layer.prompt(&mut layer.caches(), &x)
    });
    assert!(distance(&a, &b) < 1e-6);
}

#[test]
fn a_selection_of_everything_is_none() {
    let (plain, indexed) = (latent(None), latent(Some(41)));
    let x = noise(&[2, 41, 12], 7);
    let [a, b] = [&plain, &indexed].map(|layer| layer.prompt(&mut layer.caches(), &x));
    assert_eq!(distance(&a, &b), 0.0);
    let few = latent(Some(3));
    assert!(distance(&a, &few.prompt(&mut few.caches(), &x)) > 1e-3);
}

#[test]
fn a_block_that_only_reads_leaves_states_alone() {
    let layers = layers();
    let layer = &layers[0];
    let x = noise(&[1, 5, 12], 8);
    let mut caches = layer.caches();
    layer.prompt(&mut caches, &x);
    layer.run(&mut caches, Phase::ReadBlock, &noise(&[1, 3, 12], 9), Padding::default());
    let mut other = layer.caches();
    layer.prompt(&mut other, &x);
    let more = noise(&[1, 1, 12], 10);
    let [a, b] = [&mut caches, &mut other].map(|c| layer.decode(c, &more));
    assert_eq!(distance(&a, &b), 0.0);
}
