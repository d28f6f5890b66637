//! The phase of a pass is the method that is called, whatever the number of its tokens.

use mlx_rs::Array;

use super::scenario::bits;
use crate::array::from_i32s;
use crate::cache::kernels::Kernel;
use crate::cache::{
    CacheLayer, CachePlan, CacheSet, LayerCache, MaskPool, PlanOptions, Scores, Slot, Span,
    Timeline, TokenCache, storages,
};
use crate::composition::{CompositionRequest, KvRequest, resolve_composition};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

fn plan(layer: CacheLayer, kv: KvRequest) -> CachePlan {
    let request = CompositionRequest { kv, ..CompositionRequest::default() };
    let record = resolve_composition(&request, &[]).unwrap();
    CachePlan::compose(&[layer], &record, PlanOptions::default()).unwrap()
}

fn noise(seed: u64, n: i32) -> Array {
    let key = mlx_rs::random::key(seed).unwrap();
    mlx_rs::random::normal::<f32>(&[1, 1, n, 32], None, None, Some(&key)).unwrap()
}

fn tokens(set: &mut CacheSet) -> &mut TokenCache {
    match &mut set.layers[0] {
        LayerCache::Tokens(cache) => cache,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_token_is_read_by_the_kernel_of_its_method() {
    let _alone = crate::alone();
    let tiled = KvRequest { tiled: true, ..bits(4, None) };
    let plan = plan(CacheLayer::new(&storages::FULL), tiled);
    let kernel = |phase: Phase| {
        let mut set = plan.make();
        let line = Timeline { time: 0, pads: vec![0] };
        let span = Span { line: &line, right: &[], n: 1, phase };
        let x = noise(1, 1);
        tokens(&mut set).attend(&x, &x, &span, &mut MaskPool::default()).unwrap()
    };
    for phase in [Phase::Decode, Phase::Prompt, Phase::MultiSequencePrompt] {
        assert_eq!(kernel(phase).kernel, Kernel::Whole, "{phase:?}");
    }
    assert_eq!(kernel(Phase::Verify).kernel, Kernel::Tiled(512));
    let line = Timeline { time: 0, pads: vec![0] };
    let span = Span { line: &line, right: &[], n: 2, phase: Phase::Prompt };
    let mut set = plan.make();
    let x = noise(1, 2);
    let error = tokens(&mut set).append_decode(&x, &x, &span, &mut MaskPool::default());
    assert_eq!(error.unwrap_err().to_string(), "cache: a step of 2 tokens");
}

/// Rings lie in another order after a window than after steps: sums differ in their last bits.
#[test]
fn known_tokens_are_steps_to_the_bit() {
    let _alone = crate::alone();
    for (layer, kv) in [
        (CacheLayer::new(&storages::SLIDING).with("window", 7), KvRequest::default()),
        (CacheLayer::new(&storages::SLIDING).with("window", 7), bits(8, None)),
        (CacheLayer::new(&storages::CHUNKED).with("chunk", 7), KvRequest::default()),
        (CacheLayer::new(&storages::FULL), bits(4, None)),
    ] {
        let plan = plan(layer, kv);
        let run = |spans: &[(Phase, i32)]| -> Vec<u32> {
            let mut set = plan.make();
            let mut bits = Vec::new();
            let mut at = 0;
            for &(phase, n) in spans {
                let ids = crate::ops::expand(&from_i32s(&vec![0; n as usize]), 0).unwrap();
                let mut pass = Pass::begin(&mut set, phase, &ids, Padding::default()).unwrap();
                let cut = |seed: u64| crate::ops::slice(&noise(seed, 40), 2, at, at + n).unwrap();
                let scores = Scores { scale: 1.0, softcap: None, sinks: None };
                let y = pass.attend(Slot::new(0), &cut(1), &cut(2), &cut(3), scores).unwrap();
                pass.finish().unwrap();
                bits.extend(y.to_vec_cast::<f32>().unwrap().iter().map(|x| x.to_bits()));
                at += n;
            }
            bits
        };
        let prompt = (Phase::Prompt, 12);
        let mut steps = vec![prompt];
        steps.extend([(Phase::Decode, 1); 20]);
        let known = |n: i32| -> Vec<(Phase, i32)> {
            let spans = std::iter::repeat_n((Phase::AppendKnown, n), (20 / n) as usize);
            std::iter::once(prompt).chain(spans).collect()
        };
        let want = run(&steps);
        for n in [1, 2, 4] {
            assert!(run(&known(n)) == want, "spans of {n}");
        }
    }
}
