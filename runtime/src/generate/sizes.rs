//! What a layer's cache takes, asked of the graph itself.

use super::Model;
use super::generation::row;
use crate::Result;
use crate::array::dtype_bytes;
use crate::cache::LayerCache;
use crate::graph::{LoadedGraph, TokenPhases};

/// Bytes of a layer's cache for one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSize {
    /// For each token, until a window is full.
    pub per_token: u64,
    /// Whatever the length.
    pub fixed: u64,
}

impl Model {
    /// Each layer's cache. A forward of one token is built for it and never computed, so that the
    /// answer is what the graph really keeps.
    ///
    /// # Errors
    /// The graph cannot be built.
    pub fn cache_sizes(&self) -> Result<Vec<CacheSize>> {
        let LoadedGraph::Autoregressive(graph) = self.graph() else { return Ok(Vec::new()) };
        let mut caches = self.cache_plan().make();
        let _hidden = graph.prompt(&mut caches, &row(&[0])?)?;
        let bytes = |array: &mlx_rs::Array, without: Option<usize>| {
            let axes = array.shape().iter().enumerate();
            let count: u64 =
                axes.filter(|(i, _)| Some(*i) != without).map(|(_, n)| *n as u64).product();
            count * dtype_bytes(array.dtype()) as u64
        };
        let size = |layer: &LayerCache| match layer {
            LayerCache::Tokens(cache) => CacheSize {
                per_token: cache.arrays().iter().map(|a| bytes(a, Some(cache.axis()))).sum(),
                fixed: 0,
            },
            LayerCache::States(cache) => CacheSize {
                per_token: 0,
                fixed: cache.states().iter().map(|a| bytes(a, None)).sum(),
            },
            LayerCache::Nothing => CacheSize { per_token: 0, fixed: 0 },
        };
        Ok(caches.layers().iter().map(size).collect())
    }
}
