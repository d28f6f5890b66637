//! Tokens that see each other both ways, against attention written out.

use mlx_rs::Array;

use super::oracle::{self, Sizes};
use super::properties::{affine, choices};
use super::scenario::{bits, composition};
use crate::cache::{
    CacheLayer, CachePlan, Growth, PagingKind, PlanOptions, Reading, SchemeKind, Scores, Sight,
    Slot,
};
use crate::composition::KvRequest;
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

const SIZES: Sizes = Sizes { heads: 2, kv_heads: 1, dim: 32 };
const TOKENS: i32 = 11;

/// `n` columns of rows that begin at the columns `front`.
fn tensor(kind: u64, heads: usize, front: &[i32], n: i32) -> Array {
    let mut data = Vec::new();
    for (row, front) in (0..).zip(front) {
        for head in 0..heads {
            for t in 0..n {
                data.extend(oracle::vector(SIZES, row, 0, kind, t - front, head));
            }
        }
    }
    Array::from_slice(&data, &[front.len() as i32, heads as i32, n, SIZES.dim as i32])
}

#[test]
fn flagged_tokens_see_each_other() {
    let _alone = crate::alone();
    for (scheme, kv, tolerance) in [
        (SchemeKind::Bf16, KvRequest::default(), 2e-5),
        (SchemeKind::Affine, bits(8, None), 2e-4),
        // The first append is read before it is rewritten.
        (SchemeKind::Affine, bits(4, Some(0)), 2e-5),
    ] {
        for (layer, _, read) in choices(scheme, PagingKind::Off, 4) {
            if read == Reading::Latent {
                continue;
            }
            for front in [[0, 0], [0, 3]] {
                check(&layer, &kv, tolerance, front);
            }
        }
    }
}

fn flagged(row: u64, position: i32) -> bool {
    match row {
        0 => (2..8).contains(&position),
        _ => matches!(position, 0 | 5 | 7),
    }
}

/// Two rows that begin at the columns `front`.
fn check(layer: &CacheLayer, kv: &KvRequest, tolerance: f32, front: [i32; 2]) {
    let sight = match layer.layout().growth {
        Growth::Ring { sees, .. } => sees(layer).unwrap(),
        _ => Sight::All,
    };
    let record = composition(kv.clone(), None);
    let plan =
        CachePlan::compose(std::slice::from_ref(layer), &record, PlanOptions::default()).unwrap();
    let mut set = plan.make();
    let ids = Array::from_slice(&vec![0_i32; 2 * TOKENS as usize], &[2, TOKENS]);
    let padding = Padding { left: front.to_vec(), right: Vec::new() };
    let mut pass = Pass::begin(&mut set, Phase::MultiSequencePrompt, &ids, padding).unwrap();
    // Flags in the padding are no tokens'.
    let flags: Vec<bool> = (0..2_u64)
        .flat_map(|row| {
            (0..TOKENS)
                .map(move |t| t < front[row as usize] || flagged(row, t - front[row as usize]))
        })
        .collect();
    pass = pass.with_flags(&Array::from_slice(&flags, &[2, TOKENS])).unwrap();
    let (q, k, v) = (
        tensor(0, SIZES.heads, &front, TOKENS),
        tensor(1, SIZES.kv_heads, &front, TOKENS),
        tensor(2, SIZES.kv_heads, &front, TOKENS),
    );
    let scores = Scores { scale: 0.5, softcap: None, sinks: None };
    let y = pass.attend(Slot::new(0), &q, &k, &v, scores).unwrap();
    let y = crate::ops::merge(&y).unwrap().to_vec_cast::<f32>().unwrap();
    pass.finish().unwrap();
    let codes = crate::cache::Codes(affine(8, 32).to_vec());
    for row in 0..2_u64 {
        let front = front[row as usize];
        for t in 0..TOKENS - front {
            let sees =
                |k: &i32| *k <= t && sight.sees(t, *k) || flagged(row, t) && flagged(row, *k);
            let seen: Vec<i32> = (0..TOKENS - front).filter(sees).collect();
            let read = |kind: u64, at: i32, head: usize| {
                let x = oracle::vector(SIZES, row, 0, kind, seen[at as usize], head);
                if kv.immediate { oracle::stored(&codes, kind, &x) } else { x }
            };
            let query = |head: usize| oracle::vector(SIZES, row, 0, 0, t, head);
            let last = seen.len() as i32 - 1;
            let want = oracle::attend(SIZES, &Sight::All, 0, last, false, query, read);
            let at = ((row as i32 * TOKENS + front + t) as usize) * want.len();
            for (got, want) in y[at..at + want.len()].iter().zip(&want) {
                assert!(
                    (got - want).abs() <= tolerance,
                    "{} row {row} of {front} token {t}: {got} is not {want}",
                    layer.storage()
                );
            }
        }
    }
}

#[test]
fn flags_are_for_the_first_prompt_of_a_set() {
    let _alone = crate::alone();
    let plan = CachePlan::new(&[crate::cache::CacheLayer::new(&crate::cache::storages::FULL)]);
    let mut set = plan.unwrap().make();
    let ids = Array::from_slice(&[1_i32, 2], &[1, 2]);
    let flags = Array::from_slice(&[true, true], &[1, 2]);
    let wide = Array::from_slice(&[true; 3], &[1, 3]);
    let said = |set: &mut crate::cache::CacheSet, phase: Phase, flags: &Array| {
        let pass = Pass::begin(set, phase, &ids, Padding::default()).unwrap();
        pass.with_flags(flags).map(drop).unwrap_err().to_string()
    };
    let lines = [said(&mut set, Phase::AppendKnown, &flags), said(&mut set, Phase::Prompt, &wide)];
    let mut pass = Pass::begin(&mut set, Phase::Prompt, &ids, Padding::default()).unwrap();
    let x = tensor(1, 1, &[0], 2);
    let scores = Scores { scale: 0.5, softcap: None, sinks: None };
    pass.attend(Slot::new(0), &x, &x, &x, scores).unwrap();
    pass.finish().unwrap();
    let late = said(&mut set, Phase::Prompt, &flags);
    insta::assert_snapshot!([&lines[..], &[late]].concat().join("\n"), @r#"
    cache: tokens that see each other both ways come first, in a prompt
    flags of tokens: expected [1, 2], found [1, 3]
    cache: tokens that see each other both ways come first, in a prompt
    "#);
    // A refusal leaves the set as it was.
    assert_eq!(set.tokens(0), 2);
    set.trim(1).unwrap();
}
