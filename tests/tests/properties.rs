//! What must hold of every family whatever its numbers are, on the models of the parity cases:
//!
//! 1. a prompt in pieces, or one by one, gives what it gives at once;
//! 2. a row of a batch gives what it gives alone, filled up in front or behind;
//! 3. a span that is verified and partly taken back leaves what stepping leaves;
//! 4. tokens that are appended and trimmed leave no trace, or the trim is refused;
//! 5. experts compute the same whether rows are grouped or in order, and attention over latents whether
//!    queries are taken to them or keys and values are rebuilt, in prompts and in steps. Which models
//!    have either, the graphs say.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use specc_runtime::cache::{CachePlan, CacheSet};
use specc_runtime::graph::{Denoiser, LoadedGraph};
use specc_runtime::pass::Pass;
use specc_runtime::phase::{Binding, Padding, Phase};
use specc_runtime::weights::LoadOptions;
use specc_runtime::{Array, Dtype, generate, ops};
use specc_tests::case::Case;
use specc_tests::compare::relative_difference;
use specc_tests::engine::{Cache, Model, Side, family_of};
use specc_tests::graphs::{EXPERTS, Graphs, LATENTS};

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

/// Something that a pass computes in two ways.
struct TwoWays {
    name: &'static str,
    /// What a graph does it with.
    items: &'static [&'static str],
    /// Which of them.
    bind: fn(bool) -> Binding,
}

const TWO_WAYS: [TwoWays; 2] = [
    TwoWays {
        name: "experts",
        items: EXPERTS,
        bind: |grouped| Binding { grouped: Some(grouped), absorbed: None },
    },
    TwoWays {
        name: "latents",
        items: LATENTS,
        bind: |absorbed| Binding { grouped: None, absorbed: Some(absorbed) },
    },
];

fn alike(what: &str, [one, other]: [Vec<f32>; 2], tolerance: f64) -> Result<()> {
    let difference = relative_difference(&one, &other)?;
    ensure!(difference <= tolerance, "{what}: {difference:.1e} off, {tolerance:.0e} allowed");
    Ok(())
}

/// Three rows of a prompt, then steps; quantised weights stay so.
fn in_two_ways(dir: &Path, ways: [Binding; 2]) -> Result<()> {
    let case = Case::read(dir)?;
    let model = Model::load_with(&case.dir, LoadOptions { keep_quantized: true })?;
    let (ids, _) = case.ints("ids")?;
    let tolerance = case.tolerance("chunked")?;
    let rows: Vec<Vec<i32>> = [0, 5, 11].map(|n| [&ids[n..], &ids[..n]].concat()).into();
    let part = |from: usize, to: usize| rows.iter().map(|row| &row[from..to]).collect::<Vec<_>>();
    let mut caches = [model.caches(&Cache::Plain)?, model.caches(&Cache::Plain)?];
    for (from, to) in [(0, 17), (17, 20)].into_iter().chain((20..24).map(|n| (n, n + 1))) {
        let mut both = [Vec::new(), Vec::new()];
        for ((caches, way), logits) in caches.iter_mut().zip(ways).zip(&mut both) {
            *logits = model.append_bound(caches, &part(from, to), way)?;
        }
        alike(&format!("tokens {from} to {to}"), both, tolerance)?;
    }
    Ok(())
}

/// A prompt and the canvas after it.
fn canvas_in_two_ways(dir: &Path, ways: [Binding; 2]) -> Result<()> {
    let families = specc_families::families();
    let model = generate::Model::load(families, dir, LoadOptions { keep_quantized: true })?;
    let LoadedGraph::Denoising(graph) = model.graph() else { bail!("no graph that denoises") };
    let graph: &dyn Denoiser = &**graph;
    let ids = |from: i32, n: i32| {
        let ids: Vec<i32> = (from..from + n).map(|i| i * 37 % 120).collect();
        Array::from_slice(&ids, &[1, n])
    };
    let (prompt, canvas) = (ids(1, 20), ids(60, 16));
    let run = |way| -> Result<[Vec<f32>; 2]> {
        let mut caches = CachePlan::new(graph.cache_layers())?.make();
        let padding = Padding::default;
        let mut pass = Pass::begin(&mut caches, Phase::Prompt, &prompt, padding())?;
        pass = pass.with_binding(way);
        let hidden = graph.encode(&mut pass, &prompt)?;
        pass.finish()?;
        let signal = Array::zeros::<f32>(&[1, canvas.dim(1), hidden.dim(2)])?;
        let mut pass = Pass::begin(&mut caches, Phase::ReadBlock, &canvas, padding())?;
        pass = pass.with_binding(way);
        let logits = graph.denoise(&mut pass, &canvas, &signal)?;
        pass.finish()?;
        let flat = |x: &Array| -> Result<Vec<f32>> {
            let x = ops::reshape(&ops::cast(x, Dtype::Float32)?, &[-1])?;
            x.eval()?;
            Ok(x.as_slice::<f32>().to_vec())
        };
        Ok([flat(&hidden)?, flat(&logits)?])
    };
    let ([hidden, logits], [other, others]) = (run(ways[0])?, run(ways[1])?);
    alike("the prompt", [hidden, other], 2e-4)?;
    alike("the canvas", [logits, others], 2e-4)
}

/// A trial for each model whose graph does something in two ways; no family that may is left out.
fn two_ways(cases: &[Case]) -> Result<Vec<Trial>> {
    let graphs = Graphs::new();
    let mut trials = Vec::new();
    for TwoWays { name, items, bind } in TWO_WAYS {
        let ways = [false, true].map(bind);
        let wanted = graphs.with(items);
        ensure!(!wanted.is_empty(), "no family has {name}");
        let mut tried = BTreeSet::new();
        let mut add = |folder: &Path, run: fn(&Path, [Binding; 2]) -> Result<()>| {
            let family = family_of(folder)?;
            if graphs.uses(family, folder, items)? {
                tried.insert(family);
                let shown = folder.file_name().unwrap_or_default().to_string_lossy();
                let folder = folder.to_owned();
                trials.push(Trial::test(format!("{shown}::{name}"), move || {
                    run(&folder, ways).map_err(|error| Failed::from(format!("{error:#}")))
                }));
            }
            anyhow::Ok(())
        };
        for case in cases {
            add(&case.dir, in_two_ways)?;
        }
        let canvases = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/diffusion_gemma");
        for model in ["tiny", "tiny-q"] {
            add(&canvases.join(model), canvas_in_two_ways)?;
        }
        // A graph may be written for an heir, whose models alone have them.
        let heirs = |family| tried.iter().any(|heir| graphs.base_of(heir) == Some(family));
        let missing = wanted.iter().filter(|family| !tried.contains(*family) && !heirs(family));
        let missing: Vec<String> = missing.map(|family| (*family).to_owned()).collect();
        trials.push(Trial::test(format!("no family's {name} are left out"), move || {
            if missing.is_empty() { Ok(()) } else { Err(missing.join(", ").into()) }
        }));
    }
    Ok(trials)
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
    // Those of another folder need not be of all families.
    let own = std::env::var_os("SPECC_PARITY_DIR").is_none();
    let mut trials = match own.then(|| two_ways(&cases)).transpose() {
        Ok(trials) => trials.unwrap_or_default(),
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let each = cases.into_iter().filter(fits);
    trials.extend(
        each.map(|case| Trial::test(case.name.clone(), move || run(&case).map_err(Failed::from))),
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}
