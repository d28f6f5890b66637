//! Rows of a set: kept, joined, taken out and copied.

use super::set::{CacheSet, LayerCache};
use super::state::StateCache;
use super::timeline::Timeline;
use crate::{Error, Result};

impl CacheSet {
    /// Keeps these rows, in this order, and drops columns that pad all of them.
    ///
    /// # Errors
    /// When a number is not that of a row.
    pub fn filter(&mut self, keep: &[usize]) -> Result<()> {
        self.check()?;
        if keep.is_empty() || keep.iter().any(|&b| b >= self.rows()) {
            return Err(Error::input(
                "rows to keep",
                format!("some of {} rows", self.rows()),
                format!("{keep:?}"),
            ));
        }
        let pads: Vec<i32> = keep.iter().filter_map(|&b| self.line.pads.get(b).copied()).collect();
        let drop = pads.iter().copied().min().unwrap_or(0);
        let index: Vec<i32> = keep.iter().map(|&b| b as i32).collect();
        let time = self.line.time;
        for layer in &mut self.layers {
            let done = match layer {
                LayerCache::Tokens(cache) => cache.filter(keep, drop, time),
                LayerCache::States(cache) => cache.filter(&index),
                LayerCache::Nothing => Ok(()),
            };
            if let Err(error) = done {
                self.broken.get_or_insert(error.to_string());
                return Err(error);
            }
        }
        self.line = Timeline { time: time - drop, pads: pads.iter().map(|p| p - drop).collect() };
        Ok(())
    }

    /// Adds the rows of another set of the same graph behind those of this one.
    ///
    /// # Errors
    /// When the sets are of different graphs or compositions.
    pub fn extend(&mut self, other: &CacheSet) -> Result<()> {
        self.check()?;
        other.check()?;
        if self.layers.len() != other.layers.len() {
            return Err(Error::cache("sets of different graphs cannot be joined"));
        }
        if other.rows() == 0 {
            return Ok(());
        }
        let (own_rows, other_rows) = (self.rows() as i32, other.rows() as i32);
        let (own_time, other_time) = (self.line.time, other.line.time);
        let other_line = other.line.clone();
        for (layer, other) in self.layers.iter_mut().zip(&other.layers) {
            let done = match (layer, other) {
                (LayerCache::Tokens(a), LayerCache::Tokens(b)) => {
                    a.extend(&self.line, b, &other_line)
                }
                (LayerCache::States(a), LayerCache::States(b)) => a.extend(own_rows, b, other_rows),
                (LayerCache::Nothing, LayerCache::Nothing) => Ok(()),
                _ => Err(Error::cache("sets of different graphs cannot be joined")),
            };
            if let Err(error) = done {
                self.broken.get_or_insert(error.to_string());
                return Err(error);
            }
        }
        let time = own_time.max(other_time);
        for pad in &mut self.line.pads {
            *pad += time - own_time;
        }
        self.line.pads.extend(other.line.pads.iter().map(|p| p + time - other_time));
        self.line.time = time;
        Ok(())
    }

    /// A set of its own that holds row `b`.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn extract(&self, b: usize) -> Result<CacheSet> {
        self.check()?;
        let Some(&pad) = self.line.pads.get(b) else {
            return Err(Error::input("row", format!("one of {}", self.rows()), b.to_string()));
        };
        let time = self.line.time;
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            layers.push(match layer {
                LayerCache::Tokens(cache) => LayerCache::Tokens(cache.extract(b, &self.line)?),
                LayerCache::States(cache) => {
                    let mut alone = StateCache::holding(cache.states().to_vec());
                    alone.filter(&[b as i32])?;
                    LayerCache::States(alone)
                }
                LayerCache::Nothing => LayerCache::Nothing,
            });
        }
        let mut set = CacheSet::new(layers);
        set.line = Timeline { time: time - pad, pads: vec![0] };
        Ok(set)
    }

    /// An independent set that holds the same.
    pub fn fork(&self) -> Result<CacheSet> {
        self.check()?;
        let layers = self
            .layers
            .iter()
            .map(|layer| match layer {
                LayerCache::Tokens(cache) => LayerCache::Tokens(cache.clone()),
                LayerCache::States(cache) => {
                    LayerCache::States(StateCache::holding(cache.states().to_vec()))
                }
                LayerCache::Nothing => LayerCache::Nothing,
            })
            .collect();
        let mut set = CacheSet::new(layers);
        set.line = self.line.clone();
        Ok(set)
    }
}
