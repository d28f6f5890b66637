//! An answer in the making, whatever the model's method.

use std::ops::ControlFlow;

use super::denoise::{Denoising, DenoisingOptions};
use super::generation::{Held, TokenGeneration};
use super::{FinishReason, Model, Options, Piece, Stats};
use crate::Result;
use crate::graph::LoadedGraph;

/// An answer in the making: an iterator over its pieces.
///
/// A model of next tokens gives each token as it is read; one that denoises gives the tokens of a
/// block together once the block is done. Dropping it cancels; the session then holds what was read.
#[derive(Debug)]
pub struct Generation<'a> {
    by: By<'a>,
}

#[derive(Debug)]
enum By<'a> {
    Tokens(Box<TokenGeneration<'a>>),
    Blocks(Box<Denoising<'a>>),
}

impl<'a> Generation<'a> {
    pub(super) fn start(
        model: &'a Model,
        session: Held<'a>,
        prompt: &[u32],
        options: Options,
    ) -> Result<Self> {
        let by = match model.graph() {
            LoadedGraph::Denoising(_) => {
                By::Blocks(Box::new(Denoising::start(model, session, prompt, options)?))
            }
            _ if options.denoising != DenoisingOptions::default() => {
                return Err(model.does_not_denoise());
            }
            _ => By::Tokens(Box::new(TokenGeneration::start(model, session, prompt, options)?)),
        };
        Ok(Self { by })
    }

    /// The same as what a model that denoises makes of it, to watch its canvases.
    pub fn denoising(&mut self) -> Option<&mut Denoising<'a>> {
        match &mut self.by {
            By::Tokens(_) => None,
            By::Blocks(blocks) => Some(blocks),
        }
    }

    /// Reads the prompt; `progress` hears the tokens read and all of them, and may break off.
    ///
    /// The first piece does this by itself where it was not done before.
    ///
    /// # Errors
    /// MLX's.
    pub fn read_prompt(
        &mut self,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<()> {
        match &mut self.by {
            By::Tokens(tokens) => tokens.read_prompt(progress),
            By::Blocks(blocks) => blocks.read_prompt(progress),
        }
    }

    /// Why the answer ended; none while it goes on.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        match &self.by {
            By::Tokens(tokens) => tokens.finish_reason(),
            By::Blocks(blocks) => blocks.finish_reason(),
        }
    }

    /// The end token that ended the answer; it is no piece.
    pub fn end_token(&self) -> Option<u32> {
        match &self.by {
            By::Tokens(tokens) => tokens.end_token(),
            By::Blocks(blocks) => blocks.end_token(),
        }
    }

    /// Ends the answer where it is.
    pub fn cancel(&mut self) {
        match &mut self.by {
            By::Tokens(tokens) => tokens.cancel(),
            By::Blocks(blocks) => blocks.cancel(),
        }
    }

    /// The figures so far.
    ///
    /// # Errors
    /// MLX's.
    pub fn stats(&mut self) -> Result<Stats> {
        match &mut self.by {
            By::Tokens(tokens) => tokens.stats(),
            By::Blocks(blocks) => blocks.stats(),
        }
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        match &mut self.by {
            By::Tokens(tokens) => tokens.next(),
            By::Blocks(blocks) => blocks.next(),
        }
    }
}
