//! A set in which something failed halfway is unusable for good.

use mlx_rs::Array;

use super::persistence::identity;
use crate::cache::{CacheLayer, CachePlan, CacheSet, Scores, Slot, storages};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};
use crate::{Error, Result};

fn plan() -> CachePlan {
    CachePlan::new(&[CacheLayer::new(&storages::FULL), CacheLayer::new(&storages::RECURRENT)])
        .unwrap()
}

/// Passes tokens; what is taken back of them is refused, and of `Err` the pass is left halfway.
fn pass(set: &mut CacheSet, phase: Phase, n: i32, whole: bool) -> Result<()> {
    let ids = Array::from_slice(&vec![0_i32; n as usize], &[1, n]);
    let mut pass = Pass::begin(set, phase, &ids, Padding::default())?;
    let x = mlx_rs::ops::ones::<f32>(&[1, 1, n, 8])?;
    let scores = Scores { scale: 1.0, softcap: None, sinks: None };
    pass.attend(Slot::new(0), &x, &x, &x, scores)?;
    if !whole {
        return Err(Error::cache("a layer failed"));
    }
    let state = mlx_rs::ops::ones::<f32>(&[1, 2])?;
    let replay = |_: Option<&Array>, _: &[i32]| Err(Error::cache("no way back"));
    pass.state(Slot::new(1))?.set(state, Box::new(replay))?;
    pass.finish()
}

fn filled() -> CacheSet {
    let mut set = plan().make();
    pass(&mut set, Phase::Prompt, 4, true).unwrap();
    set
}

/// Whatever is asked of it is refused, again and again.
fn refuses(mut set: CacheSet, why: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caches");
    let mut good = filled();
    for _ in 0..2 {
        let tokens = vec![vec![0_u32; set.tokens(0).max(0) as usize]];
        let said = [
            set.check().unwrap_err(),
            pass(&mut set, Phase::Prompt, 1, true).unwrap_err(),
            pass(&mut set, Phase::ReadBlock, 1, true).unwrap_err(),
            set.resolve(&[0]).unwrap_err(),
            set.resolve(&[2]).unwrap_err(),
            set.trim(0).unwrap_err(),
            set.filter(&[0]).unwrap_err(),
            set.extend(&filled()).unwrap_err(),
            good.extend(&set).unwrap_err(),
            set.extract(0).map(drop).unwrap_err(),
            set.fork().map(drop).unwrap_err(),
            set.save(&file, &identity(), "bf16", &tokens).unwrap_err(),
        ];
        for error in said {
            assert_eq!(error.to_string(), format!("cache: unusable: {why}"));
        }
        assert!(!file.exists());
    }
    // Others are as they were.
    pass(&mut good, Phase::Decode, 1, true).unwrap();
}

#[test]
fn a_pass_that_fails_halfway_ends_the_set() {
    let _alone = crate::alone();
    for phase in [Phase::Prompt, Phase::Verify, Phase::AppendKnown] {
        let mut set = filled();
        pass(&mut set, phase, 2, false).unwrap_err();
        refuses(set, "a pass over it failed");
    }
    // A block that was only looked at leaves no trace.
    let mut set = filled();
    pass(&mut set, Phase::ReadBlock, 2, false).unwrap_err();
    pass(&mut set, Phase::Prompt, 2, true).unwrap();
}

#[test]
fn a_span_that_cannot_be_taken_back_ends_the_set() {
    let _alone = crate::alone();
    let mut set = filled();
    pass(&mut set, Phase::Verify, 2, true).unwrap();
    // What makes no sense changes nothing.
    set.resolve(&[3]).unwrap_err();
    set.resolve(&[1, 1]).unwrap_err();
    let error = set.resolve(&[1]).unwrap_err().to_string();
    assert_eq!(error, "cache: no way back");
    refuses(set, "cache: no way back");
    let mut set = filled();
    pass(&mut set, Phase::Verify, 2, true).unwrap();
    set.resolve(&[2]).unwrap();
    pass(&mut set, Phase::Decode, 1, true).unwrap();
}
