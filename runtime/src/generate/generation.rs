//! The loop: a prompt in chunks, then tokens, always one step ahead of the reader.

use std::ops::ControlFlow;
use std::time::Instant;

use mlx_rs::transforms::async_eval;
use mlx_rs::{Array, memory};

use super::options::peak_memory;
use super::planner::{PrefillKind, PrefillState};
use super::text::AnswerText;
use super::{FinishReason, Model, Options, Piece, Session, Stats};
use crate::array::from_i32s;
use crate::graph::{Autoregressive, TokenPhases};
use crate::sample::{History, Sampler, log_probabilities};
use crate::{Error, Result, ops};

/// After how many tokens MLX's pool of unused buffers is given back.
const CLEAR_EVERY: usize = 256;

/// A session of the generation's own, or the caller's.
pub(super) enum SessionRef<'a> {
    Own(Box<Session>),
    Lent(&'a mut Session),
}

impl SessionRef<'_> {
    pub(super) fn get(&mut self) -> &mut Session {
        match self {
            SessionRef::Own(session) => session,
            SessionRef::Lent(session) => session,
        }
    }
}

/// A token that is being computed.
struct Pending {
    /// uint32 [1, 1]
    token: Array,
    logprob: Option<Array>,
    /// True when a logit was not a number.
    broken: Option<Array>,
}

/// An answer token by token.
///
/// The device computes one token ahead of what was read. Dropping it cancels; the session then holds
/// the tokens read so far.
pub struct TokenGeneration<'a> {
    graph: &'a dyn Autoregressive,
    session: SessionRef<'a>,
    options: Options,
    chunk: usize,
    tail_split: bool,
    prompt: Vec<u32>,
    sampler: Sampler,
    history: History,
    eos: Vec<u32>,
    told: AnswerText<'a>,
    pending: Option<Pending>,
    /// Tokens whose choice has been built.
    chosen: u64,
    stats: Stats,
    started: Instant,
    first_token: Option<Instant>,
}

impl std::fmt::Debug for TokenGeneration<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenGeneration")
            .field("stats", &self.stats)
            .field("finish", &self.told.finish)
            .finish_non_exhaustive()
    }
}

impl<'a> TokenGeneration<'a> {
    pub(super) fn start(
        model: &'a Model,
        mut session: SessionRef<'a>,
        prompt: &[u32],
        options: Options,
    ) -> Result<Self> {
        let graph = model.graph().autoregressive()?;
        model.check_ids(prompt)?;
        let sampler = Sampler::new(options.sampling.clone())?;
        let vocabulary = model.vocabulary().unwrap_or(u32::MAX);
        if let Some((id, _)) = options.penalties.logit_bias.iter().find(|(id, _)| *id >= vocabulary)
        {
            let expected = format!("a token below {vocabulary}");
            return Err(Error::input("logit bias", expected, id.to_string()));
        }
        let history = History::new(&options.penalties, prompt)?;
        let told = AnswerText::new(model, &options)?;
        let started = Instant::now();
        let cached = session.get().reuse(prompt)?;
        let stats =
            Stats { prompt_tokens: prompt.len(), cached_tokens: cached, ..Stats::default() };
        Ok(Self {
            graph,
            session,
            prompt: prompt.to_vec(),
            sampler,
            history,
            eos: if options.ignore_eos { Vec::new() } else { model.eos() },
            told,
            pending: None,
            chosen: 0,
            stats,
            started,
            first_token: None,
            options,
            chunk: model.prefill_chunk(prompt.len()),
            tail_split: model.composition().prefill_tail_split(),
        })
    }

    /// Reads the prompt; `progress` hears the tokens read and all of them, and may break off.
    ///
    /// The first piece does this by itself where it was not done before.
    ///
    /// # Errors
    /// MLX's; the answer is over then, and the session empty.
    pub fn read_prompt(
        &mut self,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<()> {
        let read = self.read(progress);
        if read.is_err() {
            self.give_up();
        }
        read
    }

    fn read(&mut self, progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> Result<()> {
        if self.chosen > 0 || self.told.finish.is_some() {
            return Ok(());
        }
        let length = self.prompt.len();
        self.started = Instant::now();
        if self.options.max_tokens == 0 {
            self.told.finish = Some(FinishReason::Length);
            return Ok(());
        }
        loop {
            let session = self.session.get();
            let position = session.ids.len();
            if progress(position, length).is_break() {
                self.told.finish = Some(FinishReason::Cancelled);
                return Ok(());
            }
            let (chunk, tail_split) = (self.chunk, self.tail_split);
            let step =
                PrefillState { length, position, chunk, tail_split, snapshot_at: None }.next();
            let part = &self.prompt[step.start..step.end];
            let hidden = self.graph.prompt(&mut session.caches, &row(part)?)?;
            session.ids.extend_from_slice(part);
            match step.kind {
                PrefillKind::Drain => {
                    session.caches.eval()?;
                    drop(hidden);
                    memory::clear_cache()?;
                }
                PrefillKind::Final => {
                    let n = hidden.dim(1);
                    let last = if n == 1 { hidden } else { ops::slice(&hidden, 1, n - 1, n)? };
                    let logits = TokenPhases::logits(self.graph, &last)?;
                    self.pending = Some(self.choose(logits)?);
                    let _ = progress(length, length);
                    return Ok(());
                }
            }
        }
    }

    /// After an error: the caches may stand halfway, so nothing of them is believed.
    fn give_up(&mut self) {
        self.settle();
        self.session.get().clear();
        self.told.give_up();
    }

    /// Why the answer ended; none while it goes on.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.told.finish
    }

    /// The end token that ended the answer; it is no piece.
    pub fn end_token(&self) -> Option<u32> {
        self.told.end_token
    }

    /// Ends the answer where it is.
    pub fn cancel(&mut self) {
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

    /// Starts computing the token that follows these logits, [1, 1, V].
    fn choose(&mut self, logits: Array) -> Result<Pending> {
        let step = self.chosen;
        self.chosen += 1;
        let plain = self.sampler.is_greedy() && self.history.is_off();
        let mut pending = if plain && !self.options.logprobs {
            Pending { token: self.sampler.sample(&logits, step)?, logprob: None, broken: None }
        } else {
            let flat = ops::squeeze(&logits, 1)?;
            let flat = self.history.apply(&flat)?;
            let token = ops::expand(&self.sampler.sample(&flat, step)?, 0)?;
            let logprob = self
                .options
                .logprobs
                .then(|| ops::gather(&log_probabilities(&flat)?, &token, -1))
                .transpose()?;
            self.history.push(&token)?;
            Pending { token, logprob, broken: None }
        };
        if self.options.guard_nan {
            // A number is equal to itself; the sum of the comparisons tells whether all are.
            let same = ops::to_f32(&ops::equal(&logits, &logits)?)?;
            pending.broken = Some(ops::min(&ops::flatten(&same, 0, -1)?, 0, false)?);
        }
        let wanted = [Some(&pending.token), pending.logprob.as_ref(), pending.broken.as_ref()];
        async_eval(wanted.into_iter().flatten())?;
        Ok(pending)
    }

    fn advance(&mut self) -> Result<Option<Piece>> {
        if self.chosen == 0 && self.told.finish.is_none() {
            self.read_prompt(&mut |_, _| ControlFlow::Continue(()))?;
        }
        let current = match (self.told.finish, self.pending.take()) {
            (None, Some(current)) => current,
            _ => return self.end(),
        };
        // The next step is built and under way before this token is read.
        let last = self.chosen >= self.options.max_tokens as u64;
        if !last {
            let session = self.session.get();
            let hidden = self.graph.decode(&mut session.caches, &current.token)?;
            let logits = TokenPhases::logits(self.graph, &hidden)?;
            self.pending = Some(self.choose(logits)?);
        }
        let id = item::<u32>(&current.token)?;
        if !last {
            self.session.get().ids.push(id);
        }
        self.count()?;
        if let Some(broken) = &current.broken
            && item::<f32>(broken)? == 0.0
        {
            let at = self.stats.generated_tokens;
            return Err(Error::Unsupported(format!(
                "a logit of generated token {at} is not a number; has a half-precision type overflowed?"
            )));
        }
        if self.eos.contains(&id) {
            self.told.stop_at(id);
            return self.end();
        }
        let logprob = current.logprob.as_ref().map(item::<f32>).transpose()?;
        let piece = self.told.piece(id, logprob)?;
        if last && self.told.finish.is_none() {
            self.told.finish = Some(FinishReason::Length);
        }
        Ok(Some(piece))
    }

    /// Counts a token that was read.
    fn count(&mut self) -> Result<()> {
        let now = Instant::now();
        self.stats.generated_tokens += 1;
        match self.first_token {
            None => {
                self.first_token = Some(now);
                self.stats.prefill = now - self.started;
                memory::clear_cache()?;
            }
            Some(first) => self.stats.decode = now - first,
        }
        if self.stats.generated_tokens.is_multiple_of(CLEAR_EVERY) {
            memory::clear_cache()?;
        }
        Ok(())
    }

    /// Waits for a step that nobody will read. A process that ends while a step runs may never end:
    /// the BLAS library waits for its threads then.
    fn settle(&mut self) {
        if let Some(pending) = self.pending.take() {
            // Its failure would be that of a token that is not wanted.
            let _ = pending.token.eval();
        }
    }

    /// The text that was held back, once; then nothing more.
    fn end(&mut self) -> Result<Option<Piece>> {
        self.settle();
        self.told.rest()
    }
}

impl Iterator for TokenGeneration<'_> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        let piece = self.advance().transpose();
        if let Some(Err(_)) = piece {
            self.give_up();
        }
        piece
    }
}

impl Drop for TokenGeneration<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}

/// The one number of an array, once it is computed.
fn item<T: mlx_rs::ArrayElement>(array: &Array) -> Result<T> {
    array.try_item_exact::<T>().map_err(|e| Error::Mlx(e.to_string()))
}

/// Ids as one row, int32 [1, n].
pub(super) fn row(ids: &[u32]) -> Result<Array> {
    // Ids are checked against a vocabulary that fits 31 bits.
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    ops::expand(&from_i32s(&ids), 0)
}
