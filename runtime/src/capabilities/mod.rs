//! What a graph declares about itself, and the check that it provides what it promises.
//!
//! A declaration says only what differs from an ordinary autoregressive graph. [`declared_graph`]
//! checks it once, where a load binds the graph; everything after that asks the result.
//!
//! Graphs that the compiler wrote implement a trait for each method, so that one which lacks a phase
//! does not compile:
//!
//! ```compile_fail,E0046
//! use specc_runtime::cache::CacheSet;
//! use specc_runtime::graph::TokenPhases;
//! use specc_runtime::phase::Padding;
//! use specc_runtime::{Array, Result};
//!
//! struct Graph;
//!
//! // `verify` is missing.
//! impl TokenPhases for Graph {
//!     fn prompt(&self, _: &mut CacheSet, x: &Array) -> Result<Array> { Ok(x.clone()) }
//!     fn multi_sequence_prompt(&self, _: &mut CacheSet, x: &Array, _: Padding) -> Result<Array> {
//!         Ok(x.clone())
//!     }
//!     fn decode(&self, _: &mut CacheSet, x: &Array) -> Result<Array> { Ok(x.clone()) }
//!     fn append_known(&self, _: &mut CacheSet, x: &Array) -> Result<Array> { Ok(x.clone()) }
//!     fn logits(&self, x: &Array) -> Result<Array> { Ok(x.clone()) }
//! }
//! ```
//!
//! and neither does one without the forward that all phases share, or without its head:
//!
//! ```compile_fail,E0046
//! use specc_runtime::cache::CacheLayer;
//! use specc_runtime::graph::Autoregressive;
//! use specc_runtime::{Array, Result};
//!
//! struct Graph;
//!
//! // `hidden` is missing.
//! impl Autoregressive for Graph {
//!     fn cache_layers(&self) -> &[CacheLayer] { &[] }
//!     fn logits(&self, x: &Array) -> Result<Array> { Ok(x.clone()) }
//! }
//! ```
//!
//! A graph written by hand in parts is a [`GraphRegistration`]; what it promises and lacks is found
//! at binding.

mod declared;
mod registration;

pub use declared::{
    DeclaredGraph, compiled_decode_step_of, declared_graph, graph_capabilities_of, token_phases_of,
};
pub use registration::{
    CompiledDecodeStep, DecodeStep, Forward, GraphRegistration, Head, MakeDecodeStep, MediaInputs,
    PooledVector, Provided,
};

use serde::{Deserialize, Deserializer, Serialize};

use crate::graph::Method;
use crate::{Error, Result};

/// What a graph takes beside tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MediaInput {
    /// Vectors that stand in for tokens.
    #[serde(rename = "embeddings")]
    Embeddings,
    /// The same, with positions of their own.
    #[serde(rename = "embeddings+positions")]
    EmbeddingsAndPositions,
    /// Pixels of images.
    #[serde(rename = "pixels")]
    Pixels,
}

impl MediaInput {
    /// As declarations spell it.
    pub fn word(self) -> &'static str {
        match self {
            MediaInput::Embeddings => "embeddings",
            MediaInput::EmbeddingsAndPositions => "embeddings+positions",
            MediaInput::Pixels => "pixels",
        }
    }
}

/// Images, sound or video beside tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// In which form.
    pub input: MediaInput,
    /// Whether video is among them.
    #[serde(default)]
    pub video: bool,
}

/// Prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct PrefillDeclaration {
    /// Chunks are made smaller until the scores of attention fit a bound.
    pub bounded_workspace: bool,
}

/// In which requests drafted tokens may be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct SpeculationDeclaration {
    /// Those with adapters.
    pub adapters: bool,
    /// Those that ask for log-probabilities.
    pub logprobs: bool,
    /// Those whose tokens the caller supplies.
    pub external_tokens: bool,
    /// Those whose grammar proposes tokens.
    pub grammar_proposals: bool,
}

/// Verification in ordinary rounds only: what a graph declares whose attention caps its scores.
pub const ORDINARY_VERIFICATION: SpeculationDeclaration = SpeculationDeclaration {
    adapters: false,
    logprobs: false,
    external_tokens: false,
    grammar_proposals: false,
};

/// Kinds of draft heads that come with a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DraftKind {
    /// A layer that predicts the token after the next.
    CheckpointMtp,
}

/// A draft head that comes with the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeDraft {
    /// Its kind.
    pub kind: DraftKind,
    /// Tokens that it drafts each round.
    pub num_draft_tokens: u32,
}

/// What a graph declares: facts that nothing else tells, with no word on storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct GraphDeclaration {
    /// How it is run.
    pub method: Method,
    /// What it takes beside tokens.
    pub media: Option<Media>,
    /// It provides a compiled decode step.
    pub compiled_decode: bool,
    /// Its attention picks positions.
    pub sparse_attention: bool,
    /// It reports the output of each layer.
    pub hidden_layer_taps: bool,
    /// A draft head of its own.
    pub native_draft: Option<NativeDraft>,
    /// Prompts.
    pub prefill: PrefillDeclaration,
    /// Drafted tokens.
    pub speculation: SpeculationDeclaration,
}

impl GraphDeclaration {
    /// An ordinary autoregressive graph: verification in requests of every kind, no media, no
    /// compiled step, prompts in chunks of any size.
    pub const ORDINARY: GraphDeclaration = GraphDeclaration {
        method: Method::Autoregressive,
        media: None,
        compiled_decode: false,
        sparse_attention: false,
        hidden_layer_taps: false,
        native_draft: None,
        prefill: PrefillDeclaration { bounded_workspace: false },
        speculation: SpeculationDeclaration {
            adapters: true,
            logprobs: true,
            external_tokens: true,
            grammar_proposals: true,
        },
    };
}

/// What a graph does differently from [`GraphDeclaration::ORDINARY`]. It may come from JSON.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declaration {
    /// How it is run.
    pub method: Option<Method>,
    /// What it takes beside tokens.
    pub media: Option<Media>,
    /// It provides a compiled decode step.
    pub compiled_decode: Option<bool>,
    /// Its attention picks positions.
    pub sparse_attention: Option<bool>,
    /// It reports the output of each layer.
    pub hidden_layer_taps: Option<bool>,
    /// A draft head of its own.
    pub native_draft: Option<NativeDraft>,
    /// Prompts; what is absent keeps its default.
    pub prefill: PrefillWords,
    /// Drafted tokens; what is absent keeps its default.
    pub speculation: SpeculationWords,
    /// No declaration may hold this, whatever its value: the operation speaks for itself.
    #[serde(deserialize_with = "whatever")]
    pub embeddings: Option<serde_json::Value>,
}

/// The part of a [`Declaration`] about prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrefillWords {
    /// Chunks are made smaller until the scores of attention fit a bound.
    pub bounded_workspace: Option<bool>,
}

/// The part of a [`Declaration`] about drafted tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpeculationWords {
    /// In requests with adapters.
    pub adapters: Option<bool>,
    /// In requests that ask for log-probabilities.
    pub logprobs: Option<bool>,
    /// In requests whose tokens the caller supplies.
    pub external_tokens: Option<bool>,
    /// In requests whose grammar proposes tokens.
    pub grammar_proposals: Option<bool>,
}

/// A value that is there, be it null.
fn whatever<'de, D: Deserializer<'de>>(value: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(value).map(Some)
}

/// A whole declaration: [`GraphDeclaration::ORDINARY`] and what the graph does differently. Keys
/// replace the default; those of `prefill` and `speculation` one by one.
///
/// # Errors
/// The declaration holds an `embeddings` flag.
pub fn declare_graph(declared: &Declaration) -> Result<GraphDeclaration> {
    if declared.embeddings.is_some() {
        return Err(Error::Capability(EMBEDDINGS_FLAG.into()));
    }
    let base = GraphDeclaration::ORDINARY;
    let speculation = declared.speculation;
    Ok(GraphDeclaration {
        method: declared.method.unwrap_or(base.method),
        media: declared.media.or(base.media),
        compiled_decode: declared.compiled_decode.unwrap_or(base.compiled_decode),
        sparse_attention: declared.sparse_attention.unwrap_or(base.sparse_attention),
        hidden_layer_taps: declared.hidden_layer_taps.unwrap_or(base.hidden_layer_taps),
        native_draft: declared.native_draft.or(base.native_draft),
        prefill: PrefillDeclaration {
            bounded_workspace: declared
                .prefill
                .bounded_workspace
                .unwrap_or(base.prefill.bounded_workspace),
        },
        speculation: SpeculationDeclaration {
            adapters: speculation.adapters.unwrap_or(base.speculation.adapters),
            logprobs: speculation.logprobs.unwrap_or(base.speculation.logprobs),
            external_tokens: speculation
                .external_tokens
                .unwrap_or(base.speculation.external_tokens),
            grammar_proposals: speculation
                .grammar_proposals
                .unwrap_or(base.speculation.grammar_proposals),
        },
    })
}

const EMBEDDINGS_FLAG: &str =
    "pooled embedding support is declared by embedPooled, not an embeddings flag";

/// What a checked graph can do: its declaration, and what follows from the operations that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct GraphCapabilities {
    /// What it declares.
    #[serde(flatten)]
    pub declared: GraphDeclaration,
    /// It turns a text into one vector.
    pub embeddings: bool,
}

#[cfg(test)]
mod tests;
