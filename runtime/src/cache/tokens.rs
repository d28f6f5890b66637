use std::sync::Arc;

use mlx_rs::Array;

use super::append::AppendStore;
use super::codec::{Code, Codes};
use super::kernels::{Kernel, Kernels};
use super::mask::{Columns, Mask, MaskPool};
use super::paged::PagedStore;
use super::planes::{self, Planes};
use super::read::{Read, Source};
use super::rowwise::RowStore;
use super::rule::Rule;
use super::timeline::Timeline;
use super::window::WindowStore;
use crate::pass::Phase;
use crate::{Error, Result};

/// When stored columns are rewritten by other codes: after the append that reaches `start`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conversion {
    pub start: i32,
    pub codes: Codes,
}

/// What does not change about a layer's cache.
#[derive(Debug, PartialEq)]
pub(super) struct Kind {
    /// The beginning of the signature.
    pub signature: &'static str,
    /// Axis of tokens.
    pub axis: usize,
    /// What queries see.
    pub rule: Rule,
    /// Reads of one row, and of several.
    pub kernels: [Kernels; 2],
    /// Whether turbo values are read rotated.
    pub deferred: bool,
}

/// Where columns lie.
#[derive(Debug, Clone)]
pub(super) enum Store {
    Append(AppendStore),
    Window(WindowStore),
    Paged(PagedStore),
    /// Each row by itself, while rows are rewritten at different times.
    Rows(RowStore),
}

/// A layer that remembers something for each token.
#[derive(Debug, Clone)]
pub struct TokenCache {
    pub(super) kind: Arc<Kind>,
    pub(super) store: Store,
    pub(super) codes: Codes,
    pub(super) later: Option<Conversion>,
}

/// Where a pass stands: columns before it, and the padding behind its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    pub line: &'a Timeline,
    pub right: &'a [i32],
    pub n: i32,
    pub phase: Phase,
}

impl Span<'_> {
    /// Whether columns are added one at a time, each in its place.
    fn single(&self) -> bool {
        self.phase == Phase::Decode || (self.phase.is_prompt() && self.n == 1)
    }
}

impl TokenCache {
    /// The same cache read by other codes.
    pub(super) fn with(&self, codes: &Codes) -> TokenCache {
        TokenCache { codes: codes.clone(), ..self.clone() }
    }

    /// Makes room for so many columns at once, where all of them lie in one buffer.
    pub(super) fn reserve(&mut self, columns: i32) {
        if let Store::Append(store) = &mut self.store {
            store.reserve(columns);
        }
    }

    /// Stores one array of each kind for the tokens of `span`.
    fn append(&mut self, arrays: &[&Array], span: &Span<'_>) -> Result<()> {
        let planes = self.codes.encode(arrays)?;
        match &mut self.store {
            Store::Append(store) => store.append(&planes),
            Store::Window(store) if span.single() => store.append_one(&planes, span.line),
            Store::Window(store) => store.append_many(&planes, span.n, span.line),
            Store::Paged(store) => store.append(&planes, span.n, span.line),
            Store::Rows(_) => Err(Error::cache("rows of their own are appended to one by one")),
        }
    }

    /// The stored planes and the times of their columns.
    fn fetch(&self, time: i32) -> Result<(Planes, Columns)> {
        let all = Columns::Run { start: 0, end: time };
        Ok(match &self.store {
            Store::Append(store) => (store.fetch()?, all),
            Store::Window(store) => (store.fetch()?, Columns::of(store.times())),
            Store::Paged(store) => (store.fetch(time)?, all),
            Store::Rows(_) => return Err(Error::cache("rows of their own are read one by one")),
        })
    }

    /// Appends keys and values and reads what the phase's queries see.
    pub(crate) fn attend(
        &mut self,
        keys: &Array,
        values: &Array,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        self.part_rows(span)?;
        if let Store::Rows(store) = &mut self.store {
            return store.attend(keys, values, span);
        }
        if span.phase == Phase::ReadBlock {
            return self.block(keys, values, span.line);
        }
        self.append(&[keys, values], span)?;
        let time = span.line.time + span.n;
        let (planes, columns) = self.fetch(time)?;
        let read = if span.phase == Phase::AppendKnown && span.n > 1 {
            self.each(&planes, &columns, span, masks)?
        } else {
            let mask = masks.mask(&self.kind.rule, &columns, span.line, span.n)?;
            let source = self.source(&planes)?;
            self.read(source, mask, span.n, span.line.rows())
        };
        self.convert(time, span)?;
        Ok(read)
    }

    fn read(&self, source: Source, mask: Mask, n: i32, rows: usize) -> Read {
        let [alone, several] = &self.kind.kernels;
        let kernels = if rows == 1 { alone } else { several };
        let kernel = match &mask {
            _ if n == 1 => kernels.decode,
            Mask::None | Mask::Causal => kernels.window,
            Mask::Array(_) => kernels.masked,
        };
        Read { source, mask, kernel }
    }

    /// Appends and fetches all that is stored, decoded.
    pub(crate) fn store_and_fetch(
        &mut self,
        arrays: &[&Array],
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<(Vec<Array>, Mask)> {
        self.part_rows(span)?;
        if let Store::Rows(store) = &mut self.store {
            return store.store_and_fetch(arrays, span, masks);
        }
        self.append(arrays, span)?;
        let time = span.line.time + span.n;
        let (planes, columns) = self.fetch(time)?;
        let fetched = self.codes.decode(&planes)?;
        let mask = masks.mask(&self.kind.rule, &columns, span.line, span.n)?;
        self.convert(time, span)?;
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
        let rotated = self.kind.deferred && matches!(v, Code::TurboValues { .. });
        let (keys, values) = (k.decode(keys, false)?, v.decode(values, rotated)?);
        Ok(if rotated { Source::Rotated { keys, values } } else { Source::Plain { keys, values } })
    }

    /// A read a query, each of its own prefix, with the arithmetic of single steps.
    fn each(
        &self,
        planes: &[Array],
        columns: &Columns,
        span: &Span<'_>,
        masks: &mut MaskPool,
    ) -> Result<Read> {
        let (line, n, rule) = (span.line, span.n, &self.kind.rule);
        let total = planes.first().map_or(0, |p| p.dim(self.kind.axis as i32));
        let mut reads = Vec::with_capacity(n as usize);
        for i in 0..n {
            let end = total - n + i + 1;
            let at = Timeline { time: line.time + i, pads: line.pads.clone() };
            // Columns are in order of time here; those out of sight are cut off in front.
            let (start, columns) = match columns {
                Columns::Run { start, .. } => {
                    let first = (*start..at.time)
                        .find(|&t| at.pads.iter().any(|p| rule.sees(at.time - p, t - p)))
                        .unwrap_or(at.time);
                    (first - start, Columns::Run { start: first, end: at.time + 1 })
                }
                Columns::List(times) => {
                    (0, Columns::of(times.get(..end as usize).unwrap_or_default()))
                }
            };
            let planes = planes::view(planes, self.kind.axis, start, end)?;
            let mask = masks.mask(rule, &columns, &at, 1)?;
            reads.push(self.read(self.source(&planes)?, mask, 1, line.rows()));
        }
        Ok(whole(Source::Each(reads), Mask::None))
    }

    /// What is stored and the block's own, nothing appended, everything visible in both directions.
    pub(super) fn block(&self, keys: &Array, values: &Array, line: &Timeline) -> Result<Read> {
        let axis = self.kind.axis;
        let own = [keys.clone(), values.clone()];
        let (planes, times) = match &self.store {
            _ if line.time == 0 => (Vec::new(), Vec::new()),
            Store::Window(store) => store.ordered()?,
            _ => (self.fetch(line.time)?.0, (0..line.time).collect::<Vec<i32>>()),
        };
        if times.is_empty() {
            let [keys, values] = own;
            return Ok(whole(Source::Plain { keys, values }, Mask::None));
        }
        let sees = |t: i32, pad: i32| t >= pad && self.kind.rule.sees(line.time - pad, t - pad);
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

    /// Rewrites all columns by the codes that take over, once.
    fn convert(&mut self, time: i32, span: &Span<'_>) -> Result<()> {
        // All rows are equally long here, or none is to be rewritten.
        let end = time - span.line.common_pad().unwrap_or(time);
        if end <= 0 || self.later.as_ref().is_none_or(|later| end < later.start) {
            return Ok(());
        }
        let Some(later) = self.later.take() else { return Ok(()) };
        let codes = &self.codes;
        let rewrite = |planes: &[Array]| -> Result<Planes> {
            let arrays = codes.decode(planes)?;
            let planes = later.codes.encode(&arrays.iter().collect::<Vec<_>>())?;
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
            Store::Paged(store) => {
                let arenas = rewrite(store.buffers())?;
                store.replace(arenas);
            }
            Store::Rows(_) => {}
        }
        self.codes = later.codes;
        mlx_rs::memory::clear_cache()?;
        Ok(())
    }

    /// The stable name of what is stored and how: caches of one signature hold alike.
    pub fn signature(&self) -> String {
        let code = |codes: &Codes| match codes.0.as_slice() {
            [Code::Affine { bits, group_size }, ..] => Some(format!("quant:{bits}:{group_size}")),
            [Code::TurboKeys { bits: k }, Code::TurboValues { bits: v }, ..] => {
                Some(format!("turboquant:{k}:{v}"))
            }
            _ => None,
        };
        let code = match &self.later {
            Some(later) => code(&later.codes).map(|code| format!("delayed-{code}:{}", later.start)),
            None => code(&self.codes),
        };
        let base = self.kind.signature;
        let mut text = match (code, base.strip_suffix("plain")) {
            (None, _) => base.to_owned(),
            (Some(code), Some(stem)) => format!("{stem}{code}"),
            (Some(code), None) => format!("{base}:{code}"),
        };
        if matches!(self.store, Store::Paged(_)) {
            text += ":paged";
        }
        text
    }

    /// The arrays that hold the layer's state; room to grow included.
    pub fn arrays(&self) -> Vec<&Array> {
        match &self.store {
            Store::Append(store) => store.buffers().iter().collect(),
            Store::Window(store) => store.buffers().iter().collect(),
            Store::Paged(store) => store.buffers().iter().collect(),
            Store::Rows(store) => store.arrays(),
        }
    }

    /// The axis of tokens in each array.
    pub fn axis(&self) -> usize {
        self.kind.axis
    }

    pub(super) fn can_trim(&self, n: i32, line: &Timeline) -> bool {
        match &self.store {
            Store::Append(_) | Store::Paged(_) => true,
            Store::Window(store) => store.can_trim_to(line.time - n),
            Store::Rows(store) => store.can_trim(n),
        }
    }

    /// Forgets the last `n` columns.
    pub(super) fn trim(&mut self, n: i32, line: &Timeline) -> Result<()> {
        match &mut self.store {
            Store::Append(store) => store.trim(n),
            Store::Window(store) => store.trim_to(line.time - n),
            Store::Paged(store) => store.trim(n),
            Store::Rows(store) => store.trim(&vec![n; line.rows()]),
        }
    }

    /// Forgets the last `shifts[b]` columns of row `b` and moves what is left to the right.
    /// `padding`: they are the padding behind a prompt, which rows of their own never stored.
    pub(super) fn roll(&mut self, shifts: &[i32], time: i32, padding: bool) -> Result<()> {
        let axis = self.kind.axis;
        match &mut self.store {
            Store::Append(store) => {
                let planes = planes::view(store.buffers(), axis, 0, time)?;
                store.replace(planes::rolled(&planes, axis, shifts)?, time);
                Ok(())
            }
            Store::Window(store) => store.roll(shifts, time),
            Store::Paged(store) => store.trim_each(shifts),
            Store::Rows(_) if padding => Ok(()),
            Store::Rows(store) => store.trim(shifts),
        }
    }
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
