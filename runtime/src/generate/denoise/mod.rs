//! Denoising: a text block by block, each a canvas of random ids refined in steps.
//!
//! The prompt is read into the caches. A canvas of drawn ids is then passed through the model again
//! and again; what a pass believes decides which positions stay, the others are drawn anew, and the
//! belief itself is an input of the next pass. The likeliest ids of the last pass are the block; the
//! whole of it is read into the caches before the next one begins.

mod canvas;
mod logits;
mod method;
mod noise;
mod passes;
mod refusal;

pub use method::{
    CanvasSampler, DenoisingMethod, DenoisingOptions, DenoisingSettings, Stopping, Temperature,
};
pub use noise::{Noise, RecordedNoise, SeededNoise};
pub use refusal::Refusal;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use mlx_rs::{Array, memory};

use super::generation::SessionRef;
use super::options::peak_memory;
use super::text::AnswerText;
use super::{FinishReason, Model, Options, Piece, Session, Stats};
use crate::cache::CachePlan;
use crate::graph::{Denoiser, LoadedGraph};
use crate::sample::Sampler;
use crate::{Error, Result};
use canvas::Canvas;
use method::Keep;
use passes::Hidden;

/// One step over a canvas.
#[derive(Debug, Clone, PartialEq)]
pub struct CanvasStep {
    /// The number of the block, from 0.
    pub block: usize,
    /// Steps that were left when this one began, itself included: from all of them down to 1.
    pub left: u32,
    /// What the pass read.
    pub canvas_in: Vec<u32>,
    /// The likeliest ids.
    pub argmax: Vec<u32>,
    /// What the sampler goes by: the probabilities of `argmax` by confidence, else entropies in nats.
    pub scores: Vec<f32>,
    /// Positions that stay: for good by confidence, for one step by entropy.
    pub revealed: Vec<bool>,
    /// What the next pass would read.
    pub canvas: Vec<u32>,
    /// The block is done: its ids are `argmax`.
    pub last: bool,
}

/// What one unit of work did.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// So many tokens of so many are read into the caches.
    Read {
        /// Tokens that the caches hold.
        done: usize,
        /// Tokens of the prompt and of the blocks so far.
        total: usize,
    },
    /// A step over a canvas.
    Step(CanvasStep),
    /// Nothing: the answer has ended.
    Ended,
}

/// Hears of each step, and may break off.
pub type CanvasWatch<'a> = Box<dyn FnMut(&CanvasStep) -> ControlFlow<()> + 'a>;

/// The block in the making.
struct Block {
    canvas: Canvas,
    /// Steps left.
    left: u32,
    /// What the last step believed, [1, C, hidden].
    signal: Array,
}

/// An answer in the making, block by block: an iterator over its pieces.
///
/// [`Denoising::advance`] does a bounded part of the work, so that several requests can take turns;
/// each has caches and draws of its own. Between two parts it may be dropped: the session then holds
/// the prompt and the blocks read so far, and nothing of the canvas.
pub struct Denoising<'a> {
    graph: &'a dyn Denoiser,
    session: SessionRef<'a>,
    settings: DenoisingSettings,
    keep: Keep,
    noise: Box<dyn Noise + 'a>,
    vocabulary: u32,
    hidden: Hidden,
    chunk: usize,
    /// Tokens that the caches hold before the next canvas: the prompt, then whole blocks too.
    known: Vec<u32>,
    max_tokens: usize,
    guard_nan: bool,
    told: AnswerText<'a>,
    block: Option<Block>,
    blocks: usize,
    /// Pieces of the last block that were not asked for yet.
    pieces: VecDeque<Piece>,
    watch: Option<CanvasWatch<'a>>,
    stats: Stats,
    started: Instant,
}

impl std::fmt::Debug for Denoising<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Denoising")
            .field("settings", &self.settings)
            .field("stats", &self.stats)
            .field("finish", &self.told.finish)
            .finish_non_exhaustive()
    }
}

/// The caches of a denoising graph: as its layers declare them, whose sizes are known.
pub(crate) fn plan(graph: &dyn Denoiser) -> Result<CachePlan> {
    let plan = CachePlan::new(graph.cache_layers())?;
    let mut probe = plan.make();
    passes::read(graph, &mut probe, &[0])?;
    plan.learned(&probe)
}

/// The vocabulary's size, from passes that are not computed.
pub(super) fn vocabulary(graph: &dyn Denoiser, plan: &CachePlan) -> Result<Option<u32>> {
    passes::vocabulary(graph, plan)
}

impl Model {
    /// How this model denoises, where it does.
    pub fn denoising_settings(&self) -> Option<&DenoisingSettings> {
        self.denoising.as_ref()
    }

    fn denoiser(&self) -> Result<(&dyn Denoiser, &DenoisingSettings)> {
        match (self.graph(), &self.denoising) {
            (LoadedGraph::Denoising(graph), Some(settings)) => Ok((&**graph, settings)),
            (LoadedGraph::Denoising(_), None) => {
                let what = "the family {} does not say how it denoises";
                Err(Error::Unsupported(what.replace("{}", self.family().name)))
            }
            _ => Err(self.does_not_denoise()),
        }
    }

    pub(super) fn does_not_denoise(&self) -> Error {
        let name = self.family().name;
        Error::Unsupported(format!("models of the family {name} do not denoise blocks of tokens"))
    }

    /// Denoises after a prompt in a session of its own.
    ///
    /// # Errors
    /// The model does not denoise; an empty prompt, an id outside the vocabulary, a setting out of
    /// range, or one that denoising has no place for ([`Refusal`]).
    pub fn denoise(&self, prompt: &[u32], options: Options) -> Result<Denoising<'_>> {
        Denoising::start(self, SessionRef::Own(Box::new(self.session())), prompt, options)
    }

    /// Denoises after a prompt in a caller's session with a caller's settings and draws. Of
    /// `options` the seed and what it says of denoising then have no effect.
    ///
    /// # Errors
    /// As [`Model::denoise`].
    pub fn denoise_with<'a>(
        &'a self,
        session: &'a mut Session,
        prompt: &[u32],
        options: Options,
        settings: DenoisingSettings,
        noise: Box<dyn Noise + 'a>,
    ) -> Result<Denoising<'a>> {
        Denoising::with(self, SessionRef::Lent(session), prompt, options, settings, noise)
    }

    /// Reads ids into a denoising model's session in parts of the composition's length.
    pub(super) fn read_known(
        &self,
        graph: &dyn Denoiser,
        session: &mut Session,
        ids: &[u32],
    ) -> Result<()> {
        for part in ids.chunks(self.prefill_chunk(session.ids.len() + ids.len())) {
            let read = passes::read(graph, &mut session.caches, part);
            session.hold(part, read)?;
        }
        Ok(())
    }
}

impl<'a> Denoising<'a> {
    pub(super) fn start(
        model: &'a Model,
        session: SessionRef<'a>,
        prompt: &[u32],
        options: Options,
    ) -> Result<Self> {
        let (_, settings) = model.denoiser()?;
        let mut settings = settings.with(&options.denoising)?;
        if settings.stop_ids.is_empty() {
            settings.stop_ids = model.eos();
        }
        let noise = Box::new(SeededNoise::new(options.sampling.seed)?);
        Self::with(model, session, prompt, options, settings, noise)
    }

    fn with(
        model: &'a Model,
        mut session: SessionRef<'a>,
        prompt: &[u32],
        options: Options,
        mut settings: DenoisingSettings,
        noise: Box<dyn Noise + 'a>,
    ) -> Result<Self> {
        let (graph, of_model) = model.denoiser()?;
        model.check_ids(prompt)?;
        // Numbers out of range are told as they are for any model.
        Sampler::new(options.sampling.clone())?;
        options.penalties.check()?;
        Refusal::of_options(&options)?;
        settings.check(of_model.max_canvas_length)?;
        let keep = settings.keep()?;
        let Some(vocabulary) = model.vocabulary() else {
            return Err(Error::Unsupported("the model's vocabulary is unknown".into()));
        };
        if options.ignore_eos {
            settings.stop_ids.clear();
        }
        let told = AnswerText::new(model, &options)?;
        let hidden = passes::hidden(graph, model.cache_plan())?;
        let cached = session.get().reuse(prompt)?;
        let stats =
            Stats { prompt_tokens: prompt.len(), cached_tokens: cached, ..Stats::default() };
        Ok(Self {
            graph,
            session,
            keep,
            settings,
            noise,
            vocabulary,
            hidden,
            chunk: model.prefill_chunk(prompt.len()),
            known: prompt.to_vec(),
            max_tokens: options.max_tokens,
            guard_nan: options.guard_nan,
            told,
            block: None,
            blocks: 0,
            pieces: VecDeque::new(),
            watch: None,
            stats,
            started: Instant::now(),
        })
    }

    /// Lets `watch` hear of each step; what it says may cancel the answer.
    pub fn watch(&mut self, watch: CanvasWatch<'a>) {
        self.watch = Some(watch);
    }

    /// How it denoises.
    pub fn settings(&self) -> &DenoisingSettings {
        &self.settings
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
        if self.blocks > 0 || self.block.is_some() {
            return Ok(());
        }
        let total = self.known.len();
        loop {
            let done = self.session.get().ids.len();
            let goes_on = progress(done, total).is_continue();
            if self.told.finish.is_some() || done >= total {
                return Ok(());
            }
            if !goes_on {
                self.cancel();
                return Ok(());
            }
            self.advance()?;
        }
    }

    /// The next bounded part of the work: a part of the prompt or of the block before, or one step
    /// over a canvas.
    ///
    /// # Errors
    /// MLX's, and those of the draws; the session is empty then.
    pub fn advance(&mut self) -> Result<Progress> {
        if self.max_tokens == 0 {
            self.told.finish.get_or_insert(FinishReason::Length);
        }
        if self.told.finish.is_some() {
            return Ok(Progress::Ended);
        }
        let done = self.work();
        if done.is_err() {
            // The caches may stand halfway; nothing of them is believed.
            self.session.get().clear();
            self.block = None;
            self.told.give_up();
        }
        done
    }

    fn work(&mut self) -> Result<Progress> {
        let session = self.session.get();
        let (position, total) = (session.ids.len(), self.known.len());
        if position < total {
            let part = &self.known[position..(position + self.chunk).min(total)];
            passes::read(self.graph, &mut session.caches, part)?;
            session.caches.eval()?;
            session.ids.extend_from_slice(part);
            memory::clear_cache()?;
            let done = session.ids.len();
            if self.blocks == 0 && done == total {
                self.stats.prefill = self.started.elapsed();
            }
            return Ok(Progress::Read { done, total });
        }
        let block = match self.block.take() {
            Some(block) => block,
            None => self.begin()?,
        };
        let step = self.step(block)?;
        self.stats.decode = self.started.elapsed().saturating_sub(self.stats.prefill);
        if let Some(watch) = &mut self.watch
            && watch(&step).is_break()
        {
            self.cancel();
        }
        Ok(Progress::Step(step))
    }

    /// A canvas as it was drawn.
    fn begin(&mut self) -> Result<Block> {
        let remaining = self.max_tokens.saturating_sub(self.stats.generated_tokens);
        let length = self.settings.length(remaining);
        let ids = self.noise.canvas(length, self.vocabulary)?;
        Ok(Block {
            canvas: Canvas::new(ids, self.keep, self.settings.stopping),
            left: self.settings.steps,
            signal: passes::zeros(self.hidden, length)?,
        })
    }

    fn step(&mut self, mut block: Block) -> Result<CanvasStep> {
        let (left, canvas_in) = (block.left, block.canvas.ids.clone());
        let caches = &mut self.session.get().caches;
        let logits = passes::logits(self.graph, caches, &canvas_in, &block.signal)?;
        let temperature = self.settings.temperature.at(left, self.settings.steps);
        let mean = self.settings.stopping.is_some();
        let judged = passes::judge(&logits, temperature, self.keep, mean)?;
        let judgement = &judged.judgement;
        self.stats.denoising_steps += 1;
        if self.guard_nan && judgement.scores.iter().any(|x| x.is_nan()) {
            let at = self.stats.denoising_steps;
            return Err(Error::Unsupported(format!(
                "a logit of denoising step {at} is not a number; has a half-precision type overflowed?"
            )));
        }
        let argmax = judgement.best.clone();
        // The last step ends before anything is drawn.
        let last = left <= 1 || {
            let noise = self.noise.canvas(argmax.len(), self.vocabulary)?;
            block.canvas.take(judgement, &noise)
        };
        let step = CanvasStep {
            block: self.blocks,
            left,
            canvas_in,
            argmax,
            scores: judgement.scores.clone(),
            revealed: if last {
                vec![true; block.canvas.ids.len()]
            } else {
                block.canvas.revealed.clone()
            },
            canvas: block.canvas.ids.clone(),
            last,
        };
        if last {
            self.blocks += 1;
            self.emit(&step.argmax)?;
        } else {
            block.signal = judged.signal(self.graph, self.hidden)?;
            block.left -= 1;
            self.block = Some(block);
        }
        Ok(step)
    }

    /// Makes pieces of a block, up to an end token, a stop text or the most tokens.
    fn emit(&mut self, block: &[u32]) -> Result<()> {
        for &id in block {
            if self.stats.generated_tokens >= self.max_tokens {
                break;
            }
            self.stats.generated_tokens += 1;
            if self.settings.stop_ids.contains(&id) {
                self.told.stop_at(id);
                return Ok(());
            }
            let piece = self.told.piece(id, None)?;
            self.pieces.push_back(piece);
            if self.told.finish.is_some() {
                return Ok(());
            }
        }
        if self.stats.generated_tokens >= self.max_tokens {
            self.told.finish = Some(FinishReason::Length);
        } else {
            // All of it, before the next block.
            self.known.extend_from_slice(block);
        }
        Ok(())
    }

    /// Why the answer ended; none while it goes on.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.told.finish
    }

    /// The end token that ended the answer; it is no piece.
    pub fn end_token(&self) -> Option<u32> {
        self.told.end_token
    }

    /// Ends the answer where it is: a canvas in the making is left, and pieces not asked for too.
    pub fn cancel(&mut self) {
        self.block = None;
        if !self.pieces.is_empty() {
            self.stats.generated_tokens -=
                self.pieces.len() + usize::from(self.told.end_token.is_some());
            self.pieces.clear();
            self.told.end_token = None;
            self.told.finish = Some(FinishReason::Cancelled);
        }
        self.told.finish.get_or_insert(FinishReason::Cancelled);
    }

    /// The figures so far.
    ///
    /// # Errors
    /// MLX's.
    pub fn stats(&mut self) -> Result<Stats> {
        self.stats.cache_tokens = self.session.get().ids.len();
        self.stats.peak_memory = peak_memory()?;
        Ok(self.stats)
    }

    fn next_piece(&mut self) -> Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Some(piece));
            }
            if self.advance()? == Progress::Ended {
                return self.told.rest();
            }
        }
    }
}

impl Iterator for Denoising<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        self.next_piece().transpose()
    }
}
