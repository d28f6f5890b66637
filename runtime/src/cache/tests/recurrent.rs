//! Layers whose states do not grow, driven by random steps beside rows that are computed afresh.

use mlx_rs::Array;
use proptest::prelude::*;

use super::oracle::{self, Sizes};
use super::persistence::identity;
use super::properties::cases;
use super::scenario::{Step, steps};
use crate::cache::{CacheLayer, CachePlan, CacheSet, LayerCache, Scores, Slot, storages};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

const SIZES: Sizes = Sizes { heads: 1, kv_heads: 1, dim: 2 };

/// Tokens of a row, in a pass or from its beginning on.
type Tokens = Vec<[f32; 2]>;

fn token(row: u64, position: i32) -> [f32; 2] {
    let x = oracle::vector(SIZES, row, 0, 1, position, 0);
    [x[0], x[1]]
}

fn tokens(row: u64, from: i32, n: i32) -> Tokens {
    (from..from + n).map(|position| token(row, position)).collect()
}

/// A fading sum of tokens, [2].
fn sum(before: [f32; 2], tokens: &[[f32; 2]]) -> [f32; 2] {
    tokens.iter().fold(before, |s, x| [0.5 * s[0] + x[0], 0.5 * s[1] + x[1]])
}

/// The last token, [2].
fn last(before: [f32; 2], tokens: &[[f32; 2]]) -> [f32; 2] {
    tokens.last().copied().unwrap_or(before)
}

type Update = fn([f32; 2], &[[f32; 2]]) -> [f32; 2];

/// Two mixers with a state each, of unlike shapes.
const MIXERS: [(Update, &[i32]); 2] = [(sum, &[2]), (last, &[1, 2])];

/// The state after the first `keep[b]` tokens of each row.
fn updated(
    (update, shape): (Update, &[i32]),
    before: Option<&Array>,
    rows: &[Tokens],
    keep: &[i32],
) -> Array {
    let before = match before {
        Some(before) => before.to_vec_cast::<f32>().unwrap(),
        None => vec![0.0; 2 * rows.len()],
    };
    let rows = rows.iter().zip(before.chunks(2)).zip(keep);
    let data: Vec<f32> = rows
        .flat_map(|((tokens, s), keep)| update([s[0], s[1]], &tokens[..*keep as usize]))
        .collect();
    let shape: Vec<i32> =
        std::iter::once(data.len() as i32 / 2).chain(shape.iter().copied()).collect();
    Array::from_slice(&data, &shape)
}

struct Runner {
    plan: CachePlan,
    set: CacheSet,
    /// Rows by what tells them apart, and their tokens.
    rows: Vec<(u64, i32)>,
    next: u64,
}

impl Runner {
    fn new() -> Runner {
        let layers = [CacheLayer::new(&storages::RECURRENT), CacheLayer::new(&storages::FULL)];
        let plan = CachePlan::new(&layers).unwrap();
        Runner { set: plan.make(), plan, rows: vec![(0, 0)], next: 1 }
    }

    fn pass(&mut self, phase: Phase, n: i32, lengths: &[i32]) {
        let b = self.rows.len() as i32;
        let missing: Vec<i32> = lengths.iter().map(|length| n - length).collect();
        let padding = match (missing.iter().any(|m| *m > 0), self.set.rows() == 0) {
            (false, _) => Padding::default(),
            (true, true) => Padding { left: missing, right: Vec::new() },
            (true, false) => Padding { left: Vec::new(), right: missing },
        };
        let ids = Array::from_slice(&vec![0_i32; (b * n) as usize], &[b, n]);
        let rows: Vec<Tokens> =
            self.rows.iter().zip(lengths).map(|((id, at), n)| tokens(*id, *at, *n)).collect();
        let mut pass = Pass::begin(&mut self.set, phase, &ids, padding).unwrap();
        for mixer in MIXERS {
            let part = pass.state(Slot::new(0)).unwrap();
            assert_eq!(part.armed(), phase == Phase::Verify);
            let state = updated(mixer, part.before().as_ref(), &rows, lengths);
            let rows = rows.clone();
            let replay =
                move |before: Option<&Array>, keep: &[i32]| Ok(updated(mixer, before, &rows, keep));
            part.set(state, Box::new(replay)).unwrap();
        }
        let x = mlx_rs::ops::ones::<f32>(&[b, 1, n, 2]).unwrap();
        let scores = Scores { scale: 1.0, softcap: None, sinks: None };
        pass.attend(Slot::new(1), &x, &x, &x, scores).unwrap();
        pass.finish().unwrap();
        if phase != Phase::ReadBlock {
            self.rows.iter_mut().zip(lengths).for_each(|((_, at), length)| *at += length);
        }
    }

    fn step(&mut self, step: &Step) {
        let n = self.rows.len();
        let begun = self.set.rows() > 0;
        let mut even = |phase, length: i32| self.pass(phase, length, &vec![length; n]);
        match step {
            Step::Prompt(length) => even(Phase::Prompt, *length),
            Step::Decode => even(Phase::Decode, 1),
            Step::Known(length) => even(Phase::AppendKnown, *length),
            Step::Block(length) => even(Phase::ReadBlock, *length),
            Step::Uneven(lengths) => {
                let lengths: Vec<i32> = (0..n).map(|b| lengths[b % lengths.len()]).collect();
                let longest = lengths.iter().copied().max().unwrap_or(0);
                if longest > 0 {
                    self.pass(Phase::MultiSequencePrompt, longest, &lengths);
                }
            }
            Step::Verify(length, keep) => {
                even(Phase::Verify, *length);
                let keep: Vec<i32> = (0..n).map(|b| keep[b % keep.len()] % (length + 1)).collect();
                self.set.resolve(&keep).unwrap();
                self.rows.iter_mut().zip(&keep).for_each(|((_, at), keep)| *at += keep - length);
            }
            // A state cannot be cut back.
            Step::Trim(length) => {
                assert!(!self.set.can_trim(*length));
                self.set.trim(*length).unwrap_err();
            }
            Step::Filter(keep) if begun => {
                // In any order.
                let mut keep: Vec<usize> = keep.iter().rev().map(|k| k % n).collect();
                keep.dedup();
                self.set.filter(&keep).unwrap();
                self.rows = keep.iter().map(|&b| self.rows[b]).collect();
            }
            Step::Extend(length) if begun && n < 4 => {
                let before = std::mem::replace(&mut self.rows, vec![(self.next, 0)]);
                let running = std::mem::replace(&mut self.set, self.plan.make());
                self.next += 1;
                self.pass(Phase::Prompt, *length, &[*length]);
                let joining = std::mem::replace(&mut self.set, running);
                self.set.extend(&joining).unwrap();
                let joined = std::mem::replace(&mut self.rows, before);
                self.rows.extend(joined);
            }
            Step::Extract(b) if begun => {
                self.set = self.set.extract(b % n).unwrap();
                self.rows = vec![self.rows[b % n]];
            }
            Step::Fork => self.set = self.set.fork().unwrap(),
            Step::Save if begun => {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("caches");
                let tokens: Vec<Vec<u32>> =
                    self.rows.iter().map(|(_, at)| (0..*at as u32).collect()).collect();
                self.set.save(&file, &identity(), "bf16", &tokens).unwrap();
                let (set, read) = self.plan.load(&file, &identity(), "bf16").unwrap();
                assert_eq!(read, tokens);
                self.set = set;
            }
            Step::Filter(_) | Step::Extend(_) | Step::Extract(_) | Step::Save => {}
        }
    }

    fn compare(&self, after: &Step) {
        let LayerCache::States(cache) = &self.set.layers()[0] else { panic!("no states") };
        let some = self.rows.iter().any(|(_, at)| *at > 0);
        assert!(cache.states().len() == MIXERS.len() || !some && cache.states().is_empty());
        for ((update, _), state) in MIXERS.iter().zip(cache.states()) {
            let want: Vec<f32> = self
                .rows
                .iter()
                .flat_map(|(id, at)| update([0.0; 2], &tokens(*id, 0, *at)))
                .collect();
            assert_eq!(state.to_vec_cast::<f32>().unwrap(), want, "after {after:?}");
        }
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn states_are_those_of_their_tokens(steps in steps()) {
        let _alone = crate::alone();
        let mut runner = Runner::new();
        for step in &steps {
            runner.step(step);
            runner.compare(step);
        }
    }
}
