//! The composition record: everything about a load that can be decided once, and is.

mod config;
mod kv;
mod resolve;

pub use config::kv_config;
pub use kv::{
    AffineKernels, KvOverride, KvRequest, KvScheme, LayerScheme, PagingKind, SchemeKind, Start,
    TurboBits,
};
pub use resolve::{
    CHUNK_VARIABLE, CompositionRequest, DEFAULT_MAX_ROWS, DraftRequest, PREFILL_CHUNK_TOKENS,
    PagingRequest, machine_composition, resolve_composition,
};

use serde::Serialize;

/// Tokens that are drafted each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum DraftDepth {
    /// So many, 0 without a drafter.
    Fixed(u32),
    /// As many as pay, up to `max`.
    Adaptive {
        /// Always true.
        adaptive: bool,
        /// The most.
        max: u32,
    },
}

/// Keys and values in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Paging {
    /// Positions of a page.
    pub block_size: u32,
    /// Whether reads go through the page table instead of gathering pages first.
    pub direct: bool,
}

/// What a load decided. It does not change, and it is part of the key of stored caches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Composition {
    /// Where MLX computes.
    pub device: String,
    /// How keys and values are stored.
    pub kv: KvScheme,
    /// Pages; `None`: one buffer a layer.
    pub paged_kv: Option<Paging>,
    /// The window that layers which keep all positions are cut down to, when one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_kv: Option<u32>,
    /// Tokens drafted each round.
    pub draft_depth: DraftDepth,
    /// Tokens of a part of a prompt.
    pub prefill_chunk_tokens: u32,
    /// Rows of one forward.
    pub max_rows: u32,
    /// One argmax over the rows of a step, where all are greedy.
    pub vector_greedy_sampling: bool,
    /// One forward carries decoding rows and a part of a prompt.
    pub mixed_prefill: bool,
    /// Prompt tokens that such a forward carries.
    pub mixed_token_budget: u32,
    /// The last token of a prompt goes alone.
    pub prefill_tail_split: bool,
    /// Continuations that a grammar forces are appended in one span.
    pub grammar_jump: bool,
    /// Drafts are the likeliest tokens.
    pub greedy_draft: bool,
}

impl Composition {
    /// Whether pages are asked for, and how they are read.
    pub fn paging(&self) -> PagingKind {
        match &self.paged_kv {
            None => PagingKind::Off,
            Some(Paging { direct: true, .. }) => PagingKind::Direct,
            Some(_) => PagingKind::Gathered,
        }
    }

    /// A short text that differs where stored keys and values do: `bf16`, `kv4-g32-start512`,
    /// `turbo-k8v3`, and what comes with them.
    pub fn cache_key(&self) -> String {
        let mut key = self.kv.key();
        if let Some(paging) = &self.paged_kv {
            key += &format!("-pages{}", paging.block_size);
        }
        if let Some(window) = self.max_kv {
            key += &format!("-max{window}");
        }
        key
    }
}

#[cfg(test)]
mod tests;
