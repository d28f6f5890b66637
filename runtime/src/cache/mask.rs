use mlx_rs::Array;

use super::rule::Rule;
use super::timeline::Timeline;
use super::window::HOLE;
use crate::{Error, Result, array, ops};

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

/// All that a mask is made from, the beginnings of rows aside, which a pass does not change.
#[derive(Debug, PartialEq)]
struct Key {
    rule: Rule,
    columns: Columns,
    time: i32,
    n: i32,
}

/// The masks of one pass, made when first asked for and shared by its layers.
#[derive(Debug, Default)]
pub struct MaskPool {
    made: Vec<(Key, Array)>,
    /// Masks of the pass in which flagged tokens see each other both ways.
    both: Vec<(Rule, Array)>,
    flags: Option<Array>,
    causal: Option<(i32, i32, Array)>,
}

impl MaskPool {
    /// The mask for `n` queries at `line.time` and on, over `columns`, those of the queries
    /// included.
    pub(super) fn mask(
        &mut self,
        rule: &Rule,
        columns: &Columns,
        line: &Timeline,
        n: i32,
    ) -> Result<Mask> {
        if let Some(mask) = plain(rule, columns, line, n) {
            return Ok(mask);
        }
        let key = Key { rule: rule.clone(), columns: columns.clone(), time: line.time, n };
        if let Some((_, mask)) = self.made.iter().find(|(known, _)| *known == key) {
            return Ok(Mask::Array(mask.clone()));
        }
        let mask = build(rule, columns, line, n)?;
        self.made.push((key, mask.clone()));
        Ok(Mask::Array(mask))
    }

    /// A pool for a pass in which tokens with a flag, bool [B, L], see each other both ways.
    pub(crate) fn flagged(flags: Array) -> Self {
        MaskPool { flags: Some(flags), ..Self::default() }
    }

    /// The flags of the pass.
    pub(crate) fn flags(&self) -> Option<&Array> {
        self.flags.as_ref()
    }

    /// The mask for the first `n` columns, in which flagged tokens see each other both ways: those
    /// of the pass, or of `flags`.
    pub(super) fn both_ways(
        &mut self,
        rule: &Rule,
        line: &Timeline,
        n: i32,
        flags: Option<&Array>,
    ) -> Result<Mask> {
        let columns = Columns::Run { start: 0, end: n };
        let build = |flags: &Array| -> Result<Array> {
            let (queries, keys) = (ops::expand(flags, 2)?, ops::expand(flags, 1)?);
            let pairs = ops::expand(&ops::logical_and(&queries, &keys)?, 1)?;
            ops::logical_or(&build(rule, &columns, line, n)?, &pairs)
        };
        let own = match (flags, &self.flags) {
            (Some(flags), _) => return build(flags).map(Mask::Array),
            (None, Some(own)) => own,
            (None, None) => return Err(Error::cache("a pass without flags")),
        };
        if let Some((_, mask)) = self.both.iter().find(|(known, _)| known == rule) {
            return Ok(Mask::Array(mask.clone()));
        }
        let mask = build(own)?;
        self.both.push((rule.clone(), mask.clone()));
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
fn plain(rule: &Rule, columns: &Columns, line: &Timeline, n: i32) -> Option<Mask> {
    let oldest = columns.oldest();
    let pad = line.common_pad();
    if line.padded_from(oldest) && (pad.is_none() || pad > Some(oldest)) {
        return None;
    }
    let last = line.time + n - 1;
    let all_seen = match (columns, rule.by_age()) {
        (Columns::List(times), _) if times.contains(&HOLE) => false,
        (_, true) => sees_all(rule, line, last, oldest),
        (Columns::Run { start, end }, false) => {
            (*start..*end).all(|t| sees_all(rule, line, last, t))
        }
        (Columns::List(times), false) => times.iter().all(|&t| sees_all(rule, line, last, t)),
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

fn sees_all(rule: &Rule, line: &Timeline, query: i32, column: i32) -> bool {
    line.pads.iter().all(|&pad| rule.sees(query - pad, column - pad))
}

fn build(rule: &Rule, columns: &Columns, line: &Timeline, n: i32) -> Result<Array> {
    let queries = ops::reshape(&ops::arange(line.time, line.time + n)?, &[n, 1])?;
    let keys = ops::expand(&columns.array()?, 0)?;
    let mut mask = ops::less_equal(&keys, &queries)?;
    let pads = || -> Result<Array> {
        ops::reshape(&array::from_i32s(&line.pads), &[line.pads.len() as i32, 1, 1, 1])
    };
    let condition = match (rule.absolute(), line.common_pad()) {
        (true, Some(0)) | (false, _) => rule.array(&queries, &keys)?,
        (true, _) => {
            let pads = pads()?;
            rule.array(&ops::sub(&queries, &pads)?, &ops::sub(&keys, &pads)?)?
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
