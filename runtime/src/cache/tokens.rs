use mlx_rs::Array;

use super::append::AppendStore;
use super::codec::Codec;
use super::mask::{Columns, Mask, MaskPool};
use super::planes::{self, Planes};
use super::read::{Read, Source};
use super::rule::Rule;
use super::timeline::Timeline;
use super::window::WindowStore;
use crate::pass::Phase;
use crate::{Error, Result, ops};

/// When stored columns are rewritten by another codec: after the append that reaches `start`.
#[derive(Debug, Clone)]
pub(super) struct Conversion {
    pub start: i32,
    pub codec: Codec,
}

/// Where columns lie.
#[derive(Debug, Clone)]
pub(super) enum Store {
    Append(AppendStore),
    Window(WindowStore),
}

/// A layer that remembers something for each token.
#[derive(Debug, Clone)]
pub struct TokenCache {
    pub(super) store: Store,
    pub(super) codec: Codec,
    pub(super) later: Option<Conversion>,
    pub(super) rule: Rule,
    pub(super) axis: usize,
}

impl TokenCache {
    /// Stores one array of each kind for `n` tokens at `line.time` and on.
    pub(super) fn append(
        &mut self,
        arrays: &[&Array],
        line: &Timeline,
        n: i32,
        many: bool,
    ) -> Result<()> {
        let planes = self.codec.encode(arrays)?;
        match &mut self.store {
            Store::Append(store) => store.append(&planes),
            Store::Window(store) if many => store.append_many(&planes, n, line),
            Store::Window(store) => store.append_one(&planes, line),
        }
    }

    /// The stored planes and the times of their columns.
    fn fetch(&self, line: &Timeline, n: i32) -> Result<(Planes, Columns)> {
        Ok(match &self.store {
            Store::Append(store) => (store.fetch()?, Columns::Run { start: 0, end: line.time + n }),
            Store::Window(store) => (store.fetch()?, Columns::of(store.times())),
        })
    }

    /// Appends keys and values and reads what the phase's queries see.
    pub(crate) fn attend(
        &mut self,
        phase: Phase,
        keys: &Array,
        values: &Array,
        line: &Timeline,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        let n = keys.dim(self.axis as i32);
        if phase == Phase::ReadBlock {
            return self.block(keys, values, line);
        }
        let many = !(phase == Phase::Decode || (phase.is_prompt() && n == 1));
        self.append(&[keys, values], line, n, many)?;
        let (planes, columns) = self.fetch(line, n)?;
        let read = if phase == Phase::AppendKnown && n > 1 {
            self.each(&planes, &columns, line, n, masks)?
        } else {
            let mask = masks.mask(self.rule, &columns, line, n)?;
            Read { source: self.source(planes)?, mask }
        };
        self.convert(line.time + n)?;
        Ok(read)
    }

    /// Appends and fetches all that is stored, decoded.
    pub(crate) fn store_and_fetch(
        &mut self,
        phase: Phase,
        arrays: &[&Array],
        line: &Timeline,
        masks: &mut MaskPool,
    ) -> Result<(Vec<Array>, Mask)> {
        let n = arrays.first().map_or(0, |x| x.dim(self.axis as i32));
        let many = !(phase == Phase::Decode || (phase.is_prompt() && n == 1));
        self.append(arrays, line, n, many)?;
        let (planes, columns) = self.fetch(line, n)?;
        let fetched = self.codec.decode(&planes)?;
        let mask = masks.mask(self.rule, &columns, line, n)?;
        self.convert(line.time + n)?;
        Ok((fetched, mask))
    }

    fn source(&self, planes: Planes) -> Result<Source> {
        let wrong = |_| Error::cache("a layer that attends stores keys and values");
        match self.codec {
            Codec::Plain => {
                let [keys, values] = <[Array; 2]>::try_from(planes).map_err(wrong)?;
                Ok(Source::Plain { keys, values })
            }
            Codec::Affine(quantisation) => {
                let [kw, ks, kb, vw, vs, vb] = <[Array; 6]>::try_from(planes).map_err(wrong)?;
                Ok(Source::Affine { keys: [kw, ks, kb], values: [vw, vs, vb], quantisation })
            }
        }
    }

    /// A read a query, each of its own prefix, with the arithmetic of single steps.
    fn each(
        &self,
        planes: &[Array],
        columns: &Columns,
        line: &Timeline,
        n: i32,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        let total = planes.first().map_or(0, |p| p.dim(self.axis as i32));
        let mut reads = Vec::with_capacity(n as usize);
        for i in 0..n {
            let end = total - n + i + 1;
            let at = Timeline { time: line.time + i, pads: line.pads.clone() };
            // Columns are in order of time here; those out of sight are cut off in front.
            let (start, columns) = match columns {
                Columns::Run { start, .. } => {
                    let first = (*start..at.time)
                        .find(|&t| at.pads.iter().any(|p| self.rule.sees(at.time - p, t - p)))
                        .unwrap_or(at.time);
                    (first - start, Columns::Run { start: first, end: at.time + 1 })
                }
                Columns::List(times) => {
                    (0, Columns::of(times.get(..end as usize).unwrap_or_default()))
                }
            };
            let planes = planes::view(planes, self.axis, start, end)?;
            let mask = masks.mask(self.rule, &columns, &at, 1)?;
            reads.push(Read { source: self.source(planes)?, mask });
        }
        Ok(Read { source: Source::Each(reads), mask: Mask::None })
    }

    /// What is stored and the block's own, nothing appended, everything visible in both directions.
    fn block(&self, keys: &Array, values: &Array, line: &Timeline) -> Result<Read> {
        let own = [keys.clone(), values.clone()];
        let (planes, times) = match &self.store {
            Store::Append(store) => (store.fetch()?, (0..line.time).collect::<Vec<i32>>()),
            Store::Window(store) => store.ordered()?,
        };
        if times.is_empty() {
            let [keys, values] = own;
            return Ok(Read { source: Source::Plain { keys, values }, mask: Mask::None });
        }
        let sees =
            |t: i32| line.pads.iter().any(|p| t >= *p && self.rule.sees(line.time - p, t - p));
        let kept: Vec<i32> = (0..).zip(&times).filter(|(_, t)| sees(**t)).map(|(i, _)| i).collect();
        let stored = self.codec.decode(&planes)?;
        let stored = match (kept.first(), kept.last()) {
            (Some(&a), Some(&b)) if (b - a) as usize + 1 == kept.len() => {
                planes::view(&stored, self.axis, a, b + 1)?
            }
            _ => planes::pick(&stored, self.axis, &kept)?,
        };
        let joined = planes::joined(&stored, &own, self.axis)?;
        let [keys, values] = <[Array; 2]>::try_from(joined)
            .map_err(|_| Error::cache("a layer that attends stores keys and values"))?;
        let mask = if line.pads.iter().all(|p| Some(p) == line.pads.first()) {
            Mask::None
        } else {
            let block = keys.dim(self.axis as i32) - kept.len() as i32;
            let mut visible = Vec::with_capacity(line.pads.len() * (kept.len() + block as usize));
            for pad in &line.pads {
                // `kept` numbers columns of `times`.
                visible.extend(kept.iter().map(|&i| {
                    let t = times[i as usize];
                    t >= *pad && self.rule.sees(line.time - pad, t - pad)
                }));
                visible.extend(std::iter::repeat_n(true, block as usize));
            }
            let shape = [line.pads.len() as i32, 1, 1, kept.len() as i32 + block];
            Mask::Array(Array::from_slice(&visible, &shape))
        };
        Ok(Read { source: Source::Plain { keys, values }, mask })
    }

    /// Rewrites all columns by the codec that takes over at `end` positions, once.
    fn convert(&mut self, end: i32) -> Result<()> {
        if end == 0 || self.later.as_ref().is_none_or(|later| end < later.start) {
            return Ok(());
        }
        let Some(later) = self.later.take() else { return Ok(()) };
        let rewrite = |planes: &[Array]| -> Result<Planes> {
            let arrays = self.codec.decode(planes)?;
            let planes = later.codec.encode(&arrays.iter().collect::<Vec<_>>())?;
            // At once, so that only one layer is held in both forms.
            mlx_rs::transforms::eval(&planes)?;
            Ok(planes)
        };
        match &mut self.store {
            Store::Append(store) => {
                let planes = rewrite(store.buffers())?;
                let len = store.len();
                store.replace(planes, len);
            }
            Store::Window(store) => {
                let planes = rewrite(store.buffers())?;
                store.replace(planes);
            }
        }
        self.codec = later.codec;
        mlx_rs::memory::clear_cache()?;
        Ok(())
    }

    pub(super) fn can_trim_to(&self, time: i32) -> bool {
        match &self.store {
            Store::Append(_) => true,
            Store::Window(store) => store.can_trim_to(time),
        }
    }

    pub(super) fn trim_to(&mut self, time: i32, now: i32) -> Result<()> {
        match &mut self.store {
            Store::Append(store) => store.trim(now - time),
            Store::Window(store) => store.trim_to(time),
        }
    }

    /// The arrays that hold the layer's state.
    pub(super) fn buffers(&self) -> &[Array] {
        match &self.store {
            Store::Append(store) => store.buffers(),
            Store::Window(store) => store.buffers(),
        }
    }

    /// Moves each row's columns right, after a pass with padding at the right or a rollback of
    /// unequal lengths; `time` is the count of columns now.
    pub(super) fn roll(&mut self, shifts: &[i32], time: i32) -> Result<()> {
        match &mut self.store {
            Store::Append(store) => {
                let planes = planes::view(store.buffers(), self.axis, 0, time)?;
                store.replace(planes::rolled(&planes, self.axis, shifts)?, time);
            }
            Store::Window(store) => {
                let (planes, times) = store.ordered()?;
                if times.is_empty() {
                    return Ok(());
                }
                let planes = planes::rolled(&planes, self.axis, shifts)?;
                *store = WindowStore::holding(store, planes, times, store.floor());
            }
        }
        Ok(())
    }

    pub(super) fn filter(&mut self, keep: &[i32], drop: i32, time: i32) -> Result<()> {
        match &mut self.store {
            Store::Append(store) if store.buffers().is_empty() => Ok(()),
            Store::Append(store) => {
                let planes = planes::view(store.buffers(), self.axis, drop, time)?;
                store.replace(planes::rows(&planes, keep)?, time - drop);
                Ok(())
            }
            Store::Window(store) => {
                if !store.buffers().is_empty() {
                    store.replace(planes::rows(store.buffers(), keep)?);
                }
                store.shift(-drop);
                Ok(())
            }
        }
    }

    /// Adds the rows of `other`, a cache of the same layer, right-aligned at `time`.
    pub(super) fn extend(
        &mut self,
        (own_time, own_rows): (i32, i32),
        other: &TokenCache,
        (other_time, other_rows): (i32, i32),
    ) -> Result<()> {
        if self.codec != other.codec {
            return Err(Error::cache("rows of one batch must be written by one codec"));
        }
        let axis = self.axis;
        let time = own_time.max(other_time);
        match (&mut self.store, &other.store) {
            (Store::Append(own), Store::Append(other)) => {
                let like = if own.buffers().is_empty() { other.buffers() } else { own.buffers() };
                if like.is_empty() {
                    return Ok(());
                }
                let part = |store: &AppendStore, len: i32, rows: i32| -> Result<Planes> {
                    if store.buffers().is_empty() {
                        return like.iter().map(|x| empty(x, axis, rows, time)).collect();
                    }
                    planes::view(store.buffers(), axis, 0, len)?
                        .iter()
                        .map(|x| ops::pad(x, axis as i32, time - len, 0))
                        .collect()
                };
                let a = part(own, own_time, own_rows)?;
                let b = part(other, other_time, other_rows)?;
                own.replace(planes::joined(&a, &b, 0)?, time);
            }
            (Store::Window(own), Store::Window(other)) => {
                let mut other = other.clone();
                own.shift(time - own_time);
                other.shift(time - other_time);
                let like = if own.buffers().is_empty() { other.buffers() } else { own.buffers() };
                if like.is_empty() {
                    return Ok(());
                }
                let like = like.to_vec();
                let mut times: Vec<i32> = own.ordered_times();
                times.extend(other.ordered_times());
                times.sort_unstable();
                times.dedup();
                let part = |store: &WindowStore, rows: i32| -> Result<Planes> {
                    if store.buffers().is_empty() {
                        let n = times.len() as i32;
                        return like.iter().map(|x| empty(x, axis, rows, n)).collect();
                    }
                    store.spread(&times)
                };
                let planes = planes::joined(&part(own, own_rows)?, &part(&other, other_rows)?, 0)?;
                let floor = own.floor().max(other.floor());
                *own = WindowStore::holding(own, planes, times, floor);
            }
            _ => return Err(Error::cache("rows of one batch must have one storage")),
        }
        Ok(())
    }

    /// Row `b` alone, without the `pad` columns before its first token.
    pub(super) fn extract(&self, b: i32, pad: i32, time: i32) -> Result<TokenCache> {
        let mut alone = self.clone();
        match &mut alone.store {
            Store::Append(store) => {
                if !store.buffers().is_empty() {
                    let planes = planes::view(store.buffers(), self.axis, pad, time)?;
                    let planes = planes::view(&planes, 0, b, b + 1)?;
                    store.replace_grown(&planes)?;
                }
            }
            Store::Window(store) => {
                let (planes, times) = store.ordered()?;
                let first = times.partition_point(|&t| t < pad) as i32;
                let n = times.len() as i32;
                let times: Vec<i32> = times.iter().skip(first as usize).map(|t| t - pad).collect();
                let floor = (store.floor() - pad).max(0);
                let planes = if times.is_empty() {
                    Vec::new()
                } else {
                    // A copy, so that a row does not keep its batch alive.
                    let planes = planes::view(&planes, self.axis, first, n)?;
                    planes::rows(&planes, &[b])?
                };
                *store = WindowStore::holding(store, planes, times, floor);
            }
        }
        Ok(alone)
    }
}

fn empty(like: &Array, axis: usize, rows: i32, columns: i32) -> Result<Array> {
    let mut shape = like.shape().to_vec();
    // Planes have the batch as their first axis and `axis` within bounds.
    (shape[0], shape[axis]) = (rows, columns);
    Ok(mlx_rs::ops::zeros_dtype(&shape, like.dtype())?)
}
