//! Binding a graph's declared layers to a composition: once at load, then fresh caches a request.

use super::denoise;
use crate::backend::Backend;
use crate::cache::{CachePlan, CacheSet, LATENT_CODECS, LayerSize, PlanOptions, StateCodecs};
use crate::capabilities::{DeclaredGraph, GraphCapabilities, graph_capabilities_of};
use crate::composition::{Composition, KvScheme};
use crate::graph::{Autoregressive, LoadedGraph, Method};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};
use crate::{Array, Result};

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

    /// Codecs that save its caches beside the default ones; `None`: the default ones do.
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
        (Method::Autoregressive, typed) => plan(typed.autoregressive()?, &composition)?,
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

/// How the caches of a graph are made whose weights are loaded: one token is passed through it without
/// being computed, which tells what each layer stores. Sizes are known then, and a layer that cannot be
/// kept as the composition says is refused here.
///
/// # Errors
/// Names the layer that cannot be kept so.
pub(crate) fn plan(graph: &dyn Autoregressive, composition: &Composition) -> Result<CachePlan> {
    let layers = graph.cache_layers();
    let options = PlanOptions { paging: graph.cache_paging() };
    let plan = CachePlan::compose(layers, composition, options)?;
    let mut probe = CachePlan::new(layers)?.make();
    let ids = Array::from_slice(&[0_i32], &[1, 1]);
    let mut pass = Pass::begin(&mut probe, Phase::Decode, &ids, Padding::default())?;
    graph.hidden(&mut pass, &ids)?;
    pass.finish()?;
    plan.learned(&probe)
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
    let one = |(queries, size): (&Option<[i32; 2]>, &LayerSize)| {
        let [heads, width] = (*queries)?;
        (!fused.contains(&width)).then_some(Workspace { heads, window: size.most })
    };
    let found = pass.queries().iter().zip(sizes).filter_map(one).collect();
    pass.finish()?;
    Ok(found)
}
