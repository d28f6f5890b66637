//! What passes read of a layer's cache, one method a phase: the phase is the method's name and is
//! never inferred from a length.

use mlx_rs::Array;

use super::codec::Code;
use super::kernels::Kernel;
use super::mask::{Columns, Mask, MaskPool};
use super::planes;
use super::read::{Read, Source, Stored};
use super::timeline::Timeline;
use super::tokens::{AppendMode, Span, Store, TokenCache};
use crate::phase::Phase;
use crate::{Error, Result, ops};

/// Positions that are decoded at a time for several queries.
const WINDOW_TILE: i32 = 1024;

impl TokenCache {
    /// Appends keys [B, K, L, D] and values [B, K, L, E] and reads what the phase's queries see. In
    /// a pass with flags, tokens with one see each other both ways.
    pub fn attend(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        match (span.phase, masks.flags().cloned(), span.mode()) {
            (Phase::AppendKnown, ..) => self.append_committed(keys, values, span, masks),
            (Phase::ReadBlock, ..) => self.read_block(keys, values, span, masks),
            (_, Some(flags), _) => self.append_bidirectional(keys, values, &flags, span, masks),
            (_, None, AppendMode::Step) => self.append_decode(keys, values, span, masks),
            (_, None, AppendMode::Window) => self.append_window(keys, values, span, masks),
        }
    }

    /// Appends one token a row, which sees what is stored and itself as far as the storage's sight
    /// goes.
    pub fn append_decode(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        if span.n != 1 {
            return Err(Error::cache(format!("a step of {} tokens", span.n)));
        }
        self.causal(keys, values, span, AppendMode::Step, masks)
    }

    /// Appends tokens, so many a row; each sees what is stored and those up to itself.
    pub fn append_window(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        self.causal(keys, values, span, AppendMode::Window, masks)
    }

    fn causal(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        mode: AppendMode,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        let read = Appended { flags: None, mode, masks };
        self.append_and_read(keys, values, span, read, |cache, planes, columns, masks| {
            let mask = masks.mask(&cache.kind.sight, columns, span.line, span.n)?;
            Ok(cache.read(cache.source(planes)?, mask, mode, span.line.rows()))
        })
    }

    /// Appends tokens that are decided already: each is read alone, with the arithmetic of
    /// [`TokenCache::append_decode`].
    pub fn append_committed(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        if matches!(self.store, Store::Ring(_)) {
            return self.one_by_one(keys, values, span, masks);
        }
        let read = Appended { flags: None, mode: AppendMode::Step, masks };
        self.append_and_read(keys, values, span, read, |cache, planes, _, masks| {
            cache.each(planes, span, masks)
        })
    }

    /// A step a token: in a ring each is read in the order in which it finds the others.
    fn one_by_one(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        self.part_rows(span)?;
        if let Store::Rows(store) = &mut self.store {
            return store.attend(keys, values, None, span, masks);
        }
        let axis = self.kind.axis as i32;
        let mut reads = Vec::with_capacity(span.n as usize);
        for i in 0..span.n {
            let line = Timeline { time: span.line.time + i, pads: span.line.pads.clone() };
            let one = Span { line: &line, right: &[], n: 1, phase: span.phase };
            let (k, v) = (ops::slice(keys, axis, i, i + 1)?, ops::slice(values, axis, i, i + 1)?);
            self.append(&[&k, &v], &one, AppendMode::Step)?;
            let (planes, columns) = self.fetch(line.time + 1)?;
            let mask = masks.mask_of_step(&self.kind.sight, &columns, &line, 1, i)?;
            reads.push(self.read(self.source(&planes)?, mask, AppendMode::Step, line.rows()));
        }
        self.convert_after(span)?;
        Ok(whole(Source::Each(reads), Mask::None))
    }

    /// Appends the first tokens of a set: as [`TokenCache::append_window`], but those with a flag,
    /// bool [B, L], see each other both ways, whatever the storage's sight.
    ///
    /// # Errors
    /// When something is stored already: what came before could not be shown to it any more.
    pub fn append_bidirectional(
        &mut self,
        keys: &Array,
        values: &Array,
        flags: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        let shape = [keys.dim(0), span.n];
        if flags.shape() != shape {
            let found = format!("{:?}", flags.shape());
            return Err(Error::input("flags of tokens", format!("{shape:?}"), found));
        }
        if span.line.time != 0 {
            return Err(Error::cache(
                "tokens that see each other both ways come first, and at once",
            ));
        }
        let read = Appended { flags: Some(flags), mode: AppendMode::Window, masks };
        self.append_and_read(keys, values, span, read, |cache, planes, _, masks| {
            let mask = masks.both_ways(&cache.kind.sight, span.line, span.n, flags)?;
            Ok(cache.read(cache.source(planes)?, mask, AppendMode::Window, span.line.rows()))
        })
    }

    fn append_and_read(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        Appended { flags, mode, masks }: Appended<'_>,
        read: impl FnOnce(&TokenCache, &[Array], &Columns, &mut MaskPool) -> Result<Read>,
    ) -> Result<Read> {
        self.part_rows(span)?;
        if let Store::Rows(store) = &mut self.store {
            return store.attend(keys, values, flags, span, masks);
        }
        self.append(&[keys, values], span, mode)?;
        let time = span.line.time + span.n;
        let (planes, columns) = self.fetch(time)?;
        let read = read(self, &planes, &columns, masks)?;
        self.convert_after(span)?;
        Ok(read)
    }

    fn read(&self, source: Source, mask: Mask, mode: AppendMode, rows: usize) -> Read {
        let [alone, several] = &self.kind.kernels;
        let kernels = if rows == 1 { alone } else { several };
        let coded = matches!(source, Source::Coded { .. });
        let kernel = match (mode, &mask) {
            (AppendMode::Step, _) if coded => Kernel::Tiled(self.kind.decode_tile),
            // Several queries weigh more than a tile does: tiles are few for them.
            (AppendMode::Window, _) if coded => Kernel::Tiled(WINDOW_TILE),
            (AppendMode::Step, _) => kernels.decode,
            (AppendMode::Window, Mask::None | Mask::Causal) => kernels.window,
            (AppendMode::Window, Mask::Array(_)) => kernels.masked,
        };
        Read { source, mask, kernel }
    }

    /// Appends and fetches all that is stored, as it is kept.
    pub(crate) fn store_and_fetch(
        &mut self,
        arrays: &[&Array],
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<(Vec<Stored>, Mask)> {
        self.part_rows(span)?;
        if let Store::Rows(store) = &mut self.store {
            return store.store_and_fetch(arrays, span, masks);
        }
        // Several known tokens are fetched at once: all that the first of them sees has to stay.
        let mode = match span.phase {
            Phase::AppendKnown if span.n > 1 => AppendMode::Window,
            _ => span.mode(),
        };
        self.append(arrays, span, mode)?;
        let time = span.line.time + span.n;
        let (planes, columns) = self.fetch(time)?;
        let parts = self.codes.split(&planes)?.into_iter();
        let fetched =
            parts.map(|(code, planes)| Stored { code, planes: planes.to_vec() }).collect();
        let mask = masks.mask(&self.kind.sight, &columns, span.line, span.n)?;
        self.convert_after(span)?;
        Ok((fetched, mask))
    }

    fn source(&self, planes: &[Array]) -> Result<Source> {
        let parts = self.codes.split(planes)?;
        let [(k, keys), (v, values)] = parts.as_slice() else {
            return Err(Error::cache("a layer that attends stores keys and values"));
        };
        if let (Some(kq), Some(vq), Ok(k3), Ok(v3)) =
            (k.quantisation(), v.quantisation(), triple(keys), triple(values))
        {
            return Ok(Source::Affine { keys: k3, values: v3, quantisation: [kq, vq] });
        }
        if let (Code::Plain, Code::Plain, [keys], [values]) = (k, v, *keys, *values) {
            return Ok(Source::Plain { keys: keys.clone(), values: values.clone() });
        }
        let rotated = self.kind.deferred && matches!(v, Code::TurboValues { .. });
        let (keys, values) = ((*k, keys.to_vec()), (*v, values.to_vec()));
        Ok(Source::Coded { keys, values, rotated })
    }

    /// A read a query, each of its own prefix, with the arithmetic of single steps.
    fn each(&self, planes: &[Array], span: &Span<'_>, masks: &mut MaskPool) -> Result<Read> {
        let line = span.line;
        let mut reads = Vec::with_capacity(span.n as usize);
        for i in 0..span.n {
            let at = Timeline { time: line.time + i, pads: line.pads.clone() };
            let end = at.time + 1;
            let planes = planes::view(planes, self.kind.axis, 0, end)?;
            let columns = Columns::Run { start: 0, end };
            let mask = masks.mask_of_step(&self.kind.sight, &columns, &at, 1, i)?;
            reads.push(self.read(self.source(&planes)?, mask, AppendMode::Step, line.rows()));
        }
        Ok(whole(Source::Each(reads), Mask::None))
    }

    /// Reads what is stored and the block's own keys and values, appends nothing; the block sees all
    /// of itself.
    pub fn read_block(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        self.part_rows(span)?;
        if let Store::Rows(store) = &mut self.store {
            return store.attend(keys, values, None, span, masks);
        }
        self.block(keys, values, span.line)
    }

    fn block(&self, keys: &Array, values: &Array, line: &Timeline) -> Result<Read> {
        let axis = self.kind.axis;
        let own = [keys.clone(), values.clone()];
        let (planes, times) = match &self.store {
            _ if line.time == 0 => (Vec::new(), Vec::new()),
            Store::Ring(store) => store.ordered()?,
            _ => (self.fetch(line.time)?.0, (0..line.time).collect::<Vec<i32>>()),
        };
        if times.is_empty() {
            let [keys, values] = own;
            return Ok(whole(Source::Plain { keys, values }, Mask::None));
        }
        let sees = |t: i32, pad: i32| t >= pad && self.kind.sight.sees(line.time - pad, t - pad);
        let (kept, kept_times): (Vec<i32>, Vec<i32>) =
            (0..).zip(times).filter(|(_, t)| line.pads.iter().any(|pad| sees(*t, *pad))).unzip();
        let stored = self.codes.decode(&planes)?;
        let stored = match (kept.first(), kept.last()) {
            (Some(&a), Some(&b)) if (b - a) as usize + 1 == kept.len() => {
                planes::view(&stored, axis, a, b + 1)?
            }
            _ => planes::pick(&stored, axis, &kept)?,
        };
        let joined = planes::joined(&stored, &own, axis)?;
        let [keys, values] = <[Array; 2]>::try_from(joined)
            .map_err(|_| Error::cache("a layer that attends stores keys and values"))?;
        let same = kept_times.iter().all(|&t| line.pads.iter().all(|&pad| sees(t, pad)));
        let mask = if same {
            Mask::None
        } else {
            let block = own_columns(&own, axis);
            let mut visible = Vec::new();
            for &pad in &line.pads {
                visible.extend(kept_times.iter().map(|&t| sees(t, pad)));
                visible.extend(std::iter::repeat_n(true, block as usize));
            }
            let shape = [line.pads.len() as i32, 1, 1, kept.len() as i32 + block];
            Mask::Array(Array::from_slice(&visible, &shape))
        };
        Ok(whole(Source::Plain { keys, values }, mask))
    }
}

/// How an append is read: with which flags, in which mode, and the masks of the set.
struct Appended<'a> {
    flags: Option<&'a Array>,
    mode: AppendMode,
    masks: &'a mut MaskPool,
}

pub(super) fn whole(source: Source, mask: Mask) -> Read {
    Read { source, mask, kernel: Kernel::Whole }
}

fn own_columns(own: &[Array; 2], axis: usize) -> i32 {
    own[0].dim(axis as i32)
}

fn triple(planes: &[Array]) -> Result<[Array; 3]> {
    <[Array; 3]>::try_from(planes.to_vec())
        .map_err(|_| Error::cache("planes do not fit their code"))
}
