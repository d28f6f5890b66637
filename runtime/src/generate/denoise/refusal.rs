//! What denoising has no place for.

use thiserror::Error;

use crate::composition::{Composition, DraftDepth, KvScheme};
use crate::generate::Options;

/// Why a request or a composition cannot be denoised.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The temperatures of the steps are the method's.
    #[error(
        "temperature {0}: a model that denoises blocks takes none, its method sets one for each step"
    )]
    Temperature(f32),
    /// A grammar constrains one next token at a time.
    #[error("grammar: a model that denoises blocks chooses no token after another")]
    Grammar,
    /// There is no next token to draft.
    #[error("drafts: a model that denoises blocks verifies no drafted tokens")]
    Drafts,
    /// A token is chosen by many passes, none of which has its probability.
    #[error("log-probabilities: a model that denoises blocks has none for its tokens")]
    LogProbabilities,
    /// Penalties go by the tokens said before.
    #[error("penalties: a model that denoises blocks chooses all tokens of a block at once")]
    Penalties,
    /// Biases are processors of logits as penalties are.
    #[error("logit bias: a model that denoises blocks takes its logits as they are")]
    LogitBias,
    /// The canvas reads keys and values beside its own.
    #[error(
        "quantised KV ({0}): a model that denoises blocks keeps its keys and values as they are"
    )]
    QuantisedKv(String),
    /// The same for pages.
    #[error(
        "paged KV: a model that denoises blocks keeps its keys and values in one buffer a layer"
    )]
    PagedKv,
    /// Its layers see what their family says.
    #[error("KV window {0}: a model that denoises blocks keeps what its layers declare")]
    KvWindow(u32),
}

impl Refusal {
    /// What of a composition cannot be.
    ///
    /// # Errors
    /// The first thing found.
    pub fn of_composition(composition: &Composition) -> Result<(), Self> {
        if *composition.kv() != KvScheme::Bf16 {
            return Err(Self::QuantisedKv(composition.kv().key()));
        }
        if composition.paged_kv().is_some() {
            return Err(Self::PagedKv);
        }
        if let Some(window) = composition.max_kv() {
            return Err(Self::KvWindow(window));
        }
        if composition.draft_depth() != DraftDepth::Fixed(0) {
            return Err(Self::Drafts);
        }
        if composition.grammar_jump() {
            return Err(Self::Grammar);
        }
        Ok(())
    }

    /// What of a request cannot be.
    ///
    /// # Errors
    /// The first thing found.
    pub fn of_options(options: &Options) -> Result<(), Self> {
        if options.sampling.temperature > 0.0 {
            return Err(Self::Temperature(options.sampling.temperature));
        }
        if options.logprobs {
            return Err(Self::LogProbabilities);
        }
        if !options.penalties.logit_bias.is_empty() {
            return Err(Self::LogitBias);
        }
        if !options.penalties.is_off() {
            return Err(Self::Penalties);
        }
        Ok(())
    }
}
