//! An answer in the making, whatever the model's method.

use std::ops::ControlFlow;

use super::denoise::{Denoising, DenoisingOptions};
use super::generation::{SessionRef, TokenGeneration};
use super::{FinishReason, Model, Options, Piece, Stats};
use crate::Result;
use crate::graph::LoadedGraph;

/// An answer in the making: an iterator over its pieces.
///
/// A model of next tokens gives each token as it is read; one that denoises gives the tokens of a
/// block together once the block is done. Dropping it cancels; the session then holds what was read.
#[derive(Debug)]
pub struct Generation<'a> {
    inner: Inner<'a>,
}

#[derive(Debug)]
enum Inner<'a> {
    Tokens(Box<TokenGeneration<'a>>),
    Blocks(Box<Denoising<'a>>),
}

impl<'a> Generation<'a> {
    pub(super) fn start(
        model: &'a Model,
        session: SessionRef<'a>,
        prompt: &[u32],
        options: Options,
    ) -> Result<Self> {
        let inner = match model.graph() {
            LoadedGraph::Denoising(_) => {
                Inner::Blocks(Box::new(Denoising::start(model, session, prompt, options)?))
            }
            _ if options.denoising != DenoisingOptions::default() => {
                return Err(model.does_not_denoise());
            }
            _ => Inner::Tokens(Box::new(TokenGeneration::start(model, session, prompt, options)?)),
        };
        Ok(Self { inner })
    }

    /// The same as what a model that denoises makes of it, to watch its canvases.
    pub fn denoising(&mut self) -> Option<&mut Denoising<'a>> {
        match &mut self.inner {
            Inner::Tokens(_) => None,
            Inner::Blocks(blocks) => Some(blocks),
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
        match &mut self.inner {
            Inner::Tokens(tokens) => tokens.read_prompt(progress),
            Inner::Blocks(blocks) => blocks.read_prompt(progress),
        }
    }

    /// Why the answer ended; none while it goes on.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        match &self.inner {
            Inner::Tokens(tokens) => tokens.finish_reason(),
            Inner::Blocks(blocks) => blocks.finish_reason(),
        }
    }

    /// The end token that ended the answer; it is no piece.
    pub fn end_token(&self) -> Option<u32> {
        match &self.inner {
            Inner::Tokens(tokens) => tokens.end_token(),
            Inner::Blocks(blocks) => blocks.end_token(),
        }
    }

    /// Ends the answer where it is.
    pub fn cancel(&mut self) {
        match &mut self.inner {
            Inner::Tokens(tokens) => tokens.cancel(),
            Inner::Blocks(blocks) => blocks.cancel(),
        }
    }

    /// The figures so far.
    ///
    /// # Errors
    /// MLX's.
    pub fn stats(&mut self) -> Result<Stats> {
        match &mut self.inner {
            Inner::Tokens(tokens) => tokens.stats(),
            Inner::Blocks(blocks) => blocks.stats(),
        }
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        match &mut self.inner {
            Inner::Tokens(tokens) => tokens.next(),
            Inner::Blocks(blocks) => blocks.next(),
        }
    }
}
