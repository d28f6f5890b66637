//! States that do not grow, and how they are computed anew for the tokens that stay.

use std::fmt;

use mlx_rs::Array;

use super::planes;
use crate::{Error, Result, ops};

/// Computes a state after the first `keep[b]` tokens of row `b`, from the state before them
/// (`None`: before the first token).
pub type Replay = Box<dyn Fn(Option<&Array>, &[i32]) -> Result<Array>>;

/// The states of a recurrent layer, such as the last inputs of a convolution and the state of a
/// scan. Their first axis is the batch; none of them grows. Each belongs to one of the layer's
/// mixers.
#[derive(Default)]
pub struct StateCache {
    states: Vec<Array>,
    armed: bool,
    undo: Vec<(Option<Array>, Replay)>,
}

impl fmt::Debug for StateCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateCache").field("states", &self.states.len()).finish_non_exhaustive()
    }
}

/// One state of a recurrent layer within a pass.
#[derive(Debug)]
pub struct StatePart<'c> {
    cache: &'c mut StateCache,
    part: usize,
    keeps: bool,
}

impl<'c> StatePart<'c> {
    /// The state number `part`; one that does not keep forgets what is set.
    pub(crate) fn new(cache: &'c mut StateCache, part: usize, keeps: bool) -> Self {
        StatePart { cache, part, keeps }
    }

    /// The state before this pass; `None` before the first token.
    pub fn before(&self) -> Option<Array> {
        self.cache.states.get(self.part).cloned()
    }

    /// Whether this pass may be taken back, so that `replay` will be needed.
    pub fn armed(&self) -> bool {
        self.cache.armed
    }

    /// Sets the state after the tokens of this pass; `replay` gives it after fewer of them.
    ///
    /// # Errors
    /// When the layer's states are not set in order.
    pub fn set(self, state: Array, replay: Replay) -> Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let StatePart { cache, part, .. } = self;
        let count = cache.states.len();
        let before = match cache.states.get_mut(part) {
            Some(slot) => Some(std::mem::replace(slot, state)),
            None if part == count => {
                cache.states.push(state);
                None
            }
            None => return Err(Error::cache("the states of a layer were not set in order")),
        };
        if cache.armed {
            cache.undo.push((before, replay));
        }
        Ok(())
    }
}

impl StateCache {
    /// The states; empty before the first token.
    pub fn states(&self) -> &[Array] {
        &self.states
    }

    pub(super) fn arm(&mut self) {
        self.armed = true;
        self.undo.clear();
    }

    pub(super) fn commit(&mut self) {
        self.armed = false;
        self.undo.clear();
    }

    /// Keeps the first `keep[b]` tokens of row `b` of the armed pass.
    pub(super) fn rollback(&mut self, keep: &[i32]) -> Result<()> {
        self.armed = false;
        let undo = std::mem::take(&mut self.undo);
        if undo.len() != self.states.len() {
            return Err(Error::cache("nothing to take back"));
        }
        let nothing = keep.iter().all(|&k| k == 0);
        self.states = undo
            .into_iter()
            .filter_map(|(before, replay)| match (nothing, before) {
                (true, before) => before.map(Ok),
                (false, before) => Some(replay(before.as_ref(), keep)),
            })
            .collect::<Result<_>>()?;
        Ok(())
    }

    pub(super) fn filter(&mut self, keep: &[i32]) -> Result<()> {
        self.states = planes::rows(&self.states, keep)?;
        Ok(())
    }

    pub(super) fn holding(states: Vec<Array>) -> Self {
        StateCache { states, ..Self::default() }
    }

    /// The rows of this cache (`rows` of them) and then those of `other`; a cache without states
    /// counts as zeros.
    pub(super) fn extend(&mut self, rows: i32, other: &StateCache, others: i32) -> Result<()> {
        if self.states.is_empty() && other.states.is_empty() {
            return Ok(());
        }
        let like = if self.states.is_empty() { &other.states } else { &self.states };
        let zeros = |n: i32| -> Result<Vec<Array>> {
            like.iter()
                .map(|x| {
                    let mut shape = x.shape().to_vec();
                    if let Some(first) = shape.first_mut() {
                        *first = n;
                    }
                    Ok(mlx_rs::ops::zeros_dtype(&shape, x.dtype())?)
                })
                .collect()
        };
        let a = if self.states.is_empty() { zeros(rows)? } else { self.states.clone() };
        let b = if other.states.is_empty() { zeros(others)? } else { other.states.clone() };
        if a.len() != b.len() {
            return Err(Error::cache("the states of two rows do not agree"));
        }
        self.states =
            a.iter().zip(&b).map(|(a, b)| ops::concat(&[a, b], 0)).collect::<Result<_>>()?;
        Ok(())
    }
}
