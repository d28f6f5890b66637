//! Rows of a layer's cache: kept, joined, taken apart.

use mlx_rs::Array;

use super::append::AppendStore;
use super::planes::{self, Planes};
use super::ring::RingStore;
use super::rowwise::RowStore;
use super::timeline::Timeline;
use super::tokens::{Span, Store, TokenCache};
use crate::{Error, Result};

impl TokenCache {
    /// Keeps these rows and drops the first `drop` columns.
    pub(super) fn filter(&mut self, keep: &[usize], drop: i32, time: i32) -> Result<()> {
        let axis = self.kind.axis;
        let index: Vec<i32> = keep.iter().map(|&b| b as i32).collect();
        match &mut self.store {
            Store::Append(store) if store.buffers().is_empty() => {}
            Store::Append(store) => {
                let planes = planes::view(store.buffers(), axis, drop, time)?;
                store.replace(planes::rows(&planes, &index)?, time - drop);
            }
            Store::Ring(store) => {
                if !store.buffers().is_empty() {
                    store.replace(planes::rows(store.buffers(), &index)?);
                }
                store.shift(-drop);
            }
            Store::Paged(store) => store.filter(keep)?,
            Store::Rows(store) => {
                store.filter(keep);
                return self.join_rows();
            }
        }
        Ok(())
    }

    /// Drops the first `drop` columns of `time`, which pad all rows.
    pub(super) fn drop_front(&mut self, drop: i32, time: i32) -> Result<()> {
        match &mut self.store {
            Store::Append(store) if store.buffers().is_empty() => {}
            Store::Append(store) => {
                let planes = planes::view(store.buffers(), self.kind.axis, drop, time)?;
                store.replace(planes, time - drop);
            }
            Store::Ring(store) => store.shift(-drop),
            Store::Paged(_) | Store::Rows(_) => {}
        }
        Ok(())
    }

    /// Adds the rows of `other`, a cache of the same layer.
    pub(super) fn extend(
        &mut self,
        own: &Timeline,
        other: &TokenCache,
        others: &Timeline,
    ) -> Result<()> {
        if self.kind != other.kind {
            return Err(Error::cache("rows of one batch must be of one storage"));
        }
        let rows = |store: &Store| matches!(store, Store::Rows(_));
        let alike = self.codes == other.codes && self.later == other.later;
        if !alike || rows(&self.store) || rows(&other.store) {
            let mut apart = self.apart(own)?;
            apart.rows.extend(other.apart(others)?.rows);
            self.store = Store::Rows(apart);
            return self.join_rows();
        }
        self.reusable_from = self.reusable_from.max(other.reusable_from);
        let axis = self.kind.axis;
        let time = own.time.max(others.time);
        let (own_rows, other_rows) = (own.rows() as i32, others.rows() as i32);
        match (&mut self.store, &other.store) {
            (Store::Append(store), Store::Append(other)) => {
                let like =
                    if store.buffers().is_empty() { other.buffers() } else { store.buffers() };
                if like.is_empty() {
                    return Ok(());
                }
                let part = |store: &AppendStore, len: i32, rows: i32| -> Result<Planes> {
                    if store.buffers().is_empty() {
                        return like.iter().map(|x| empty(x, axis, rows, time)).collect();
                    }
                    planes::view(store.buffers(), axis, 0, len)?
                        .iter()
                        .map(|x| crate::ops::pad(x, axis as i32, time - len, 0))
                        .collect()
                };
                let a = part(store, own.time, own_rows)?;
                let b = part(other, others.time, other_rows)?;
                store.replace(planes::joined(&a, &b, 0)?, time);
            }
            (Store::Ring(store), Store::Ring(other)) => {
                let mut other = other.clone();
                store.shift(time - own.time);
                other.shift(time - others.time);
                let like =
                    if store.buffers().is_empty() { other.buffers() } else { store.buffers() };
                if like.is_empty() {
                    return Ok(());
                }
                let like = like.to_vec();
                let mut times: Vec<i32> = store.ordered_times();
                times.extend(other.ordered_times());
                times.sort_unstable();
                times.dedup();
                let part = |store: &RingStore, rows: i32| -> Result<Planes> {
                    if store.times().is_empty() {
                        let n = times.len() as i32;
                        return like.iter().map(|x| empty(x, axis, rows, n)).collect();
                    }
                    store.spread(&times)
                };
                let planes =
                    planes::joined(&part(store, own_rows)?, &part(&other, other_rows)?, 0)?;
                let floor = store.floor().max(other.floor());
                *store = RingStore::holding(store, planes, times, floor);
            }
            (Store::Paged(store), Store::Paged(other)) => {
                store.extend(own.rows(), other, others.rows())?;
            }
            _ => return Err(Error::cache("rows of one batch must be of one storage")),
        }
        Ok(())
    }

    /// Row `b` alone.
    pub(super) fn extract(&self, b: usize, line: &Timeline) -> Result<TokenCache> {
        if let Store::Rows(store) = &self.store {
            let row = store.rows.get(b).ok_or_else(|| Error::cache("no such row"))?;
            return Ok(row.cache.clone());
        }
        let axis = self.kind.axis;
        let pad = line.pads.get(b).copied().unwrap_or(0);
        let mut alone = self.clone();
        match &mut alone.store {
            Store::Append(store) => {
                if !store.buffers().is_empty() {
                    let planes = planes::view(store.buffers(), axis, pad, line.time)?;
                    let planes = planes::view(&planes, 0, b as i32, b as i32 + 1)?;
                    store.replace_grown(&planes)?;
                }
            }
            Store::Ring(store) => {
                let (planes, times) = store.ordered()?;
                let first = times.partition_point(|&t| t < pad) as i32;
                let n = times.len() as i32;
                let times: Vec<i32> = times.iter().skip(first as usize).map(|t| t - pad).collect();
                let floor = (store.floor() - pad).max(0);
                let planes = if times.is_empty() {
                    Vec::new()
                } else {
                    // A copy, so that a row does not keep its batch alive.
                    let planes = planes::view(&planes, axis, first, n)?;
                    planes::rows(&planes, &[b as i32])?
                };
                *store = RingStore::holding(store, planes, times, floor);
            }
            Store::Paged(store) => *store = store.extract(b)?,
            Store::Rows(_) => {}
        }
        Ok(alone)
    }

    /// Each row by itself.
    pub(super) fn apart(&self, line: &Timeline) -> Result<RowStore> {
        if let Store::Rows(store) = &self.store {
            return Ok(store.clone());
        }
        let rows = (0..line.rows())
            .map(|b| {
                Ok(super::rowwise::Row {
                    cache: self.extract(b, line)?,
                    tokens: line.tokens(b).max(0),
                })
            })
            .collect::<Result<_>>()?;
        Ok(RowStore { rows })
    }

    /// Takes rows apart that will be rewritten at different times.
    pub(super) fn part_rows(&mut self, span: &Span<'_>) -> Result<()> {
        let apart = matches!(self.store, Store::Rows(_));
        let unequal = span.line.common_pad().is_none() || span.right.iter().any(|&r| r > 0);
        if !apart && unequal && self.later.is_some() {
            // Before its first column a row is shorter than its padding.
            let mut line = span.line.clone();
            for pad in &mut line.pads {
                *pad = (*pad).min(line.time);
            }
            self.store = Store::Rows(self.apart(&line)?);
        }
        Ok(())
    }

    /// Joins rows again once all are written alike.
    pub(super) fn join_rows(&mut self) -> Result<()> {
        let Store::Rows(store) = &self.store else { return Ok(()) };
        let Some((first, rest)) = store.rows.split_first() else { return Ok(()) };
        let same = |row: &super::rowwise::Row| {
            row.cache.codes == first.cache.codes && row.cache.later.is_none()
        };
        if !same(first) || !rest.iter().all(same) {
            return Ok(());
        }
        let mut joined = first.cache.clone();
        let mut line = Timeline { time: first.tokens, pads: vec![0] };
        for row in rest {
            let alone = Timeline { time: row.tokens, pads: vec![0] };
            joined.extend(&line, &row.cache, &alone)?;
            let time = line.time.max(row.tokens);
            for pad in &mut line.pads {
                *pad += time - line.time;
            }
            line.pads.push(time - row.tokens);
            line.time = time;
        }
        *self = joined;
        Ok(())
    }
}

fn empty(like: &Array, axis: usize, rows: i32, columns: i32) -> Result<Array> {
    let mut shape = like.shape().to_vec();
    // Planes have the batch as their first axis and `axis` within bounds.
    (shape[0], shape[axis]) = (rows, columns);
    Ok(mlx_rs::ops::zeros_dtype(&shape, like.dtype())?)
}
