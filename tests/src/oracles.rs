//! Numbers that programs other than mlx-lm computed: vectors of sentences, and canvases.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use specc_runtime::generate::Model;
use specc_runtime::weights::LoadOptions;
use specc_runtime::{Array, ops};

use crate::case::{Expected, arrays};
use crate::compare::relative_difference;
use crate::report::Finding;

/// What numbers may be off, absolutely, beside what the fixtures of sentences hold.
pub const SENTENCES: f32 = 1e-5;

/// The same for the logits of canvases, which reach 30.
pub const CANVASES: f32 = 1e-3;

/// A text with its ids.
#[derive(Debug, Deserialize)]
pub struct Sentence {
    /// The text.
    pub text: String,
    /// Its ids, special ones included.
    pub ids: Vec<i32>,
}

/// A folder of this crate's fixtures.
pub fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The sentences whose vectors are known.
///
/// # Errors
/// Where the fixture cannot be read.
pub fn sentences() -> Result<Vec<Sentence>> {
    #[derive(Deserialize)]
    struct Oracle {
        sentences: Vec<Sentence>,
    }
    let text = std::fs::read_to_string(fixtures("minilm").join("expected.json"))?;
    Ok(serde_json::from_str::<Oracle>(&text)?.sentences)
}

/// Vectors of the sentences, alone and through the tokenizer of the encoder in `weights`.
///
/// # Errors
/// Where the encoder cannot be loaded, or its tokenizer gives other ids.
pub fn vectors(weights: &Path) -> Result<Vec<Finding>> {
    let expected = arrays(&fixtures("minilm").join("expected.safetensors"))?;
    let Some(Expected::Float(vectors, _)) = expected.get("embeddings") else {
        bail!("no embeddings")
    };
    let model = Model::load(specc_families::families(), weights, LoadOptions::default())?;
    let mut ours = Vec::new();
    for Sentence { text, ids } in sentences()? {
        let one = model.embed(&text)?;
        ensure!(one.tokens == ids.len(), "{text:?}: {} tokens", one.tokens);
        ensure!(one.cut_from.is_none(), "{text:?} was cut");
        ours.extend(one.vector);
    }
    Ok(vec![finding(&model, "all-MiniLM-L6-v2", "vectors", &ours, vectors, SENTENCES)?])
}

/// Logits of canvases after prompts and blocks, on a model of the fixtures.
///
/// # Errors
/// Where the model cannot be loaded, or a pass fails.
pub fn canvases(name: &str) -> Result<Vec<Finding>> {
    let dir = fixtures(name);
    let expected = arrays(&dir.join("expected.safetensors"))?;
    let ids = |name: &str| match expected.get(name) {
        Some(Expected::Int(ids, _)) => Ok(ids.iter().map(|id| *id as u32).collect::<Vec<_>>()),
        _ => bail!("no ids {name}"),
    };
    let floats = |name: &str| match expected.get(name) {
        Some(Expected::Float(values, shape)) => Ok((values, shape)),
        _ => bail!("no array {name}"),
    };
    let model = Model::load(specc_families::families(), &dir, LoadOptions::default())?;
    let mut findings = Vec::new();
    for p in ["p5", "p8", "p20"] {
        let mut session = model.session();
        let mut check = |session: &mut _, canvas: &str, fed: bool, array: &str| -> Result<()> {
            let (values, shape) = floats(&format!("{p}.soft_embeddings"))?;
            let shape = shape.iter().map(|n| *n as i32).collect::<Vec<_>>();
            let signal = fed.then(|| Array::from_slice(values, &shape));
            let canvas = ids(&format!("{p}.{canvas}"))?;
            let logits = model.canvas_logits(session, &canvas, signal.as_ref())?;
            let logits = ops::reshape(&logits, &[-1])?;
            logits.eval()?;
            let array = format!("{p}.{array}.logits");
            let (values, _) = floats(&array)?;
            findings.push(finding(&model, name, &array, logits.as_slice(), values, CANVASES)?);
            Ok(())
        };
        model.append(&mut session, &ids(&format!("{p}.prompt_ids"))?)?;
        check(&mut session, "canvas1", false, "decoder1")?;
        check(&mut session, "canvas2", true, "decoder2")?;
        model.append(&mut session, &ids(&format!("{p}.block"))?)?;
        check(&mut session, "canvas2", false, "decoder3")?;
        check(&mut session, "canvas2", true, "decoder3_feedback")?;
        model.append(&mut session, &ids(&format!("{p}.block3"))?)?;
        check(&mut session, "canvas1", false, "decoder4")?;
    }
    Ok(findings)
}

/// `allowed` is absolute.
fn finding(
    model: &Model,
    case: &str,
    array: &str,
    ours: &[f32],
    expected: &[f32],
    allowed: f32,
) -> Result<Finding> {
    let unread: Vec<String> = model.unread().iter().map(ToString::to_string).collect();
    ensure!(unread.is_empty(), "keys that nobody reads: {}", unread.join(", "));
    let largest = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    Ok(Finding {
        case: case.to_owned(),
        model_type: model.source().config().model_type().context("no model_type")?.to_owned(),
        family: model.family().name.to_owned(),
        array: array.to_owned(),
        difference: relative_difference(ours, expected)?,
        tolerance: f64::from(allowed / largest),
    })
}
