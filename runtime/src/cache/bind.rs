//! Binding a graph's declared layers to a composition: once at load, then fresh caches a request.

use super::plan::{CachePlan, PlanOptions};
use super::set::CacheSet;
use crate::backend::Backend;
use crate::capabilities::{DeclaredGraph, GraphCapabilities, graph_capabilities_of};
use crate::composition::{Composition, KvScheme};
use crate::generate::denoise;
use crate::graph::{LoadedGraph, Method};
use crate::pass::{Padding, Pass, Phase};
use crate::{Array, Result};

/// Codecs that save caches. A file names those that wrote it and is read by the same.
#[derive(Debug, PartialEq, Eq)]
pub struct StateCodecs {
    /// Their name in files.
    pub id: &'static str,
}

/// What saves every cache that needs no codecs of its own.
pub static DEFAULT_CODECS: StateCodecs = StateCodecs { id: "default" };

/// What saves latents under a scheme or in pages, and plain ones too.
pub static LATENT_CODECS: StateCodecs = StateCodecs { id: "latent" };

/// A graph with everything that its load decided.
#[derive(Debug)]
pub struct BoundGraph {
    graph: DeclaredGraph,
    capabilities: GraphCapabilities,
    composition: Composition,
    plan: CachePlan,
    state_codecs: Option<&'static StateCodecs>,
    workspace: Vec<Workspace>,
}

/// What the scores of one layer's attention need, where the device holds them all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workspace {
    /// Heads of queries.
    pub heads: i32,
    /// Keys that are kept at most; `None`: all.
    pub window: Option<i32>,
}

impl BoundGraph {
    /// The graph with its weights.
    pub fn graph(&self) -> &LoadedGraph {
        self.graph.graph()
    }

    /// The graph with its declaration.
    pub fn declared(&self) -> &DeclaredGraph {
        &self.graph
    }

    /// What it can do.
    pub fn capabilities(&self) -> &GraphCapabilities {
        &self.capabilities
    }

    /// What the load decided.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// How its caches are made.
    pub fn cache_plan(&self) -> &CachePlan {
        &self.plan
    }

    /// A fresh set of caches, without rows.
    pub fn make_cache(&self) -> CacheSet {
        self.plan.make()
    }

    /// The layers whose scores bound the chunks of a prompt; none where the graph declares no bound.
    pub fn workspace(&self) -> &[Workspace] {
        &self.workspace
    }

    /// Codecs beside the default ones; `None`: the default ones save these caches.
    pub fn state_codecs(&self) -> Option<&'static StateCodecs> {
        self.state_codecs
    }
}

/// A fresh set of caches for a graph's layers under a composition. Layers that may keep pages do so
/// where the composition has them and the graph declares paging; latents wherever it has them.
///
/// # Errors
/// Names the layer that cannot be kept so. Nothing stays behind: no layer has a buffer before the
/// first append.
pub fn compose_graph_caches(graph: &DeclaredGraph, composition: &Composition) -> Result<CacheSet> {
    let options = PlanOptions { paging: graph.cache_paging() };
    Ok(CachePlan::compose(graph.cache_layers(), composition, options)?.make())
}

/// Binds a graph to a composition: checks what it promises, and resolves how its caches are made.
///
/// # Errors
/// The graph lacks a phase or a step that it declares; or a layer cannot be kept as the composition
/// says, also where only what it stores of a token tells. What was made on the way is given back.
pub fn bind_graph_caches(graph: DeclaredGraph, composition: Composition) -> Result<BoundGraph> {
    graph.check_promises()?;
    let plan = match (graph.declaration().method, graph.graph()) {
        (Method::Autoregressive, typed) => CachePlan::bind(typed.autoregressive()?, &composition)?,
        (_, LoadedGraph::Denoising(typed)) => denoise::plan(&**typed)?,
        (_, typed) => CachePlan::new(typed.cache_layers())?,
    };
    let latent = graph.cache_layers().iter().any(|layer| layer.storage() == "latent");
    let coded = *composition.kv() != KvScheme::Bf16 || composition.paged_kv().is_some();
    let state_codecs = (latent && coded).then_some(&LATENT_CODECS);
    let capabilities = graph_capabilities_of(&graph);
    let reads_prompts = graph.declaration().method != Method::Embedding;
    let workspace = if reads_prompts && graph.declaration().prefill.bounded_workspace {
        workspace(&graph, &plan)?
    } else {
        Vec::new()
    };
    Ok(BoundGraph { graph, capabilities, composition, plan, state_codecs, workspace })
}

/// Passes one token through the graph without computing it, to see the queries of its layers. Its
/// caches are plain ones: converting would compute.
fn workspace(graph: &DeclaredGraph, plan: &CachePlan) -> Result<Vec<Workspace>> {
    let fused = Backend::current()?.fused_heads();
    let mut probe = CachePlan::new(graph.cache_layers())?.make();
    let ids = Array::from_slice(&[0_i32], &[1, 1]);
    let pass = Pass::begin(&mut probe, Phase::Decode, &ids, Padding::default())?;
    let mut pass = pass.noting_queries();
    match graph.graph() {
        LoadedGraph::Denoising(typed) => typed.encode(&mut pass, &ids)?,
        typed => typed.autoregressive()?.hidden(&mut pass, &ids)?,
    };
    let sizes = plan.sizes().unwrap_or_default();
    let one = |(queries, size): (&Option<[i32; 2]>, &super::LayerSize)| {
        let [heads, width] = (*queries)?;
        (!fused.contains(&width)).then_some(Workspace { heads, window: size.most })
    };
    let found = pass.queries().iter().zip(sizes).filter_map(one).collect();
    pass.finish()?;
    Ok(found)
}
