//! When stored columns are rewritten by other codes, and what that forbids.

use mlx_rs::Array;

use super::oracle::Sizes;
use super::properties::affine;
use super::scenario::{Layer, Scenario, Step, bits, composition};
use crate::cache::{CacheLayer, CachePlan, CacheSet, Codes, PlanOptions, Sight, storages};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

const SIZES: Sizes = Sizes { heads: 2, kv_heads: 1, dim: 32 };

/// Layers that are rewritten at six tokens, beside the oracle.
fn scenario(start: i32) -> Scenario {
    let layer = |declared: CacheLayer, sight: Sight| Layer {
        declared,
        sight,
        codes: Codes(affine(2, 32).to_vec()),
        start: Some(start),
        tolerance: 2e-4,
        latent: false,
        indexed: false,
    };
    let layers = vec![
        layer(CacheLayer::new(&storages::FULL), Sight::All),
        layer(CacheLayer::new(&storages::SLIDING).with("window", 4), Sight::Window(4)),
    ];
    Scenario::new(SIZES, layers, bits(2, Some(i64::from(start))), None)
}

/// What a draft reaches and is taken back rewrites nothing; what is kept does.
#[test]
fn drafts_that_are_taken_back_rewrite_nothing() {
    let _alone = crate::alone();
    let steps = [
        Step::Prompt(3),
        // Up to the sixth, of which one is kept.
        Step::Verify(3, vec![1]),
        Step::Verify(2, vec![0]),
        Step::Decode,
        Step::Verify(1, vec![1]),
        Step::Verify(4, vec![2]),
        Step::Decode,
    ];
    scenario(6).run(&steps);
    // Rows of unequal lengths are rewritten one after the other.
    let steps = [
        Step::Prompt(2),
        Step::Extend(3),
        Step::Verify(3, vec![1, 3]),
        Step::Verify(1, vec![1, 0]),
        Step::Known(2),
        Step::Verify(2, vec![2, 1]),
        Step::Decode,
    ];
    scenario(6).run(&steps);
}

fn pass(set: &mut CacheSet, phase: Phase, n: i32) -> crate::Result<()> {
    let ids = Array::from_slice(&vec![0_i32; n as usize], &[1, n]);
    let mut pass = Pass::begin(set, phase, &ids, Padding::default())?;
    let x = mlx_rs::ops::ones::<f32>(&[1, 1, n, 32])?;
    let scores = crate::cache::Scores { scale: 1.0, softcap: None, sinks: None };
    pass.attend(crate::cache::Slot::new(0), &x, &x, &x, scores)?;
    pass.finish()
}

fn set(start: Option<i64>) -> CacheSet {
    let layers = [CacheLayer::new(&storages::FULL)];
    let record = composition(bits(8, start), None);
    CachePlan::compose(&layers, &record, PlanOptions::default()).unwrap().make()
}

#[test]
fn spans_of_single_steps_end_where_columns_are_rewritten() {
    let _alone = crate::alone();
    let mut set = set(Some(6));
    assert_eq!(set.max_append_tokens(), Some(6));
    pass(&mut set, Phase::Prompt, 4).unwrap();
    assert_eq!((set.max_append_tokens(), set.reusable_from()), (Some(2), 0));
    for phase in [Phase::Verify, Phase::AppendKnown] {
        let error = pass(&mut set, phase, 3).unwrap_err().to_string();
        assert_eq!(
            error,
            "tokens of a span: expected at most 2, after which stored tokens are rewritten, found 3"
        );
    }
    // The refusals left the set as it was; a prompt may go on.
    pass(&mut set, Phase::Prompt, 5).unwrap();
    assert_eq!((set.max_append_tokens(), set.reusable_from()), (None, 9));
    // Trimming by hand stays possible and changes neither.
    set.trim(7).unwrap();
    assert_eq!((set.max_append_tokens(), set.reusable_from()), (None, 9));
    assert_eq!(set.fork().unwrap().reusable_from(), 9);
    assert_eq!(set.extract(0).unwrap().reusable_from(), 9);
}

#[test]
fn what_is_rewritten_at_once_is_kept_for_any_prompt() {
    let _alone = crate::alone();
    for start in [None, Some(0)] {
        let mut set = set(start);
        assert_eq!(set.max_append_tokens(), start.map(|_| 1));
        pass(&mut set, Phase::Prompt, 4).unwrap();
        assert_eq!((set.max_append_tokens(), set.reusable_from()), (None, 0));
    }
}
