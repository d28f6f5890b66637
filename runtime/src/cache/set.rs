//! The caches of all layers of one request or several.

use mlx_rs::Array;

use super::mask::MaskPool;
use super::state::StateCache;
use super::timeline::Timeline;
use super::tokens::TokenCache;
use crate::{Error, Result};

/// What one layer of a set holds.
#[derive(Debug)]
pub enum LayerCache {
    /// Something for each token.
    Tokens(TokenCache),
    /// States that do not grow.
    States(StateCache),
    /// Nothing; the layer has a slot so that slots count as layers do.
    Nothing,
}

/// The caches of one request, or of a batch of them: one for each layer that remembers, and the
/// timeline that they share.
#[derive(Debug)]
pub struct CacheSet {
    pub(crate) layers: Vec<LayerCache>,
    pub(crate) line: Timeline,
    /// The masks that its layers share, lent to each pass.
    pub(crate) masks: MaskPool,
    /// Tokens of a pass that may be taken back.
    armed: Option<i32>,
    /// Why the set can no longer be used.
    pub(super) broken: Option<String>,
}

impl CacheSet {
    pub(super) fn new(layers: Vec<LayerCache>) -> Self {
        CacheSet {
            layers,
            line: Timeline::default(),
            masks: MaskPool::default(),
            armed: None,
            broken: None,
        }
    }

    /// Layers that keep all positions in one buffer make room for so many at their first append, which
    /// spares growing. More than 2^30 are as 2^30.
    pub fn reserve(&mut self, positions: usize) {
        let columns = i32::try_from(positions).unwrap_or(i32::MAX).min(1 << 30);
        for layer in &mut self.layers {
            if let LayerCache::Tokens(cache) = layer {
                cache.reserve(columns);
            }
        }
    }

    /// Rows; 0 before the first pass.
    pub fn rows(&self) -> usize {
        self.line.rows()
    }

    /// Tokens that row `b` holds.
    pub fn tokens(&self, b: usize) -> i32 {
        self.line.tokens(b)
    }

    /// Columns and the rows' beginnings.
    pub fn timeline(&self) -> &Timeline {
        &self.line
    }

    /// The layers' caches.
    pub fn layers(&self) -> &[LayerCache] {
        &self.layers
    }

    /// The arrays that hold all state, to be evaluated at the end of a chunk of a prompt.
    pub fn arrays(&self) -> Vec<&Array> {
        self.layers
            .iter()
            .flat_map(|layer| match layer {
                LayerCache::Tokens(cache) => cache.arrays(),
                LayerCache::States(cache) => cache.states().iter().collect(),
                LayerCache::Nothing => Vec::new(),
            })
            .collect()
    }

    /// Evaluates all state.
    pub fn eval(&self) -> Result<()> {
        Ok(mlx_rs::transforms::eval(self.arrays())?)
    }

    /// Bytes of all buffers, room to grow included.
    pub fn bytes(&self) -> usize {
        self.arrays().iter().map(|x| x.nbytes()).sum()
    }

    /// Tokens that every row can be given before some layer is rewritten by other codes; `None`: none
    /// will be. A span that is read as single steps ends there at the latest.
    pub fn max_append_tokens(&self) -> Option<i32> {
        self.tokens_layers().filter_map(|cache| cache.max_append(&self.line)).min()
    }

    /// Fewer tokens than these are not kept for another prompt: some layer was rewritten by other codes
    /// when it held so many, and a fresh set of fewer holds them as they came. 0 where none was.
    pub fn reusable_from(&self) -> i32 {
        self.tokens_layers().filter_map(TokenCache::reusable_from).max().unwrap_or(0)
    }

    fn tokens_layers(&self) -> impl Iterator<Item = &TokenCache> {
        self.layers.iter().filter_map(|layer| match layer {
            LayerCache::Tokens(cache) => Some(cache),
            LayerCache::States(_) | LayerCache::Nothing => None,
        })
    }

    /// # Errors
    /// When a pass over this set failed halfway, or one that may be taken back is still open.
    pub(crate) fn check(&self) -> Result<()> {
        match (&self.broken, self.armed) {
            (Some(why), _) => Err(Error::cache(format!("unusable: {why}"))),
            (None, Some(_)) => Err(Error::cache("a verified span waits to be resolved")),
            (None, None) => Ok(()),
        }
    }

    pub(crate) fn break_off(&mut self, why: impl Into<String>) {
        self.broken.get_or_insert(why.into());
    }

    /// Lets the next pass of `n` tokens be taken back.
    pub(crate) fn arm(&mut self, n: i32) {
        self.armed = Some(n);
        for layer in &mut self.layers {
            if let LayerCache::States(cache) = layer {
                cache.arm();
            }
        }
    }

    /// Moves rows right by `shifts`, after which `time` columns end at the same place.
    ///
    /// `padding`: what moves out is the padding behind a prompt.
    pub(crate) fn roll(&mut self, shifts: &[i32], padding: bool) -> Result<()> {
        if shifts.iter().all(|&s| s == 0) {
            return Ok(());
        }
        let time = self.line.time;
        for layer in &mut self.layers {
            if let LayerCache::Tokens(cache) = layer {
                cache.roll(shifts, time, padding)?;
            }
        }
        for (pad, shift) in self.line.pads.iter_mut().zip(shifts) {
            *pad += shift;
        }
        Ok(())
    }

    /// Drops columns that pad all rows, and joins rows that are written alike again.
    pub(crate) fn tidy(&mut self) -> Result<()> {
        let time = self.line.time;
        let drop = self.line.pads.iter().copied().min().unwrap_or(0);
        for layer in &mut self.layers {
            if let LayerCache::Tokens(cache) = layer {
                if drop > 0 {
                    cache.drop_front(drop, time)?;
                }
                cache.join_rows()?;
            }
        }
        if drop > 0 {
            self.line.time -= drop;
            self.line.pads.iter_mut().for_each(|pad| *pad -= drop);
        }
        Ok(())
    }

    /// Whether the last `n` tokens of every row can be forgotten.
    pub fn can_trim(&self, n: i32) -> bool {
        let short = self.rows() == 0 && n > 0 || (0..self.rows()).any(|b| self.tokens(b) < n);
        n >= 0
            && !short
            && self.layers.iter().all(|layer| match layer {
                LayerCache::Tokens(cache) => cache.can_trim(n, &self.line),
                LayerCache::States(_) => n == 0,
                LayerCache::Nothing => true,
            })
    }

    /// Forgets the last `n` tokens of every row, on every layer.
    ///
    /// # Errors
    /// When some layer cannot; then nothing is changed. After an error in the work itself the set is
    /// unusable.
    pub fn trim(&mut self, n: i32) -> Result<()> {
        self.check()?;
        if !self.can_trim(n) {
            return Err(Error::cache(format!("cannot trim {n} positions")));
        }
        let done = self.trim_tokens(n);
        if let Err(error) = &done {
            // Some layers may be shorter already.
            self.break_off(error.to_string());
        }
        done
    }

    fn trim_tokens(&mut self, n: i32) -> Result<()> {
        for layer in &mut self.layers {
            if let LayerCache::Tokens(cache) = layer {
                cache.trim(n, &self.line)?;
            }
        }
        self.line.time -= n;
        Ok(())
    }

    /// Ends a verified span: row `b` keeps its first `keep[b]` tokens.
    ///
    /// # Errors
    /// When no span is open or a number is out of range. After an error in the work itself the set
    /// is unusable.
    pub fn resolve(&mut self, keep: &[i32]) -> Result<()> {
        if self.broken.is_some() {
            return self.check();
        }
        let Some(n) = self.armed else {
            return Err(Error::cache("no verified span is open"));
        };
        if keep.len() != self.rows() || keep.iter().any(|k| !(0..=n).contains(k)) {
            return Err(Error::input(
                "tokens kept of a verified span",
                format!("{} numbers from 0 to {n}", self.rows()),
                format!("{keep:?}"),
            ));
        }
        self.armed = None;
        let done = self.rollback(n, keep);
        if let Err(error) = &done {
            self.break_off(error.to_string());
        }
        done
    }

    fn rollback(&mut self, n: i32, keep: &[i32]) -> Result<()> {
        let whole = keep.iter().all(|&k| k == n);
        for layer in &mut self.layers {
            if let LayerCache::States(cache) = layer {
                if whole { cache.commit() } else { cache.rollback(keep)? }
            }
        }
        if !whole {
            let most = keep.iter().copied().max().unwrap_or(0);
            self.trim_tokens(n - most)?;
            let shifts: Vec<i32> = keep.iter().map(|k| most - k).collect();
            self.roll(&shifts, false)?;
        }
        for layer in &mut self.layers {
            if let LayerCache::Tokens(cache) = layer {
                cache.settle(&self.line)?;
            }
        }
        self.tidy()
    }
}
