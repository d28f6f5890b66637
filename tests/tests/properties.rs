//! What must hold of every family whatever its numbers are, on the models of the parity cases:
//!
//! 1. a prompt in pieces, or one by one, gives what it gives at once;
//! 2. a row of a batch gives what it gives alone, filled up in front or behind;
//! 3. a span that is verified and partly taken back leaves what stepping leaves;
//! 4. tokens that are appended and trimmed leave no trace, or the trim is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use specc_runtime::cache::CacheSet;
use specc_tests::case::Case;
use specc_tests::compare::relative_difference;
use specc_tests::engine::{Cache, Model, Side};

struct Check<'a> {
    model: &'a Model,
    ids: &'a [i32],
    /// Logits of each id, one by one through a cache.
    stepped: Vec<Vec<f32>>,
    tolerance: f64,
}

impl<'a> Check<'a> {
    fn new(model: &'a Model, case: &'a Case) -> Result<Self> {
        let (ids, _) = case.ints("ids")?;
        let mut caches = model.caches(&Cache::Plain)?;
        let stepped =
            ids.iter().map(|id| model.append(&mut caches, &[&[*id]])).collect::<Result<_>>()?;
        Ok(Self { model, ids, stepped, tolerance: case.tolerance("chunked")? })
    }

    /// `ours` are logits of the ids from `from` on.
    fn same(&self, what: &str, ours: &[f32], from: usize) -> Result<()> {
        let width = self.stepped.first().map_or(1, Vec::len);
        let expected = self
            .stepped
            .get(from..from + ours.len() / width)
            .context("more logits than ids")?
            .concat();
        let difference = relative_difference(ours, &expected)?;
        ensure!(
            difference <= self.tolerance,
            "{what}: {difference:.1e} off, {:.0e} allowed",
            self.tolerance
        );
        Ok(())
    }

    fn filled(&self, count: usize) -> Result<CacheSet> {
        let mut caches = self.model.caches(&Cache::Plain)?;
        self.model.append(&mut caches, &[&self.ids[..count]])?;
        Ok(caches)
    }

    fn in_pieces(&self) -> Result<()> {
        for sizes in [&[24][..], &[9, 7, 8], &[1, 15, 1, 7], &[3, 21]] {
            let logits = self.model.chunked(self.ids, sizes, &Cache::Plain)?;
            self.same(&format!("in pieces of {sizes:?}"), &logits, 0)?;
        }
        Ok(())
    }

    fn in_a_batch(&self, side: Side) -> Result<()> {
        let lengths = [13, 20, 1, 9];
        let rows: Vec<&[i32]> = lengths.iter().map(|n| &self.ids[..*n]).collect();
        let mut caches = self.model.caches(&Cache::Plain)?;
        let prompts = self.model.append_uneven(&mut caches, &rows, side)?;
        for (n, logits) in lengths.iter().zip(&prompts) {
            self.same(&format!("a prompt of {n} filled up ({side:?})"), logits, 0)?;
        }
        for step in 0..4 {
            let next: Vec<&[i32]> =
                lengths.iter().map(|n| &self.ids[n + step..=n + step]).collect();
            let logits = self.model.append(&mut caches, &next)?;
            let width = logits.len() / lengths.len();
            for (n, row) in lengths.iter().zip(logits.chunks(width)) {
                self.same(
                    &format!("step {step} after a prompt of {n} filled up ({side:?})"),
                    row,
                    n + step,
                )?;
            }
        }
        Ok(())
    }

    /// Drafts of which the first `right` are what follows, the rest something else.
    fn draft(&self, at: usize, right: usize, depth: usize) -> Vec<i32> {
        (0..=depth)
            .map(|i| if i <= right { self.ids[at + i] } else { (self.ids[at + i] + 1) % 160 })
            .collect()
    }

    fn verified(&self) -> Result<()> {
        let mut caches = self.filled(6)?;
        let mut at = 6;
        for right in [3, 0, 2, 1, 3] {
            let logits = self.model.verify(&mut caches, &[&self.draft(at, right, 3)])?;
            let width = logits.len() / 4;
            self.same(
                &format!("a span at {at}, {right} of 3 drafts right"),
                &logits[..(right + 1) * width],
                at,
            )?;
            caches.resolve(&[i32::try_from(right + 1)?])?;
            at += right + 1;
        }
        let logits = self.model.append(&mut caches, &[&[self.ids[at]]])?;
        self.same("a step after spans", &logits, at)
    }

    fn verified_rows(&self) -> Result<()> {
        let mut caches = self.model.caches(&Cache::Plain)?;
        let mut at = [5, 11];
        let rows: Vec<&[i32]> = at.iter().map(|n| &self.ids[..*n]).collect();
        self.model.append_uneven(&mut caches, &rows, Side::Left)?;
        for right in [[2, 0], [1, 2], [0, 0]] {
            let spans = [self.draft(at[0], right[0], 2), self.draft(at[1], right[1], 2)];
            let logits = self.model.verify(&mut caches, &[&spans[0], &spans[1]])?;
            let width = logits.len() / 6;
            for (b, row) in logits.chunks(3 * width).enumerate() {
                self.same(
                    &format!("row {b} of spans at {at:?}"),
                    &row[..(right[b] + 1) * width],
                    at[b],
                )?;
            }
            caches.resolve(&right.map(|r| r + 1).map(|k| k as i32))?;
            at = [at[0] + right[0] + 1, at[1] + right[1] + 1];
        }
        let logits = self.model.append(&mut caches, &[&[self.ids[at[0]]], &[self.ids[at[1]]]])?;
        for (b, row) in logits.chunks(logits.len() / 2).enumerate() {
            self.same(&format!("row {b} of a step after spans"), row, at[b])?;
        }
        Ok(())
    }

    fn trimmed(&self) -> Result<()> {
        for (kept, extra) in [(16, 5), (4, 2), (12, 1)] {
            let mut caches = self.filled(kept)?;
            self.model.append(&mut caches, &[&vec![7; extra]])?;
            let able = caches.can_trim(i32::try_from(extra)?);
            let done = caches.trim(i32::try_from(extra)?);
            ensure!(able == done.is_ok(), "a trim of {extra} that can be: {able}, was: {done:?}");
            if able {
                let logits = self.model.append(&mut caches, &[&self.ids[kept..]])?;
                self.same(&format!("{extra} trimmed after {kept}"), &logits, kept)?;
            } else {
                // A refusal changes nothing: the set goes on.
                self.model.append(&mut caches, &[&[7]])?;
            }
        }
        Ok(())
    }
}

type Property = (&'static str, fn(&Check<'_>) -> Result<()>);

const PROPERTIES: [Property; 6] = [
    ("in pieces", |check| check.in_pieces()),
    ("left-padded batch", |check| check.in_a_batch(Side::Left)),
    ("right-padded batch", |check| check.in_a_batch(Side::Right)),
    ("verified spans", |check| check.verified()),
    ("verified rows", |check| check.verified_rows()),
    ("trimmed", |check| check.trimmed()),
];

fn run(case: &Case) -> Result<(), String> {
    let model = Model::load(&case.dir).map_err(|error| format!("{error:#}"))?;
    let check = Check::new(&model, case).map_err(|error| format!("{error:#}"))?;
    let failures: Vec<String> = PROPERTIES
        .iter()
        .filter_map(|(name, property)| {
            property(&check).err().map(|error| format!("{name}: {error:#}"))
        })
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Models whose numbers do not depend on how ids are cut: float32, and no base that grows with the length.
fn fits(case: &Case) -> bool {
    let odd = |f: &String| f.starts_with("quant:") || f == "rope:dynamic";
    case.info.weights == "float32" && !case.info.features.iter().any(odd)
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One thread owns MLX.
    arguments.test_threads = Some(1);
    let cases = match Case::all(&Case::root()) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials = cases
        .into_iter()
        .filter(fits)
        .map(|case| Trial::test(case.name.clone(), move || run(&case).map_err(Failed::from)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
