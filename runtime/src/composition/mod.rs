//! The composition record: everything about a load that can be decided once, and is.

mod config;
mod kv;
mod resolve;

pub(crate) use config::FILE as KV_CONFIG;
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

/// What a load decided: it is resolved once, does not change, and is part of the key of stored
/// caches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Composition {
    device: String,
    kv: KvScheme,
    paged_kv: Option<Paging>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_kv: Option<u32>,
    draft_depth: DraftDepth,
    prefill_chunk_tokens: u32,
    #[serde(skip)]
    prefill_chunk_asked: bool,
    max_rows: u32,
    vector_greedy_sampling: bool,
    mixed_prefill: bool,
    mixed_token_budget: u32,
    prefill_tail_split: bool,
    grammar_jump: bool,
    greedy_draft: bool,
}

impl Composition {
    /// Where MLX computes.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// How keys and values are stored.
    pub fn kv(&self) -> &KvScheme {
        &self.kv
    }

    /// Pages; `None`: one buffer a layer.
    pub fn paged_kv(&self) -> Option<Paging> {
        self.paged_kv
    }

    /// The window that layers which keep all positions are cut down to, when one was asked for.
    pub fn max_kv(&self) -> Option<u32> {
        self.max_kv
    }

    /// Tokens drafted each round.
    pub fn draft_depth(&self) -> DraftDepth {
        self.draft_depth
    }

    /// Tokens of a part of a prompt.
    pub fn prefill_chunk_tokens(&self) -> u32 {
        self.prefill_chunk_tokens
    }

    /// Whether the caller or the environment asked for that number, which is not made smaller then.
    pub fn prefill_chunk_asked(&self) -> bool {
        self.prefill_chunk_asked
    }

    /// Rows of one forward.
    pub fn max_rows(&self) -> u32 {
        self.max_rows
    }

    /// One argmax over the rows of a step, where all are greedy.
    pub fn vector_greedy_sampling(&self) -> bool {
        self.vector_greedy_sampling
    }

    /// One forward carries decoding rows and a part of a prompt.
    pub fn mixed_prefill(&self) -> bool {
        self.mixed_prefill
    }

    /// Prompt tokens that such a forward carries.
    pub fn mixed_token_budget(&self) -> u32 {
        self.mixed_token_budget
    }

    /// The last token of a prompt goes alone.
    pub fn prefill_tail_split(&self) -> bool {
        self.prefill_tail_split
    }

    /// Continuations that a grammar forces are appended in one span.
    pub fn grammar_jump(&self) -> bool {
        self.grammar_jump
    }

    /// Drafts are the likeliest tokens.
    pub fn greedy_draft(&self) -> bool {
        self.greedy_draft
    }

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
