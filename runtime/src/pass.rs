//! One forward over a set of caches.

use std::fmt;

use mlx_rs::Array;

use crate::array::from_i32s;
use crate::cache::{
    CacheSet, LayerCache, Mask, MaskPool, Offset, Read, Scores, Slot, Span, StatePart, Stored,
    Timeline,
};
use crate::phase::{Binding, Padding, Phase};
use crate::{Error, Result, ops};

/// Tokens of one pass over tokens that are decided already.
pub const KNOWN_TOKENS: i32 = 4;

/// Called with the number of a layer and its output; after the last layer with the number of
/// layers and the output of the final norm.
pub type Capture<'a> = &'a mut dyn FnMut(usize, &Array);

/// One forward: its phase, where it begins, the caches, and what its layers share.
pub struct Pass<'a> {
    phase: Phase,
    binding: Binding,
    rows: i32,
    tokens: i32,
    line: Timeline,
    offset: Offset,
    right: Vec<i32>,
    caches: Option<&'a mut CacheSet>,
    masks: MaskPool,
    reads: Vec<Option<Read>>,
    advanced: Vec<usize>,
    padding: Option<Array>,
    capture: Option<Capture<'a>>,
    /// Heads and size of a head of each layer's queries.
    queries: Vec<Option<[i32; 2]>>,
    done: bool,
}

impl fmt::Debug for Pass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass")
            .field("phase", &self.phase)
            .field("rows", &self.rows)
            .field("tokens", &self.tokens)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

impl<'a> Pass<'a> {
    /// Begins a forward of `ids` [B, L] over `caches`. [`Pass::finish`] has to end it; a pass that
    /// is dropped before leaves the set unusable.
    ///
    /// # Errors
    /// When the shape does not fit the phase, the rows do not fit the set, or the set is unusable.
    pub fn begin(
        caches: &'a mut CacheSet,
        phase: Phase,
        ids: &Array,
        padding: Padding,
    ) -> Result<Pass<'a>> {
        caches.check()?;
        let (rows, tokens) = shape(ids)?;
        if phase == Phase::Decode && tokens != 1 {
            return Err(Error::input("decode", "one token a row", tokens.to_string()));
        }
        let mut line = caches.line.clone();
        if line.pads.is_empty() {
            line.pads = vec![0; rows as usize];
        }
        if line.pads.len() != rows as usize {
            return Err(Error::input(
                "rows of a pass",
                format!("{}, as the caches hold", line.pads.len()),
                rows.to_string(),
            ));
        }
        line.after(tokens)?;
        check_padding("left", &padding.left, rows, tokens)?;
        check_padding("right", &padding.right, rows, tokens)?;
        if !padding.left.is_empty() {
            if line.time != 0 {
                return Err(Error::cache("padding in front is for the first pass of a set"));
            }
            line.pads.clone_from(&padding.left);
        }
        if padding.right.iter().any(|&n| n > 0) && !phase.is_prompt() {
            return Err(Error::cache("padding behind is for prompts"));
        }
        if matches!(phase, Phase::Verify | Phase::AppendKnown)
            && let Some(most) = caches.max_append_tokens().filter(|&most| most < tokens)
        {
            let expected = format!("at most {most}, after which stored tokens are rewritten");
            return Err(Error::input("tokens of a span", expected, tokens.to_string()));
        }
        if phase == Phase::Verify {
            caches.arm(tokens);
        }
        let slots = caches.layers().len();
        Ok(Pass {
            phase,
            binding: Binding::default(),
            rows,
            tokens,
            offset: line.offset(),
            line,
            right: padding.right,
            masks: std::mem::take(&mut caches.masks),
            caches: Some(caches),
            reads: std::iter::repeat_with(|| None).take(slots).collect(),
            advanced: vec![0; slots],
            padding: None,
            capture: None,
            queries: Vec::new(),
            done: false,
        })
    }

    /// Begins a forward of `ids` [B, L] without caches; `mask` [B, L] is true at real tokens.
    ///
    /// # Errors
    /// When the shapes do not agree.
    pub fn whole(ids: &Array, mask: Option<&Array>) -> Result<Pass<'static>> {
        let (rows, tokens) = shape(ids)?;
        if let Some(mask) = mask
            && mask.shape() != [rows, tokens]
        {
            return Err(Error::input(
                "attention mask",
                format!("the shape [{rows}, {tokens}] of the ids"),
                format!("{:?}", mask.shape()),
            ));
        }
        let line = Timeline { time: 0, pads: vec![0; rows as usize] };
        Ok(Pass {
            phase: Phase::Whole,
            binding: Binding::default(),
            rows,
            tokens,
            offset: Offset::Same(0),
            line,
            right: Vec::new(),
            caches: None,
            masks: MaskPool::default(),
            reads: Vec::new(),
            advanced: Vec::new(),
            padding: mask.map(|m| ops::cast(m, mlx_rs::Dtype::Bool)).transpose()?,
            capture: None,
            queries: Vec::new(),
            done: true,
        })
    }

    /// Lets tokens with a flag, bool [B, L], see each other both ways, such as those of a picture.
    ///
    /// # Errors
    /// When the pass is no prompt or not the first of its set, or the shape is another.
    pub fn with_flags(mut self, flags: &Array) -> Result<Self> {
        let fault = if !self.phase.is_prompt() || self.line.time != 0 {
            Some(Error::cache("tokens that see each other both ways come first, in a prompt"))
        } else if flags.shape() != [self.rows, self.tokens] {
            let expected = format!("[{}, {}]", self.rows, self.tokens);
            Some(Error::input("flags of tokens", expected, format!("{:?}", flags.shape())))
        } else {
            None
        };
        if let Some(fault) = fault {
            // Nothing was appended yet.
            self.done = true;
            return Err(fault);
        }
        let mut flags = ops::cast(flags, mlx_rs::Dtype::Bool)?;
        if let Some(real) = self.real_tokens()? {
            flags = ops::logical_and(&flags, &real)?;
        }
        self.masks.flag(Some(flags));
        Ok(self)
    }

    /// Computes by `binding` where it says something, whatever the phase.
    pub fn with_binding(mut self, binding: Binding) -> Self {
        self.binding = binding;
        self
    }

    /// Calls `capture` with each layer's output.
    pub fn with_capture(mut self, capture: Capture<'a>) -> Self {
        self.capture = Some(capture);
        self
    }

    /// What the forward is for.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether rows are grouped by expert: in passes of many tokens, unless the binding says.
    pub fn grouped(&self) -> bool {
        self.binding.grouped.unwrap_or(!self.phase.is_small())
    }

    /// Whether queries go to the latents instead of latents to keys: in passes of few tokens, unless
    /// the binding says.
    pub fn absorbed(&self) -> bool {
        self.binding.absorbed.unwrap_or(self.phase.is_small())
    }

    /// Rows, B.
    pub fn rows(&self) -> i32 {
        self.rows
    }

    /// Tokens a row, L, padding included.
    pub fn tokens(&self) -> i32 {
        self.tokens
    }

    /// The position of the first token, taken once at the beginning.
    pub fn offset(&self) -> &Offset {
        &self.offset
    }

    /// The columns before this pass.
    pub fn timeline(&self) -> &Timeline {
        &self.line
    }

    /// Each token's position as int32 [B, L]; 0 in padding.
    pub fn positions(&self) -> Result<Array> {
        let first = match &self.offset {
            Offset::Same(offset) => from_i32s(&vec![*offset; self.rows as usize]),
            Offset::Rows(_, array) => array.clone(),
        };
        let steps = ops::reshape(&ops::arange(0, self.tokens)?, &[1, self.tokens])?;
        let positions = ops::add(&ops::expand(&first, 1)?, &steps)?;
        ops::maximum(&positions, &Array::from_int(0))
    }

    /// bool [B, L], true at real tokens; `None` when all are.
    pub fn real_tokens(&self) -> Result<Option<Array>> {
        if let Some(padding) = &self.padding {
            return Ok(Some(padding.clone()));
        }
        let time = self.line.time;
        let left = self.line.padded_from(time);
        let right = self.right.iter().any(|&n| n > 0);
        if !left && !right {
            return Ok(None);
        }
        let mut real = Vec::with_capacity(self.line.pads.len() * self.tokens as usize);
        for (b, pad) in self.line.pads.iter().enumerate() {
            let end = self.tokens - self.right.get(b).copied().unwrap_or(0);
            real.extend((0..self.tokens).map(|i| time + i >= *pad && i < end));
        }
        Ok(Some(Array::from_slice(&real, &[self.rows, self.tokens])))
    }

    /// For each row the number of columns of this pass up to its last real token; `None` when no
    /// row has padding behind.
    pub fn ends(&self) -> Option<Vec<i32>> {
        let padded = self.right.iter().any(|&n| n > 0);
        padded.then(|| self.right.iter().map(|n| self.tokens - n).collect())
    }

    /// Appends keys [B, K, L, D] and values [B, K, L, E] to a layer's cache and attends with the
    /// queries [B, H, L, D]; the read stays for [`Pass::attend_shared`].
    pub fn attend(
        &mut self,
        slot: Slot,
        q: &Array,
        k: &Array,
        v: &Array,
        scores: Scores<'_>,
    ) -> Result<Array> {
        let (index, layer) = Self::layer(&mut self.caches, &mut self.advanced, slot, self.phase)?;
        let LayerCache::Tokens(cache) = layer else {
            return Err(Error::cache(format!("layer {index} keeps no keys and values")));
        };
        let span = Span { line: &self.line, right: &self.right, n: self.tokens, phase: self.phase };
        let read = cache.attend(k, v, &span, &mut self.masks)?;
        let y = read.attend(&mut self.masks, q, scores)?;
        note(&mut self.queries, index, [q.dim(1), q.dim(-1)]);
        if let Some(slot) = self.reads.get_mut(index) {
            *slot = Some(read);
        }
        Ok(y)
    }

    /// Attends with what another layer read in this pass.
    pub fn attend_shared(&mut self, slot: Slot, q: &Array, scores: Scores<'_>) -> Result<Array> {
        let read = slot.index().and_then(|i| self.reads.get(i)).and_then(Option::as_ref);
        let Some(read) = read else {
            return Err(Error::cache(
                "a layer shares keys and values that were not read before it",
            ));
        };
        read.attend(&mut self.masks, q, scores)
    }

    /// Appends one array of each kind to a layer's cache, such as the latents and rope keys of
    /// latent attention; gives all that is stored, and what the queries see of it.
    pub fn store(&mut self, slot: Slot, arrays: &[&Array]) -> Result<(Vec<Stored>, Mask)> {
        let (index, layer) = Self::layer(&mut self.caches, &mut self.advanced, slot, self.phase)?;
        let LayerCache::Tokens(cache) = layer else {
            return Err(Error::cache(format!("layer {index} keeps nothing for each token")));
        };
        let span = Span { line: &self.line, right: &self.right, n: self.tokens, phase: self.phase };
        cache.store_and_fetch(arrays, &span, &mut self.masks)
    }

    /// The next state of a recurrent layer, to be read and set once in this pass. Mixers of one
    /// layer own its states in the order in which they ask for them.
    pub fn state(&mut self, slot: Slot) -> Result<StatePart<'_>> {
        let phase = self.phase;
        let (index, layer, part) = Self::found(&mut self.caches, &mut self.advanced, slot)?;
        match layer {
            LayerCache::States(cache) => Ok(StatePart::new(cache, part, phase != Phase::ReadBlock)),
            _ => Err(Error::cache(format!("layer {index} keeps no states"))),
        }
    }

    fn layer<'c>(
        caches: &'c mut Option<&'a mut CacheSet>,
        advanced: &mut [usize],
        slot: Slot,
        phase: Phase,
    ) -> Result<(usize, &'c mut LayerCache)> {
        let (index, layer, before) = Self::found(caches, advanced, slot)?;
        if before > 0 && phase != Phase::ReadBlock {
            return Err(Error::cache(format!("layer {index} was advanced twice in one pass")));
        }
        Ok((index, layer))
    }

    /// A layer's number, its cache, and how often it was asked for before in this pass.
    fn found<'c>(
        caches: &'c mut Option<&'a mut CacheSet>,
        advanced: &mut [usize],
        slot: Slot,
    ) -> Result<(usize, &'c mut LayerCache, usize)> {
        let missing = || Error::cache("a layer without a cache cannot attend to the past");
        let index = slot.index().ok_or_else(missing)?;
        let caches = caches.as_mut().ok_or_else(missing)?;
        let layer = caches.layers.get_mut(index).ok_or_else(missing)?;
        let count = advanced.get_mut(index).ok_or_else(missing)?;
        let before = *count;
        *count += 1;
        Ok((index, layer, before))
    }

    /// Says that a layer that reads what it stored by itself holds all scores of so many heads.
    pub(crate) fn holds_scores(&mut self, slot: Slot, heads: i32) {
        if let Some(index) = slot.index() {
            note(&mut self.queries, index, [heads, 0]);
        }
    }

    /// [`Mask::Causal`] over `l` queries and `s` keys as a bool array [L, S].
    pub fn causal_mask(&mut self, l: i32, s: i32) -> Result<Array> {
        self.masks.causal(l, s)
    }

    /// Notes the queries of each layer in this pass.
    pub(crate) fn noting_queries(mut self) -> Self {
        self.queries = vec![None; self.advanced.len()];
        self
    }

    /// Heads and size of a head of each layer's queries, the size 0 where their scores are held
    /// whatever it is; `None` for layers that do not attend to keys.
    pub(crate) fn queries(&self) -> &[Option<[i32; 2]>] {
        &self.queries
    }

    /// Reports the output of layer `index`.
    pub fn capture(&mut self, index: usize, x: &Array) {
        if let Some(capture) = &mut self.capture {
            capture(index, x);
        }
    }

    /// Ends the pass: the set has advanced by its tokens.
    ///
    /// # Errors
    /// When a layer was not advanced; the set is unusable then.
    pub fn finish(mut self) -> Result<()> {
        self.done = true;
        let Some(caches) = self.caches.take() else { return Ok(()) };
        self.masks.settle(self.line.rows());
        caches.masks = std::mem::take(&mut self.masks);
        if self.phase == Phase::ReadBlock {
            return Ok(());
        }
        let missed = (0..)
            .zip(caches.layers())
            .zip(&self.advanced)
            .find(|((_, layer), done)| **done == 0 && !matches!(layer, LayerCache::Nothing));
        if let Some(((index, _), _)) = missed {
            let index: usize = index;
            caches.break_off(format!("layer {index} was left behind"));
            return caches.check();
        }
        caches.line = Timeline {
            time: self.line.time + self.tokens,
            pads: std::mem::take(&mut self.line.pads),
        };
        let done = caches.roll(&self.right, true).and_then(|()| caches.tidy());
        if let Err(error) = &done {
            caches.break_off(error.to_string());
        }
        done
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let (false, Some(caches)) = (self.done, self.caches.as_mut())
            && self.phase != Phase::ReadBlock
        {
            caches.break_off("a pass over it failed");
        }
    }
}

fn shape(ids: &Array) -> Result<(i32, i32)> {
    match ids.shape() {
        [rows, tokens] if *rows > 0 && *tokens > 0 => Ok((*rows, *tokens)),
        other => {
            Err(Error::input("ids", "rows and tokens, at least one each", format!("{other:?}")))
        }
    }
}

fn check_padding(side: &str, padding: &[i32], rows: i32, tokens: i32) -> Result<()> {
    let fits = padding.iter().all(|n| (0..=tokens).contains(n));
    if padding.is_empty() || (padding.len() == rows as usize && fits) {
        return Ok(());
    }
    Err(Error::input(
        format!("{side} padding"),
        format!("{rows} numbers from 0 to {tokens}"),
        format!("{padding:?}"),
    ))
}

/// Notes the queries of a layer in a pass that is asked to.
fn note(queries: &mut [Option<[i32; 2]>], index: usize, heads: [i32; 2]) {
    if let Some(queries) = queries.get_mut(index) {
        *queries = Some(heads);
    }
}
