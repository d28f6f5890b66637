//! One pool of masks for a set of caches, which does not grow.

use mlx_rs::Array;

use super::scenario::{bits, composition};
use crate::cache::mask::Columns;
use crate::cache::{
    CacheLayer, CachePlan, CacheSet, Mask, MaskPool, PlanOptions, Scores, Sight, Slot, Timeline,
    storages,
};
use crate::composition::KvRequest;
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

fn numbers(mask: &Mask) -> Vec<f32> {
    match mask {
        Mask::Array(mask) => mask.to_vec_cast::<f32>().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_family_has_one_slot_and_pads_are_part_of_the_key() {
    let _alone = crate::alone();
    let mut pool = MaskPool::default();
    let line = |time: i32, pads: [i32; 2]| Timeline { time, pads: pads.to_vec() };
    let columns = |end: i32| Columns::Run { start: 0, end };
    let a = pool.mask(&Sight::All, &columns(4), &line(1, [0, 2]), 3).unwrap();
    let b = pool.mask(&Sight::All, &columns(4), &line(1, [0, 3]), 3).unwrap();
    assert_ne!(numbers(&a), numbers(&b));
    let fresh = MaskPool::default().mask(&Sight::All, &columns(4), &line(1, [0, 2]), 3).unwrap();
    let again = pool.mask(&Sight::All, &columns(4), &line(1, [0, 2]), 3).unwrap();
    assert_eq!(numbers(&again), numbers(&fresh));
    for time in 1..50 {
        for sight in [Sight::All, Sight::Window(3)] {
            pool.mask(&sight, &columns(time + 1), &line(time, [0, time]), 1).unwrap();
        }
    }
    assert_eq!(pool.len(), 2);
    // Large masks do not outlive their pass.
    pool.mask(&Sight::All, &columns(1001), &line(1, [0, 3]), 1000).unwrap();
    pool.causal(1000, 1001).unwrap();
    pool.settle(2);
    assert_eq!(pool.len(), 1);
}

fn pass(set: &mut CacheSet, phase: Phase, n: i32, padding: Padding) {
    let ids = Array::from_slice(&vec![0_i32; 2 * n as usize], &[2, n]);
    let mut pass = Pass::begin(set, phase, &ids, padding).unwrap();
    let x = mlx_rs::ops::ones::<f32>(&[2, 1, n, 32]).unwrap();
    let scores = Scores { scale: 1.0, softcap: None, sinks: None };
    for slot in 0..3 {
        pass.attend(Slot::new(slot), &x, &x, &x, scores).unwrap().eval().unwrap();
    }
    pass.finish().unwrap();
}

#[test]
fn masks_do_not_grow_with_what_is_read() {
    let _alone = crate::alone();
    let sliding = |window: i32| CacheLayer::new(&storages::SLIDING).with("window", window);
    let layers = [CacheLayer::new(&storages::FULL), sliding(4), sliding(9)];
    // Rows of unequal lengths, together and each by itself.
    for kv in [KvRequest::default(), bits(8, None), bits(8, Some(60)), bits(8, Some(1000))] {
        let record = composition(kv, None);
        let plan = CachePlan::compose(&layers, &record, PlanOptions::default()).unwrap();
        let mut set = plan.make();
        let left = Padding { left: vec![0, 5], right: Vec::new() };
        pass(&mut set, Phase::MultiSequencePrompt, 12, left);
        let mut most = 0;
        for round in 0..40 {
            let right = Padding { left: Vec::new(), right: vec![0, round % 3] };
            pass(&mut set, Phase::MultiSequencePrompt, 3, right);
            pass(&mut set, Phase::Decode, 1, Padding::default());
            if set.max_append_tokens().is_none_or(|most| most >= 2) {
                pass(&mut set, Phase::AppendKnown, 2, Padding::default());
            }
            if round < 5 {
                most = most.max(set.masks.len());
            }
        }
        // Two steps for each of three rules, and the plain causal one; or so many for each row.
        assert!(set.masks.len() <= most.max(14), "{}", set.masks.len());
        // Others do not share it.
        assert_eq!((set.fork().unwrap().masks.len(), plan.make().masks.len()), (0, 0));
    }
}
