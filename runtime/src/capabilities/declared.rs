//! A graph with its declaration, and what the two provide together.

use std::cell::OnceCell;
use std::fmt;

use super::registration::{CompiledDecodeStep, Provided, lacks};
use super::{EMBEDDINGS_FLAG, GraphCapabilities, GraphDeclaration, MediaInput, declare_graph};
use crate::cache::CacheLayer;
use crate::family::{Family, TextVector};
use crate::graph::{LoadedGraph, TokenPhases};
use crate::{Error, Result};

/// A graph whose declaration was checked against the operations that it provides.
pub struct DeclaredGraph {
    graph: LoadedGraph,
    declaration: GraphDeclaration,
    /// How hidden states become the vector of a text, where the family says it.
    pooling: Option<TextVector>,
    step: OnceCell<Box<dyn CompiledDecodeStep>>,
}

impl fmt::Debug for DeclaredGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredGraph")
            .field("graph", &self.graph)
            .field("declaration", &self.declaration)
            .finish_non_exhaustive()
    }
}

impl DeclaredGraph {
    /// The graph with its weights.
    pub fn graph(&self) -> &LoadedGraph {
        &self.graph
    }

    /// What it declares.
    pub fn declaration(&self) -> &GraphDeclaration {
        &self.declaration
    }

    /// What each slot remembers.
    pub fn cache_layers(&self) -> &[CacheLayer] {
        self.graph.cache_layers()
    }

    /// Whether layers that keep all positions may keep them in pages.
    pub fn cache_paging(&self) -> bool {
        self.graph.cache_paging()
    }
}

/// Checks a graph against its declaration: a family's, or the registration's own. What a graph of
/// traits provides is its type's affair, so that only what no trait has can be lacking there.
///
/// # Errors
/// The first of: no declaration, an `embeddings` flag, an `embedPooled` that is no function, media
/// without the operation that takes them.
pub fn declared_graph(family: &Family, graph: LoadedGraph) -> Result<DeclaredGraph> {
    let error = |text: &str| Err(Error::Capability(text.into()));
    let declaration = match &graph {
        LoadedGraph::Registered(parts) => {
            let Some(declared) = &parts.graph_capabilities else {
                return error("the graph must declare its capabilities (graphCapabilities)");
            };
            if declared.embeddings.is_some() {
                return error(EMBEDDINGS_FLAG);
            }
            if let Some(Provided::Other(_)) = &parts.embed_pooled {
                return error("the graph's embedPooled operation must be a function");
            }
            declare_graph(declared)?
        }
        _ => family.declaration,
    };
    let (binds, pixels) = match &graph {
        LoadedGraph::Registered(parts) => {
            (parts.bind_media_input.is_some(), parts.pixel_input.is_some())
        }
        _ => (false, false),
    };
    match declaration.media.map(|media| media.input) {
        Some(MediaInput::Pixels) if !pixels => {
            return error("the graph declares pixel media input but provides no pixelInput");
        }
        Some(input) if input != MediaInput::Pixels && !binds => {
            let input = input.word();
            return Err(Error::Capability(format!(
                "the graph declares {input} media input but provides no bindMediaInput"
            )));
        }
        _ => {}
    }
    Ok(DeclaredGraph { graph, declaration, pooling: family.embedding, step: OnceCell::new() })
}

/// What a checked graph can do. Whether it turns texts into vectors is told by its operation alone.
pub fn graph_capabilities_of(graph: &DeclaredGraph) -> GraphCapabilities {
    let embeddings = match &graph.graph {
        LoadedGraph::Registered(parts) => {
            matches!(parts.embed_pooled, Some(Provided::Function(_)))
        }
        LoadedGraph::Autoregressive(_) | LoadedGraph::Embedding(_) => graph.pooling.is_some(),
        LoadedGraph::Denoising(_) => false,
    };
    GraphCapabilities { declared: graph.declaration, embeddings }
}

/// The phases of an autoregressive graph; none for a graph of another method.
///
/// # Errors
/// A graph that declares the method lacks a phase; the first one is named.
pub fn token_phases_of(graph: &DeclaredGraph) -> Result<Option<&dyn TokenPhases>> {
    if graph.declaration.method != crate::graph::Method::Autoregressive {
        return Ok(None);
    }
    match &graph.graph {
        LoadedGraph::Registered(parts) => match parts.missing_phase() {
            Some(phase) => Err(lacks(phase)),
            None => Ok(Some(&**parts)),
        },
        LoadedGraph::Autoregressive(typed) => Ok(Some(typed)),
        LoadedGraph::Embedding(_) | LoadedGraph::Denoising(_) => Err(lacks("prompt")),
    }
}

/// The compiled decode step of a graph that declares one, made on first use and kept by the graph;
/// none for every other graph.
///
/// # Errors
/// The graph declares a step and provides none, or making it fails.
pub fn compiled_decode_step_of(graph: &DeclaredGraph) -> Result<Option<&dyn CompiledDecodeStep>> {
    if !graph.declaration.compiled_decode {
        return Ok(None);
    }
    if let Some(step) = graph.step.get() {
        return Ok(Some(&**step));
    }
    let make = match &graph.graph {
        LoadedGraph::Registered(parts) => parts.compiled_decode_step.as_ref(),
        _ => None,
    };
    let Some(make) = make else { return Err(no_step()) };
    let step = make()?;
    Ok(Some(&**graph.step.get_or_init(|| step)))
}

fn no_step() -> Error {
    Error::Capability(
        "the graph declares a compiled decode step but provides no compiledDecodeStep".into(),
    )
}

impl DeclaredGraph {
    /// All that binding asks beyond the declaration: phases, and a compiled step without making it.
    pub(crate) fn check_promises(&self) -> Result<()> {
        token_phases_of(self)?;
        let provides = match &self.graph {
            LoadedGraph::Registered(parts) => parts.compiled_decode_step.is_some(),
            _ => false,
        };
        if self.declaration.compiled_decode && !provides {
            return Err(no_step());
        }
        Ok(())
    }
}
