//! Every parity case through the built families: `cargo test -p specc-tests --test parity [-- NAME…]`.
//!
//! `SPECC_PARITY_DIR` takes cases from another folder; `SPECC_WRITE_DOCS=1` writes docs/families.md after a whole run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};
use specc_tests::case::Case;
use specc_tests::compare::relative_difference;
use specc_tests::engine::{Cache, Model};
use specc_tests::oracles;
use specc_tests::report::{self, Finding};

/// Appends of the `chunked` and `kvq*` arrays: 9, 7, then one by one.
fn chunks(length: usize) -> Vec<usize> {
    let mut sizes = vec![9.min(length), 7.min(length.saturating_sub(9))];
    sizes.extend(std::iter::repeat_n(1, length.saturating_sub(16)));
    sizes.retain(|size| *size > 0);
    sizes
}

/// The cache that an array of a `*-kvq` case was computed over.
fn cache_of(array: &str) -> Option<Cache> {
    let rest = array.strip_prefix("kvq")?;
    let (bits, start) = match rest.split_once("_start") {
        Some((bits, start)) => (bits, Some(start.parse().ok()?)),
        None => (rest, None),
    };
    Some(Cache::Affine { bits: bits.parse().ok()?, group_size: 64, start })
}

fn run(case: &Case) -> anyhow::Result<Vec<Finding>> {
    let model = Model::load(&case.dir)?;
    let unread = model.unread();
    let keys: Vec<&str> = unread.iter().filter_map(|key| key.split(" = ").next()).collect();
    if case.is_own() {
        anyhow::ensure!(keys == case.info.unread, "keys that nobody reads: {}", unread.join(", "));
    } else if !unread.is_empty() {
        eprintln!("{}: keys that nobody reads: {}", case.name, unread.join(", "));
    }
    let mut findings = Vec::new();
    let mut note = |array: &str, difference: f64, tolerance: f64| {
        findings.push(Finding {
            case: case.name.clone(),
            model_type: case.info.model_type.clone(),
            family: model.family().to_owned(),
            array: array.to_owned(),
            difference,
            tolerance,
        });
    };
    let (ids, _) = case.ints("ids")?;
    for array in case.arrays.keys() {
        let ours = match array.as_str() {
            "ids" | "batch_ids" => continue,
            "logits" => model.logits(&[ids])?,
            "chunked" => model.chunked(ids, &chunks(ids.len()), &Cache::Plain)?,
            "batch_logits" => {
                let (rows, shape) = case.ints("batch_ids")?;
                let length = shape.last().copied().unwrap_or(1).max(1);
                model.logits(&rows.chunks(length).collect::<Vec<_>>())?
            }
            "greedy" => {
                let (expected, _) = case.ints("greedy")?;
                let ours = model.greedy(ids, expected.len())?;
                let wrong = ours.iter().zip(expected).filter(|(a, b)| a != b).count();
                note(
                    "greedy",
                    wrong as f64,
                    if case.info.greedy_exact { 0.0 } else { expected.len() as f64 },
                );
                continue;
            }
            other => match cache_of(other) {
                Some(cache) => model.chunked(ids, &chunks(ids.len()), &cache)?,
                None => anyhow::bail!("{}: nobody computes {other}", case.name),
            },
        };
        let expected = case.floats(array).unwrap_or_default();
        note(array, relative_difference(&ours, expected)?, case.tolerance(array)?);
    }
    Ok(findings)
}

type Findings = Arc<Mutex<Vec<Finding>>>;

/// A trial that fails where one of its findings does; all are noted.
fn trial(
    name: String,
    findings: &Findings,
    run: impl FnOnce() -> anyhow::Result<Vec<Finding>> + Send + 'static,
) -> Trial {
    let findings = Arc::clone(findings);
    Trial::test(name, move || {
        let found = run().map_err(|error| Failed::from(format!("{error:#}")))?;
        let failed: Vec<Finding> = found.iter().filter(|f| !f.passes()).cloned().collect();
        if let Ok(mut all) = findings.lock() {
            all.extend(found);
        }
        if failed.is_empty() { Ok(()) } else { Err(Failed::from(report::table(&failed))) }
    })
}

/// Models whose numbers are of other programs than mlx-lm.
fn others(findings: &Findings) -> Vec<Trial> {
    let weights = std::env::var_os("SPECC_MINILM_DIR").map(PathBuf::from);
    let absent = weights.is_none();
    let sentences = move || oracles::vectors(&weights.unwrap_or_default());
    let sentences = trial("all-MiniLM-L6-v2".to_owned(), findings, sentences);
    let canvases = ["diffusion_gemma/tiny", "diffusion_gemma/tiny-q"];
    let canvases =
        canvases.map(|name| trial(name.to_owned(), findings, move || oracles::canvases(name)));
    [sentences.with_ignored_flag(absent)].into_iter().chain(canvases).collect()
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
    let findings = Arc::new(Mutex::new(Vec::new()));
    let mut trials: Vec<Trial> = cases
        .into_iter()
        .map(|case| trial(case.name.clone(), &findings, move || run(&case)))
        .collect();
    if std::env::var_os("SPECC_PARITY_DIR").is_none() {
        trials.extend(others(&findings));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let findings = findings.lock().map(|all| all.clone()).unwrap_or_default();
    println!("{}", report::table(&findings));
    if std::env::var_os("SPECC_WRITE_DOCS").is_some() && conclusion.num_filtered_out == 0 {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let written = report::document(&findings, &root.join("specs"))
            .and_then(|text| Ok(std::fs::write(root.join("docs/families.md"), text)?));
        if let Err(error) = written {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    conclusion.exit_code()
}
