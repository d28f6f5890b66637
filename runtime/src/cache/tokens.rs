//! The cache of a layer that stores something of each token: place, codes, and how a pass appends.

use std::sync::Arc;

use mlx_rs::Array;

use super::append::AppendStore;
use super::codec::{Code, Codes};
use super::kernels::Kernels;
use super::layout::StorageLayout;
use super::mask::Columns;
use super::paged::PagedStore;
use super::planes::{self, Planes};
use super::ring::RingStore;
use super::rowwise::RowStore;
use super::sight::Sight;
use super::timeline::Timeline;
use crate::phase::Phase;
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
    /// What the storage declares.
    pub layout: &'static StorageLayout,
    /// Axis of tokens.
    pub axis: usize,
    /// What queries see.
    pub sight: Sight,
    /// Reads of one row, and of several.
    pub kernels: [Kernels; 2],
    /// Whether turbo values are read rotated.
    pub deferred: bool,
    /// Positions that are decoded at a time.
    pub decode_tile: i32,
}

/// Where columns lie.
#[derive(Debug, Clone)]
pub(super) enum Store {
    Append(AppendStore),
    Ring(RingStore),
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
    /// Positions that were rewritten by other codes, all at once and some way in: whoever keeps fewer
    /// of them holds what no cache of that length does.
    pub(super) reusable_from: Option<i32>,
}

/// Where a pass stands: columns before it, and the padding behind its tokens.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The columns before the pass.
    pub line: &'a Timeline,
    /// Padding behind each row's tokens; empty: none.
    pub right: &'a [i32],
    /// Tokens a row, padding included.
    pub n: i32,
    /// What the pass is for.
    pub phase: Phase,
}

/// How tokens are added and read, by the method that was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendMode {
    /// One token, put in its place and read by the kernel of single steps.
    Step,
    /// All at once, in order of time.
    Window,
}

impl Span<'_> {
    /// The mode of the phase. The one token that ends a prompt is a step: mlx-lm reads it so.
    pub(super) fn mode(&self) -> AppendMode {
        match self.phase {
            Phase::Decode | Phase::AppendKnown => AppendMode::Step,
            Phase::Prompt | Phase::MultiSequencePrompt if self.n == 1 => AppendMode::Step,
            Phase::Prompt
            | Phase::MultiSequencePrompt
            | Phase::Verify
            | Phase::ReadBlock
            | Phase::Whole => AppendMode::Window,
        }
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
    pub(super) fn append(
        &mut self,
        arrays: &[&Array],
        span: &Span<'_>,
        mode: AppendMode,
    ) -> Result<()> {
        let planes = self.codes.encode(arrays)?;
        match &mut self.store {
            Store::Append(store) => store.append(&planes),
            Store::Ring(store) if mode == AppendMode::Step => store.append_one(&planes, span.line),
            Store::Ring(store) => store.append_many(&planes, span.n, span.line),
            Store::Paged(store) => store.append(&planes, span.n, span.line),
            Store::Rows(_) => Err(Error::cache("rows of their own are appended to one by one")),
        }
    }

    /// The stored planes and the times of their columns.
    pub(super) fn fetch(&self, time: i32) -> Result<(Planes, Columns)> {
        let all = Columns::Run { start: 0, end: time };
        Ok(match &self.store {
            Store::Append(store) => (store.fetch()?, all),
            Store::Ring(store) => (store.fetch()?, Columns::of(store.times())),
            Store::Paged(store) => (store.fetch(time)?, all),
            Store::Rows(_) => return Err(Error::cache("rows of their own are read one by one")),
        })
    }

    /// Ends an append: columns that stay are rewritten where it is time to.
    pub(super) fn convert_after(&mut self, span: &Span<'_>) -> Result<()> {
        // Those that may be taken back wait until they are kept.
        if self.later.is_none() || span.phase == Phase::Verify {
            return Ok(());
        }
        let time = span.line.time + span.n;
        self.convert(&Timeline { time, pads: span.line.pads.clone() })
    }

    /// Ends a span of which these columns were kept: what is long enough is rewritten, each row when it
    /// is.
    pub(super) fn settle(&mut self, line: &Timeline) -> Result<()> {
        if self.later.is_some() && line.common_pad().is_none() {
            self.store = Store::Rows(self.apart(line)?);
        }
        match &mut self.store {
            Store::Rows(store) => store.settle(),
            _ => self.convert(line),
        }
    }

    /// Rewrites all columns by the codes that take over, once.
    fn convert(&mut self, line: &Timeline) -> Result<()> {
        // All rows are equally long here, or none is to be rewritten.
        let end = line.common_pad().map_or(0, |pad| line.time - pad);
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
            Store::Ring(store) => {
                let planes = rewrite(store.buffers())?;
                store.replace(planes);
            }
            Store::Paged(store) => {
                let arenas = rewrite(store.buffers())?;
                store.replace(arenas);
            }
            Store::Rows(_) => {}
        }
        if later.start > 0 {
            self.reusable_from = Some(end);
        }
        self.codes = later.codes;
        mlx_rs::memory::clear_cache()?;
        Ok(())
    }

    /// Tokens that every row can be given before its columns are rewritten, at least one; `None`: none
    /// will be.
    pub(super) fn max_append(&self, line: &Timeline) -> Option<i32> {
        if let Store::Rows(store) = &self.store {
            return store.max_append();
        }
        let start = self.later.as_ref()?.start.max(1);
        let longest = (0..line.rows()).map(|b| line.tokens(b)).max().unwrap_or(0);
        Some((start - longest.max(0)).max(1))
    }

    /// The least number of positions that may be kept for another prompt.
    pub(super) fn reusable_from(&self) -> Option<i32> {
        match &self.store {
            Store::Rows(store) => store.rows.iter().filter_map(|r| r.cache.reusable_from()).max(),
            _ => self.reusable_from,
        }
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
        let base = self.kind.layout.signature;
        let paged = matches!(self.store, Store::Paged(_));
        let mut text = match (&code, base.strip_suffix("plain")) {
            (None, Some(stem)) if paged => format!("{stem}paged"),
            (None, _) | (_, None) => base.to_owned(),
            (Some(code), Some(stem)) => format!("{stem}{code}"),
        };
        let mut add = |part: &str| {
            text.push(':');
            text.push_str(part);
        };
        let present = self.states();
        let states = self.kind.layout.states.iter().take(present);
        states.filter_map(|state| state.signature).for_each(&mut add);
        if !base.ends_with("plain") {
            code.iter().for_each(|code| add(code));
        }
        if paged && !text.ends_with("paged") {
            text += ":paged";
        }
        text
    }

    /// Arrays that are kept of each token; those that every layer has before the first one.
    fn states(&self) -> usize {
        let planes = match &self.store {
            Store::Append(store) => store.buffers().len(),
            Store::Ring(store) => store.buffers().len(),
            Store::Paged(store) => store.buffers().len(),
            Store::Rows(store) => return store.rows.first().map_or(0, |row| row.cache.states()),
        };
        let mut rest = planes;
        let mut states = 0;
        for code in &self.codes.0 {
            if rest < code.planes() {
                break;
            }
            rest -= code.planes();
            states += 1;
        }
        states
    }

    /// The arrays that hold the layer's state; room to grow included.
    pub fn arrays(&self) -> Vec<&Array> {
        match &self.store {
            Store::Append(store) => store.buffers().iter().collect(),
            Store::Ring(store) => store.buffers().iter().collect(),
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
            Store::Ring(store) => store.can_trim_to(line.time - n),
            Store::Rows(store) => store.can_trim(n),
        }
    }

    /// Forgets the last `n` columns.
    pub(super) fn trim(&mut self, n: i32, line: &Timeline) -> Result<()> {
        match &mut self.store {
            Store::Append(store) => store.trim(n),
            Store::Ring(store) => store.trim_to(line.time - n),
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
            Store::Ring(store) => store.roll(shifts, time),
            Store::Paged(store) => store.trim_each(shifts),
            Store::Rows(_) if padding => Ok(()),
            Store::Rows(store) => store.trim(shifts),
        }
    }
}
