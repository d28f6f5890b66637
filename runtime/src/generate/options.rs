//! What a request asks for and what it gets.

use std::time::Duration;

use super::denoise::DenoisingOptions;
use crate::Result;
use crate::sample::{Penalties, Sampling};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The most tokens to generate.
    pub max_tokens: usize,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// How logits are changed before.
    pub penalties: Penalties,
    /// Texts that end the answer and are not part of it.
    pub stop: Vec<String>,
    /// Goes on past end tokens, which are then ordinary ones.
    pub ignore_eos: bool,
    /// Reports each token's log-probability, after penalties.
    pub logprobs: bool,
    /// Fails as soon as a logit is not a number, as happens when float16 overflows.
    pub guard_nan: bool,
    /// Gives text beside ids, which needs a tokenizer.
    pub text: bool,
    /// How blocks are denoised, for models that do so.
    pub denoising: DenoisingOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_tokens: 256,
            sampling: Sampling::default(),
            penalties: Penalties::default(),
            stop: Vec::new(),
            ignore_eos: false,
            logprobs: false,
            guard_nan: false,
            text: true,
            denoising: DenoisingOptions::default(),
        }
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end token or a stop text.
    Stop,
    /// As many tokens as were asked for.
    Length,
    /// The answer calls a tool.
    ToolCalls,
    /// The caller stopped it.
    Cancelled,
}

impl FinishReason {
    /// Its word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A token, or the text that was held back at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The token; none when only held-back text is left.
    pub id: Option<u32>,
    /// Text that is now certain; never half a character, often empty.
    pub text: String,
    /// The token's log-probability, when asked for.
    pub logprob: Option<f32>,
}

/// Figures of a request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// How many of them the caches held already.
    pub cached_tokens: usize,
    /// Tokens generated; an end token counts.
    pub generated_tokens: usize,
    /// Passes over canvases, of a model that denoises.
    pub denoising_steps: usize,
    /// Until the first token; for a model that denoises, until the prompt is read.
    pub prefill: Duration,
    /// From there to the last token.
    pub decode: Duration,
    /// Tokens that the caches hold at the end.
    pub cache_tokens: usize,
    /// Most bytes that MLX held at once, since the process began.
    pub peak_memory: usize,
}

impl Stats {
    /// Tokens of the prompt read a second; cached ones are not read.
    pub fn prefill_tps(&self) -> f64 {
        rate(self.prompt_tokens - self.cached_tokens, self.prefill)
    }

    /// Tokens generated a second in the time of [`Stats::decode`]. Of next tokens the first comes with
    /// the prompt; those of a canvas all come after it.
    pub fn decode_tps(&self) -> f64 {
        let before = usize::from(self.denoising_steps == 0);
        rate(self.generated_tokens.saturating_sub(before), self.decode)
    }
}

fn rate(count: usize, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

/// The most bytes that MLX held at once.
pub(super) fn peak_memory() -> Result<usize> {
    Ok(mlx_rs::memory::peak_memory()?)
}
