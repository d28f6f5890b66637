//! A graph in parts that may be missing.

use std::fmt;

use super::Declaration;
use crate::cache::{CacheLayer, CacheSet};
use crate::graph::Autoregressive;
use crate::pass::Pass;
use crate::phase::Phase;
use crate::{Array, Error, Result};

/// One phase: ids [B, L] -> hidden states [B, L, hidden], in a pass of that phase.
pub type Forward = Box<dyn Fn(&mut Pass<'_>, &Array) -> Result<Array>>;

/// The head: hidden states [B, L, hidden] -> logits [B, L, vocab].
pub type Head = Box<dyn Fn(&Array) -> Result<Array>>;

/// One text as one vector: ids [1, L] -> \[hidden\].
pub type PooledVector = Box<dyn Fn(&Array) -> Result<Array>>;

/// Media as what the graph's first layer takes: an array of the form that it declares -> vectors
/// [1, N, hidden].
pub type MediaInputs = Box<dyn Fn(&Array) -> Result<Array>>;

/// Makes the compiled decode step.
pub type MakeDecodeStep = Box<dyn Fn() -> Result<Box<dyn CompiledDecodeStep>>>;

/// What a step of [`CompiledDecodeStep`] gives.
#[derive(Debug, Clone)]
pub struct DecodeStep {
    /// [1, 1, vocab]
    pub logits: Array,
    /// Arrays to evaluate with the logits.
    pub eval_with: Vec<Array>,
}

/// One token through a graph as one compiled closure.
pub trait CompiledDecodeStep {
    /// Whether these caches can be stepped; cheap, and changes nothing.
    fn accepts(&self, caches: &CacheSet) -> bool;

    /// One token, uint32 \[1\], which need not be computed yet.
    ///
    /// # Errors
    /// The caches are as they were then.
    fn step(&self, token: &Array, caches: &mut CacheSet) -> Result<DecodeStep>;
}

/// What stands in an operation's place.
pub enum Provided<F> {
    /// The operation.
    Function(F),
    /// Something else, such as a flag of an older declaration.
    Other(serde_json::Value),
}

/// A graph written by hand, in parts. Each part may be missing; whether what it declares can be done
/// is checked by [`declared_graph`](super::declared_graph) and
/// [`token_phases_of`](super::token_phases_of), where a load binds it.
///
/// A graph that is one type implements [`Autoregressive`] instead, and the compiler of Rust checks it.
#[derive(Default)]
pub struct GraphRegistration {
    /// What it declares.
    pub graph_capabilities: Option<Declaration>,
    /// What each slot remembers.
    pub cache_layers: Vec<CacheLayer>,
    /// Whether layers that keep all positions may keep them in pages.
    pub cache_paging: bool,
    /// A part of the prompts.
    pub prompt: Option<Forward>,
    /// Parts of several prompts of unequal lengths.
    pub multi_sequence_prompt: Option<Forward>,
    /// One token a row.
    pub decode: Option<Forward>,
    /// A pending token and drafts.
    pub verify: Option<Forward>,
    /// Tokens that are decided already.
    pub append_known: Option<Forward>,
    /// The head.
    pub logits: Option<Head>,
    /// One vector of one text.
    pub embed_pooled: Option<Provided<PooledVector>>,
    /// Vectors in place of tokens.
    pub bind_media_input: Option<MediaInputs>,
    /// Pixels in place of tokens.
    pub pixel_input: Option<MediaInputs>,
    /// A decode as one closure.
    pub compiled_decode_step: Option<MakeDecodeStep>,
}

impl GraphRegistration {
    /// The first phase that an autoregressive graph needs and this one lacks.
    pub(super) fn missing_phase(&self) -> Option<&'static str> {
        let phases = [
            ("prompt", self.prompt.is_some()),
            ("multiSequencePrompt", self.multi_sequence_prompt.is_some()),
            ("decode", self.decode.is_some()),
            ("verify", self.verify.is_some()),
            ("appendKnown", self.append_known.is_some()),
            ("logits", self.logits.is_some()),
        ];
        phases.into_iter().find(|(_, there)| !there).map(|(name, _)| name)
    }
}

/// Which phase is missing, as binding says it.
pub(super) fn lacks(phase: &str) -> Error {
    Error::Capability(format!(
        "the graph declares the autoregressive method but provides no {phase} phase"
    ))
}

impl Autoregressive for GraphRegistration {
    fn cache_layers(&self) -> &[CacheLayer] {
        &self.cache_layers
    }

    fn cache_paging(&self) -> bool {
        self.cache_paging
    }

    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array> {
        let (name, forward) = match cx.phase() {
            Phase::Prompt | Phase::Whole => ("prompt", &self.prompt),
            Phase::MultiSequencePrompt => ("multiSequencePrompt", &self.multi_sequence_prompt),
            Phase::Decode => ("decode", &self.decode),
            Phase::Verify => ("verify", &self.verify),
            Phase::AppendKnown => ("appendKnown", &self.append_known),
            Phase::ReadBlock => {
                return Err(Error::Unsupported("this graph reads no blocks".into()));
            }
        };
        match forward {
            Some(forward) => forward(cx, ids),
            None => Err(lacks(name)),
        }
    }

    fn logits(&self, hidden: &Array) -> Result<Array> {
        match &self.logits {
            Some(head) => head(hidden),
            None => Err(lacks("logits")),
        }
    }
}

impl fmt::Debug for GraphRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphRegistration")
            .field("graph_capabilities", &self.graph_capabilities)
            .field("cache_layers", &self.cache_layers)
            .field("cache_paging", &self.cache_paging)
            .field("missing_phase", &self.missing_phase())
            .finish_non_exhaustive()
    }
}
