//! Masks of attention, made once for all layers that see alike.

use mlx_rs::Array;

use super::ring::HOLE;
use super::sight::Sight;
use super::timeline::Timeline;
use crate::pass::KNOWN_TOKENS;
use crate::{Result, array, ops};

/// Bytes of the largest mask that outlives its pass.
const KEPT: usize = 1 << 16;

/// What the queries of a pass see of the fetched columns.
#[derive(Debug, Clone)]
pub enum Mask {
    /// Everything.
    None,
    /// The last columns are the queries', each sees those up to itself.
    Causal,
    /// bool, broadcast to [B, heads, L, S]; true is visible.
    Array(Array),
}

/// The times of fetched columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Columns {
    /// `start..end`, in order.
    Run { start: i32, end: i32 },
    /// Any order, holes included.
    List(Vec<i32>),
}

impl Columns {
    /// The shortest form of a list.
    pub fn of(times: &[i32]) -> Columns {
        let run = times.windows(2).all(|w| matches!(w, [a, b] if *a != HOLE && a + 1 == *b));
        match (times.first(), times.last()) {
            (Some(&start), Some(&end)) if run && start != HOLE => {
                Columns::Run { start, end: end + 1 }
            }
            (None, _) => Columns::Run { start: 0, end: 0 },
            _ => Columns::List(times.to_vec()),
        }
    }

    fn oldest(&self) -> i32 {
        match self {
            Columns::Run { start, .. } => *start,
            Columns::List(times) => times.iter().copied().min().unwrap_or(0),
        }
    }

    fn array(&self) -> Result<Array> {
        match self {
            Columns::Run { start, end } => ops::arange(*start, *end),
            Columns::List(times) => Ok(array::from_i32s(times)),
        }
    }
}

/// All that a mask of a family is made from.
#[derive(Debug, PartialEq)]
struct Key {
    columns: Columns,
    line: Timeline,
    n: i32,
}

/// Masks that are asked for again and again while others are made: those of layers of one sight, at
/// one place of a span that is read step by step.
#[derive(Debug, PartialEq)]
struct Family {
    sight: Sight,
    step: i32,
}

/// The masks of a set of caches, made when first asked for and shared by its layers and passes. A
/// family has one slot, which its next mask takes, so that nothing grows with what was read.
#[derive(Debug, Default)]
pub struct MaskPool {
    made: Vec<(Family, Key, Array)>,
    causal: Option<(i32, i32, Array)>,
    /// Masks of the pass in which flagged tokens see each other both ways.
    both: Vec<(Sight, Array)>,
    flags: Option<Array>,
    /// Those of rows that are read each by itself.
    rows: Vec<MaskPool>,
}

impl MaskPool {
    /// The mask for `n` queries at `line.time` and on, over `columns`, those of the queries
    /// included.
    pub(super) fn mask(
        &mut self,
        sight: &Sight,
        columns: &Columns,
        line: &Timeline,
        n: i32,
    ) -> Result<Mask> {
        self.mask_of_step(sight, columns, line, n, 0)
    }

    /// As [`MaskPool::mask`] for place `step` of a span that is read step by step.
    pub(super) fn mask_of_step(
        &mut self,
        sight: &Sight,
        columns: &Columns,
        line: &Timeline,
        n: i32,
        step: i32,
    ) -> Result<Mask> {
        if let Some(mask) = plain(sight, columns, line, n) {
            return Ok(mask);
        }
        let family = Family { sight: sight.clone(), step: step % KNOWN_TOKENS };
        let key = Key { columns: columns.clone(), line: line.clone(), n };
        let slot = self.made.iter().position(|(known, ..)| *known == family);
        if let Some((_, known, mask)) = slot.and_then(|slot| self.made.get(slot))
            && *known == key
        {
            return Ok(Mask::Array(mask.clone()));
        }
        if let Some(slot) = slot {
            self.made.swap_remove(slot);
        }
        let mask = build(sight, columns, line, n)?;
        self.made.push((family, key, mask.clone()));
        Ok(Mask::Array(mask))
    }

    /// Begins a pass in which tokens with a flag, bool [B, L], see each other both ways.
    pub(crate) fn flag(&mut self, flags: Option<Array>) {
        self.both.clear();
        self.flags = flags;
    }

    /// The masks of row `b`, which is read by itself.
    pub(super) fn row(&mut self, b: usize) -> &mut MaskPool {
        if self.rows.len() <= b {
            self.rows.resize_with(b + 1, MaskPool::default);
        }
        // There is one by now.
        &mut self.rows[b]
    }

    /// Ends a pass over so many rows. Large masks are those of prompts, which do not come back.
    pub(crate) fn settle(&mut self, rows: usize) {
        self.flag(None);
        self.made.retain(|(_, _, mask)| mask.nbytes() <= KEPT);
        self.causal.take_if(|(_, _, mask)| mask.nbytes() > KEPT);
        self.rows.truncate(rows);
        self.rows.iter_mut().for_each(|row| row.settle(0));
    }

    /// Masks that it holds.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let own = self.made.len() + self.both.len() + usize::from(self.causal.is_some());
        own + self.rows.iter().map(MaskPool::len).sum::<usize>()
    }

    /// The flags of the pass.
    pub(crate) fn flags(&self) -> Option<&Array> {
        self.flags.as_ref()
    }

    /// The mask for the first `n` columns, in which tokens with a flag see each other both ways. In a
    /// pass with flags these are the pass's, and its layers share the mask.
    pub(super) fn both_ways(
        &mut self,
        sight: &Sight,
        line: &Timeline,
        n: i32,
        flags: &Array,
    ) -> Result<Mask> {
        let shared = self.flags.is_some();
        let known = self.both.iter().find(|(known, _)| known == sight);
        if let Some((_, mask)) = known.filter(|_| shared) {
            return Ok(Mask::Array(mask.clone()));
        }
        let (queries, keys) = (ops::expand(flags, 2)?, ops::expand(flags, 1)?);
        let pairs = ops::expand(&ops::logical_and(&queries, &keys)?, 1)?;
        let causal = build(sight, &Columns::Run { start: 0, end: n }, line, n)?;
        let mask = ops::logical_or(&causal, &pairs)?;
        if shared {
            self.both.push((sight.clone(), mask.clone()));
        }
        Ok(Mask::Array(mask))
    }

    /// [`Mask::Causal`] as an array [L, S].
    pub(crate) fn causal(&mut self, l: i32, s: i32) -> Result<Array> {
        if let Some((ml, ms, mask)) = &self.causal
            && (*ml, *ms) == (l, s)
        {
            return Ok(mask.clone());
        }
        let queries = ops::reshape(&ops::arange(s - l, s)?, &[l, 1])?;
        let keys = ops::reshape(&ops::arange(0, s)?, &[1, s])?;
        let mask = ops::less_equal(&keys, &queries)?;
        self.causal = Some((l, s, mask.clone()));
        Ok(mask)
    }
}

/// The mask when no array is needed for it.
fn plain(sight: &Sight, columns: &Columns, line: &Timeline, n: i32) -> Option<Mask> {
    let oldest = columns.oldest();
    let pad = line.common_pad();
    if line.padded_from(oldest) && (pad.is_none() || pad > Some(oldest)) {
        return None;
    }
    let last = line.time + n - 1;
    let all_seen = match (columns, sight.by_age()) {
        (Columns::List(times), _) if times.contains(&HOLE) => false,
        (_, true) => sees_all(sight, line, last, oldest),
        (Columns::Run { start, end }, false) => {
            (*start..*end).all(|t| sees_all(sight, line, last, t))
        }
        (Columns::List(times), false) => times.iter().all(|&t| sees_all(sight, line, last, t)),
    };
    if !all_seen {
        return None;
    }
    match columns {
        _ if n == 1 => Some(Mask::None),
        Columns::Run { end, .. } if *end == line.time + n => Some(Mask::Causal),
        _ => None,
    }
}

fn sees_all(sight: &Sight, line: &Timeline, query: i32, column: i32) -> bool {
    line.pads.iter().all(|&pad| sight.sees(query - pad, column - pad))
}

fn build(sight: &Sight, columns: &Columns, line: &Timeline, n: i32) -> Result<Array> {
    let queries = ops::reshape(&ops::arange(line.time, line.time + n)?, &[n, 1])?;
    let keys = ops::expand(&columns.array()?, 0)?;
    let mut mask = ops::less_equal(&keys, &queries)?;
    let pads = || -> Result<Array> {
        ops::reshape(&array::from_i32s(&line.pads), &[line.pads.len() as i32, 1, 1, 1])
    };
    let condition = match (sight.absolute(), line.common_pad()) {
        (true, Some(0)) | (false, _) => sight.array(&queries, &keys)?,
        (true, _) => {
            let pads = pads()?;
            sight.array(&ops::sub(&queries, &pads)?, &ops::sub(&keys, &pads)?)?
        }
    };
    if let Some(condition) = condition {
        mask = ops::logical_and(&mask, &condition)?;
    }
    if line.padded_from(columns.oldest()) {
        // Queries in the padding see each other: a row without any key has no softmax.
        let pads = pads()?;
        let real = ops::less_equal(&pads, &keys)?;
        let padding = ops::less(&queries, &pads)?;
        mask = ops::logical_and(&mask, &ops::logical_or(&real, &padding)?)?;
    }
    Ok(mask)
}
