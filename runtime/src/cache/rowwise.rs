//! Rows that are rewritten at different times, each a cache of its own.

use mlx_rs::Array;

use super::codec::Code;
use super::mask::{Mask, MaskPool};
use super::read::{Read, Source, Stored};
use super::timeline::Timeline;
use super::token_reads::whole;
use super::tokens::{Span, TokenCache};
use crate::phase::Phase;
use crate::{Result, ops};

/// Rows that are rewritten at different times, each a cache of its own.
#[derive(Debug, Clone)]
pub(super) struct RowStore {
    pub rows: Vec<Row>,
}

/// One row and the tokens that it holds.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub cache: TokenCache,
    pub tokens: i32,
}

impl RowStore {
    /// Calls `f` with each row, its real tokens of this pass as `start..end`, and its own span.
    fn each<T>(
        &mut self,
        span: &Span<'_>,
        mut f: impl FnMut(&mut TokenCache, i32, (i32, i32), &Span<'_>) -> Result<T>,
    ) -> Result<Vec<(Option<T>, i32, i32)>> {
        let mut out = Vec::with_capacity(self.rows.len());
        for (b, row) in self.rows.iter_mut().enumerate() {
            let pad = span.line.pads.get(b).copied().unwrap_or(0);
            let start = (pad - span.line.time).clamp(0, span.n);
            let end = (span.n - span.right.get(b).copied().unwrap_or(0)).max(start);
            if start == end {
                out.push((None, start, end));
                continue;
            }
            let line = Timeline { time: row.tokens, pads: vec![0] };
            let own = Span { line: &line, right: &[], n: end - start, phase: span.phase };
            let value = f(&mut row.cache, b as i32, (start, end), &own)?;
            if span.phase != Phase::ReadBlock {
                row.tokens += own.n;
            }
            out.push((Some(value), start, end));
        }
        Ok(out)
    }

    /// As [`TokenCache::attend`], each row by itself; `flags` [B, L] as there.
    pub fn attend(
        &mut self,
        keys: &Array,
        values: &Array,
        flags: Option<&Array>,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        let rows = self.each(span, |cache, b, (start, end), own| {
            let row = |x: &Array, axis| ops::slice(&ops::slice(x, 0, b, b + 1)?, axis, start, end);
            // Lengths differ, and so do masks.
            let masks = masks.row(b as usize);
            masks.flag(flags.map(|flags| row(flags, 1)).transpose()?);
            cache.attend(&row(keys, 2)?, &row(values, 2)?, own, masks)
        })?;
        Ok(whole(Source::Rows(rows), Mask::None))
    }

    /// All rows padded in front to the longest, and what the queries see of them.
    pub fn store_and_fetch(
        &mut self,
        arrays: &[&Array],
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<(Vec<Stored>, Mask)> {
        let time = span.line.time + span.n;
        let mut axis = 1;
        let rows = self.each(span, |cache, b, (start, end), own| {
            axis = cache.axis();
            let parts: Vec<Array> = arrays
                .iter()
                .map(|x| ops::slice(&ops::slice(x, 0, b, b + 1)?, axis as i32, start, end))
                .collect::<Result<_>>()?;
            let parts: Vec<&Array> = parts.iter().collect();
            let (stored, _) = cache.store_and_fetch(&parts, own, masks.row(b as usize))?;
            stored.iter().map(Stored::decoded).collect::<Result<Vec<_>>>()
        })?;
        let mut joined = Vec::with_capacity(arrays.len());
        for (i, x) in arrays.iter().enumerate() {
            let mut column = Vec::with_capacity(rows.len());
            for (b, (planes, _, end)) in (0..).zip(&rows) {
                // The padding behind a row's tokens takes columns here as it does elsewhere.
                let behind = span.n - end;
                column.push(match planes.as_ref().and_then(|p| p.get(i)) {
                    Some(own) => {
                        let front = time - behind - own.dim(axis as i32);
                        ops::pad(own, axis as i32, front, behind)?
                    }
                    None => {
                        let one = ops::zeros_like(&ops::slice(x, 0, b, b + 1)?)?;
                        let one = ops::slice(&one, axis as i32, 0, 1)?;
                        ops::pad(&one, axis as i32, time - 1, 0)?
                    }
                });
            }
            let planes = vec![ops::concat(&column.iter().collect::<Vec<_>>(), 0)?];
            joined.push(Stored { code: Code::Plain, planes });
        }
        let columns = super::mask::Columns::Run { start: 0, end: time };
        let mask = masks.mask(&super::sight::Sight::All, &columns, span.line, span.n)?;
        Ok((joined, mask))
    }

    /// As [`TokenCache::settle`], each row by itself.
    pub fn settle(&mut self) -> Result<()> {
        for row in &mut self.rows {
            row.cache.settle(&Timeline { time: row.tokens, pads: vec![0] })?;
        }
        Ok(())
    }

    /// As [`TokenCache::max_append`], the least of the rows.
    pub fn max_append(&self) -> Option<i32> {
        let one = |row: &Row| row.cache.max_append(&Timeline { time: row.tokens, pads: vec![0] });
        self.rows.iter().filter_map(one).min()
    }

    pub fn arrays(&self) -> Vec<&Array> {
        self.rows.iter().flat_map(|row| row.cache.arrays()).collect()
    }

    pub fn can_trim(&self, n: i32) -> bool {
        self.rows.iter().all(|row| {
            let line = Timeline { time: row.tokens, pads: vec![0] };
            row.cache.can_trim(n, &line)
        })
    }

    /// Forgets the last `n[b]` tokens of row `b`.
    pub fn trim(&mut self, n: &[i32]) -> Result<()> {
        for (row, &n) in self.rows.iter_mut().zip(n) {
            let line = Timeline { time: row.tokens, pads: vec![0] };
            row.cache.trim(n, &line)?;
            row.tokens -= n;
        }
        Ok(())
    }

    pub fn filter(&mut self, keep: &[usize]) {
        self.rows = keep.iter().filter_map(|&b| self.rows.get(b).cloned()).collect();
    }
}
