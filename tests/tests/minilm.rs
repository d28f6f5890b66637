//! Sentence vectors of a real encoder. Needs its weights: `SPECC_MINILM_DIR` (see fixtures/minilm).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use specc_runtime::generate::Model;
use specc_runtime::graph::LoadedGraph;
use specc_runtime::pass::Pass;
use specc_runtime::weights::LoadOptions;
use specc_runtime::{Array, Dtype, ops};
use specc_tests::case::{Expected, arrays};
use specc_tests::oracles::{self, SENTENCES, fixtures};
use specc_tests::report::{self, Finding};

fn model(weights: &Path) -> Result<Model> {
    Ok(Model::load(specc_families::families(), weights, LoadOptions::default())?)
}

fn same(what: &str, ours: &[f32], expected: &[f32]) -> Result<()> {
    ensure!(ours.len() == expected.len(), "{what}: {} values for {}", ours.len(), expected.len());
    let off = ours.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    ensure!(off <= SENTENCES, "{what}: {off:.1e} off, {SENTENCES:.0e} allowed");
    Ok(())
}

/// Texts alone, through the tokenizer.
fn vectors(weights: &Path) -> Result<()> {
    let findings = oracles::vectors(weights)?;
    ensure!(findings.iter().all(Finding::passes), "{}", report::table(&findings));
    Ok(())
}

/// All rows in one padded forward: hidden states at real tokens.
fn hidden_states(weights: &Path) -> Result<()> {
    let expected = arrays(&fixtures("minilm").join("expected.safetensors"))?;
    let ints = |name: &str| match expected.get(name) {
        Some(Expected::Int(values, shape)) => {
            let shape: Vec<i32> = shape.iter().map(|n| *n as i32).collect();
            Ok((values.clone(), Array::from_slice(values, &shape)))
        }
        _ => anyhow::bail!("no {name}"),
    };
    let (_, ids) = ints("input_ids")?;
    let (real, mask) = ints("attention_mask")?;
    let Some(Expected::Float(states, shape)) = expected.get("last_hidden_state") else {
        anyhow::bail!("no last_hidden_state")
    };
    let width = shape.last().copied().unwrap_or(1);
    let model = model(weights)?;
    let LoadedGraph::Embedding(graph) = model.graph() else { anyhow::bail!("no encoder") };
    let mut pass = Pass::whole(&ids, Some(&mask))?;
    let ours = ops::cast(&graph.hidden(&mut pass, &ids)?, Dtype::Float32)?;
    let ours = ops::reshape(&ours, &[-1])?;
    ours.eval()?;
    let ours = ours.as_slice::<f32>();
    for (at, (a, b)) in ours.chunks(width).zip(states.chunks(width)).enumerate() {
        if real.get(at).context("fewer marks than tokens")? == &1 {
            same(&format!("token {at}"), a, b)?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One thread owns MLX.
    arguments.test_threads = Some(1);
    let weights = std::env::var_os("SPECC_MINILM_DIR").map(PathBuf::from);
    let absent = weights.is_none();
    let weights = weights.unwrap_or_default();
    let trials =
        [("vectors", vectors as fn(&Path) -> Result<()>), ("hidden_states", hidden_states)].map(
            |(name, run)| {
                let weights = weights.clone();
                let test =
                    move || run(&weights).map_err(|error| Failed::from(format!("{error:#}")));
                Trial::test(name, test).with_ignored_flag(absent)
            },
        );
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}
