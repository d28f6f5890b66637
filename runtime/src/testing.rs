//! Families and graphs that tests make up.

use std::path::PathBuf;

use serde_json::Value;

use crate::cache::{CacheLayer, Scores, Slot};
use crate::capabilities::{Declaration, Forward, GraphDeclaration, GraphRegistration};
use crate::family::{ChatFormat, Family, Tier};
use crate::graph::{LoadedGraph, Method};
use crate::pass::Pass;
use crate::profile::FamilyProfile;
use crate::weights::{ModelSource, Synthetic};
use crate::{Array, Dtype, Result, ops};

/// A family that takes every configuration of the type `acme`.
pub fn family() -> Family {
    Family {
        name: "acme",
        model_types: &["acme"],
        tier: Tier::Targeted,
        label: Some("Acme"),
        conditional: false,
        method: Method::Autoregressive,
        declaration: GraphDeclaration::ORDINARY,
        profile: FamilyProfile::new("acme", "acme-dedicated"),
        denoising: None,
        gguf: None,
        chat: ChatFormat::UNSAID,
        embedding: None,
        accepts: |_| Ok(true),
        load: |_| Ok(LoadedGraph::Registered(Box::new(attention(&[64])))),
    }
}

/// A record that lives as long as the process.
pub fn leak(family: Family) -> &'static Family {
    Box::leak(Box::new(family))
}

/// A model folder at this path under a folder of the test's, with this configuration and no weights.
pub fn source(path: &str, config: &Value) -> (tempfile::TempDir, ModelSource) {
    let folder = tempfile::tempdir().unwrap();
    let at: PathBuf = folder.path().join(path);
    std::fs::create_dir_all(&at).unwrap();
    let file = at.join("config.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let weights = Synthetic { dtype: Dtype::Float32, quantisation: None, seed: 0 };
    let source = ModelSource::synthetic(&file, weights).unwrap();
    (folder, source)
}

/// A graph of layers that attend with one head of each of these sizes, whose keys, values and queries
/// are the ids themselves.
pub fn attention(heads: &[i32]) -> GraphRegistration {
    let heads = heads.to_vec();
    let count = heads.len();
    let forward = || -> Option<Forward> {
        let heads = heads.clone();
        Some(Box::new(move |cx: &mut Pass<'_>, ids: &Array| -> Result<Array> {
            let (rows, tokens) = (ids.dim(0), ids.dim(1));
            let mut out = None;
            for (slot, width) in (0..).zip(&heads) {
                let x = ops::reshape(&ops::cast(ids, Dtype::Float32)?, &[rows, 1, tokens, 1])?;
                let x = mlx_rs::ops::broadcast_to(&x, &[rows, 1, tokens, *width])?;
                let scores = Scores { scale: 1.0, softcap: None, sinks: None };
                let y = cx.attend(Slot::new(slot), &x, &x, &x, scores)?;
                out = Some(ops::reshape(&y, &[rows, tokens, *width])?);
            }
            out.ok_or_else(|| crate::Error::Unsupported("a graph without layers".into()))
        }))
    };
    GraphRegistration {
        graph_capabilities: Some(Declaration::default()),
        cache_layers: vec![CacheLayer::new(&crate::cache::storages::FULL); count],
        cache_paging: true,
        prompt: forward(),
        multi_sequence_prompt: forward(),
        decode: forward(),
        verify: forward(),
        append_known: forward(),
        logits: Some(Box::new(|hidden| Ok(hidden.clone()))),
        ..GraphRegistration::default()
    }
}
