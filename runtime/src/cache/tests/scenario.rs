//! A set of caches driven by random steps, beside the rows that it should hold.

use std::cell::RefCell;
use std::collections::HashMap;

use mlx_rs::Array;
use proptest::prelude::*;

use super::oracle::{self, Sizes};
use crate::cache::persist::Identity;
use crate::cache::{
    CacheLayer, CachePlan, CacheSet, Codes, Mask, PlanOptions, Scores, Sight, Slot, Timeline,
};
use crate::composition::{
    CompositionRequest, KvOverride, KvRequest, PagingRequest, TurboBits, resolve_composition,
};
use crate::pass::Pass;
use crate::phase::{Padding, Phase};

/// One layer under test: what it declares, and what the oracle knows of it.
#[derive(Debug, Clone)]
pub struct Layer {
    pub declared: CacheLayer,
    pub sight: Sight,
    /// Whether schemes apply to it.
    pub codes: Codes,
    /// From how many tokens on it is written by the codes; `None`: from the first.
    pub start: Option<i32>,
    /// How far results may be off.
    pub tolerance: f32,
    /// Whether it is read by latent attention: one key and value for all heads.
    pub latent: bool,
    /// Whether it keeps index keys too: as the keys, and as they came.
    pub indexed: bool,
}

#[derive(Debug, Clone)]
struct Row {
    id: u64,
    tokens: i32,
    /// For each layer whether it is written by its codes by now.
    coded: Vec<bool>,
}

/// A step of a scenario. Numbers are taken modulo what is possible.
#[derive(Debug, Clone)]
pub enum Step {
    Prompt(i32),
    Uneven(Vec<i32>),
    Decode,
    Known(i32),
    Verify(i32, Vec<i32>),
    Block(i32),
    Trim(i32),
    Filter(Vec<usize>),
    Extend(i32),
    Extract(usize),
    Save,
    Fork,
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..12_i32).prop_map(Step::Prompt),
        2 => prop::collection::vec(0..9_i32, 4).prop_map(Step::Uneven),
        6 => Just(Step::Decode),
        1 => (1..4_i32).prop_map(Step::Known),
        3 => (1..5_i32, prop::collection::vec(0..6_i32, 4)).prop_map(|(n, k)| Step::Verify(n, k)),
        1 => (1..4_i32).prop_map(Step::Block),
        2 => (1..5_i32).prop_map(Step::Trim),
        1 => prop::collection::vec(0..4_usize, 1..4).prop_map(Step::Filter),
        2 => (1..15_i32).prop_map(Step::Extend),
        1 => (0..4_usize).prop_map(Step::Extract),
        1 => Just(Step::Save),
        1 => Just(Step::Fork),
    ];
    prop::collection::vec(step, 3..14)
}

pub fn composition(kv: KvRequest, block: Option<i64>) -> crate::composition::Composition {
    let paged_kv = block.map(|n| PagingRequest { block_size: Some(n), direct: None });
    let request = CompositionRequest { kv, paged_kv, ..CompositionRequest::default() };
    resolve_composition(&request, &[]).unwrap()
}

pub fn bits(bits: u32, start: Option<i64>) -> KvRequest {
    KvRequest {
        scheme: KvOverride::Bits(bits),
        group_size: Some(32),
        quantized_kv_start: start,
        immediate: start.is_none(),
        ..KvRequest::default()
    }
}

pub fn turbo(start: Option<i64>) -> KvRequest {
    KvRequest {
        turbo: TurboBits::parse("turbo:k8v4").ok(),
        quantized_kv_start: start,
        immediate: start.is_none(),
        ..KvRequest::default()
    }
}

pub struct Scenario {
    sizes: Sizes,
    layers: Vec<Layer>,
    plan: CachePlan,
    key: String,
    set: CacheSet,
    rows: Vec<Row>,
    next: u64,
    /// The bits of every result, in order.
    results: Vec<u32>,
    #[expect(clippy::type_complexity, reason = "values by everything that they depend on")]
    stored: RefCell<HashMap<(usize, u64, u64, i32, usize), Vec<f32>>>,
}

impl Scenario {
    pub fn new(sizes: Sizes, layers: Vec<Layer>, kv: KvRequest, block: Option<i64>) -> Self {
        let composition = composition(kv, block);
        let declared: Vec<CacheLayer> = layers.iter().map(|l| l.declared.clone()).collect();
        let options = PlanOptions { paging: true };
        let plan = CachePlan::compose(&declared, &composition, options).unwrap();
        let set = plan.make();
        let key = composition.cache_key();
        let mut scenario = Scenario {
            sizes,
            layers,
            plan,
            key,
            set,
            rows: Vec::new(),
            next: 0,
            results: Vec::new(),
            stored: RefCell::default(),
        };
        scenario.rows = vec![scenario.row()];
        scenario
    }

    fn row(&mut self) -> Row {
        self.next += 1;
        let coded = self.layers.iter().map(|l| l.start.is_none()).collect();
        Row { id: self.next, tokens: 0, coded }
    }

    /// Runs the steps; gives the bits of all results.
    pub fn run(&mut self, steps: &[Step]) -> Vec<u32> {
        for step in steps {
            self.step(step);
            for (b, row) in self.rows.iter().enumerate() {
                if self.set.rows() > 0 {
                    assert_eq!(self.set.tokens(b), row.tokens, "tokens of row {b} after {step:?}");
                }
            }
        }
        std::mem::take(&mut self.results)
    }

    fn step(&mut self, step: &Step) {
        let n = self.rows.len();
        match step {
            Step::Prompt(length) => self.pass(Phase::Prompt, *length, &vec![*length; n]),
            Step::Uneven(lengths) => {
                let lengths: Vec<i32> = (0..n).map(|b| lengths[b % lengths.len()]).collect();
                let longest = lengths.iter().copied().max().unwrap_or(0);
                if longest > 0 {
                    self.pass(Phase::MultiSequencePrompt, longest, &lengths);
                }
            }
            Step::Decode => self.pass(Phase::Decode, 1, &vec![1; n]),
            Step::Known(length) => {
                let length = self.room(*length);
                self.pass(Phase::AppendKnown, length, &vec![length; n]);
            }
            Step::Verify(length, keep) => {
                let length = self.room(*length);
                self.pass(Phase::Verify, length, &vec![length; n]);
                let keep: Vec<i32> = (0..n).map(|b| keep[b % keep.len()] % (length + 1)).collect();
                self.set.resolve(&keep).unwrap();
                for (row, keep) in self.rows.iter_mut().zip(&keep) {
                    row.tokens += keep - length;
                }
                self.rewritten(&keep);
            }
            Step::Block(length) => self.pass(Phase::ReadBlock, *length, &vec![*length; n]),
            Step::Trim(length) => {
                let before: Vec<i32> = self.rows.iter().map(|r| r.tokens).collect();
                if self.set.can_trim(*length) {
                    self.set.trim(*length).unwrap();
                    self.rows.iter_mut().for_each(|row| row.tokens -= length);
                } else {
                    assert!(self.set.trim(*length).is_err());
                    // Nothing but a window that moved on, or a row that is too short, may refuse.
                    let window = self.layers.iter().any(|l| l.sight != Sight::All);
                    let short = self.set.rows() == 0 || before.iter().any(|t| t < length);
                    assert!(window || short);
                }
            }
            Step::Filter(keep) => {
                let mut keep: Vec<usize> = keep.iter().map(|k| k % n).collect();
                keep.sort_unstable();
                keep.dedup();
                if self.set.rows() > 0 {
                    self.set.filter(&keep).unwrap();
                    self.rows = keep.iter().map(|&b| self.rows[b].clone()).collect();
                }
            }
            Step::Extend(length) => {
                if n < 4 && self.set.rows() > 0 {
                    let row = self.row();
                    let before = std::mem::replace(&mut self.rows, vec![row]);
                    let running = std::mem::replace(&mut self.set, self.plan.make());
                    self.pass(Phase::Prompt, *length, &[*length]);
                    let joining = std::mem::replace(&mut self.set, running);
                    self.set.extend(&joining).unwrap();
                    let joined = std::mem::replace(&mut self.rows, before);
                    self.rows.extend(joined);
                }
            }
            Step::Extract(b) => {
                if self.set.rows() > 0 {
                    let b = b % n;
                    self.set = self.set.extract(b).unwrap();
                    self.rows = vec![self.rows[b].clone()];
                }
            }
            Step::Save => self.save_and_load(),
            Step::Fork => self.set = self.set.fork().unwrap(),
        }
    }

    fn save_and_load(&mut self) {
        if self.set.rows() == 0 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("caches");
        let identity = Identity {
            model: "test".into(),
            config: "0".into(),
            weights: "1".into(),
            tokenizer: String::new(),
            namespace: String::new(),
            codecs: "default".into(),
        };
        let tokens: Vec<Vec<u32>> =
            self.rows.iter().map(|row| (0..row.tokens as u32).collect()).collect();
        self.set.save(&file, &identity, &self.key, &tokens).unwrap();
        let (set, read) = self.plan.load(&file, &identity, &self.key).unwrap();
        assert_eq!(read, tokens);
        self.set = set;
    }

    /// One pass of `n` tokens, the last of row `b` being `lengths[b]`; padding stands in front in
    /// the first pass of a set and behind in later ones.
    fn pass(&mut self, phase: Phase, n: i32, lengths: &[i32]) {
        let b = self.rows.len();
        let missing: Vec<i32> = lengths.iter().map(|l| n - l).collect();
        let fresh = self.set.rows() == 0;
        let padding = match (missing.iter().any(|&m| m > 0), fresh) {
            (false, _) => Padding::default(),
            (true, true) => Padding { left: missing.clone(), right: Vec::new() },
            (true, false) => Padding { left: Vec::new(), right: missing.clone() },
        };
        let front = |b: usize| if fresh { missing[b] } else { 0 };
        let ids = Array::from_slice(&vec![0_i32; b * n as usize], &[b as i32, n]);
        let mut set = std::mem::replace(&mut self.set, self.plan.make());
        let mut pass = Pass::begin(&mut set, phase, &ids, padding).unwrap();
        let mut results = Vec::new();
        for i in 0..self.layers.len() {
            if phase == Phase::ReadBlock && self.layers[i].latent {
                continue;
            }
            let tensor = |kind: u64, heads: usize| {
                let mut data = Vec::new();
                for (r, row) in self.rows.iter().enumerate() {
                    for head in 0..heads {
                        for t in 0..n {
                            let position = row.tokens + t - front(r);
                            data.extend(oracle::vector(
                                self.sizes, row.id, i, kind, position, head,
                            ));
                        }
                    }
                }
                let shape = [b as i32, heads as i32, n, self.sizes.dim as i32];
                Array::from_slice(&data, &shape)
            };
            let kv_heads = if self.layers[i].latent { 1 } else { self.sizes.kv_heads };
            let (q, k, v) = (tensor(0, self.sizes.heads), tensor(1, kv_heads), tensor(2, kv_heads));
            let slot = Slot::new(i as u32);
            let y = if self.layers[i].latent {
                let (y, index) = latent(&mut pass, slot, [&q, &k, &v], self.layers[i].indexed);
                if let Some(index) = index {
                    self.compare_index(i, pass.timeline(), lengths, &index);
                }
                y
            } else {
                let scores = Scores { scale: 0.5, softcap: None, sinks: None };
                pass.attend(slot, &q, &k, &v, scores).unwrap()
            };
            let y = crate::ops::merge(&y).unwrap().to_vec_cast::<f32>().unwrap();
            let seen = self.compare(phase, i, n, lengths, &front, &y);
            results.extend(seen.iter().map(|x| x.to_bits()));
        }
        pass.finish().unwrap();
        self.set = set;
        self.results.extend(results);
        if phase == Phase::ReadBlock {
            return;
        }
        for (row, length) in self.rows.iter_mut().zip(lengths) {
            row.tokens += length;
        }
        if phase != Phase::Verify {
            self.rewritten(lengths);
        }
    }

    /// A span of `length`, cut where something is rewritten.
    fn room(&self, length: i32) -> i32 {
        self.set.max_append_tokens().map_or(length, |most| length.min(most))
    }

    /// Rows that got tokens, so many, are rewritten where they have become long enough.
    fn rewritten(&mut self, lengths: &[i32]) {
        for (row, length) in self.rows.iter_mut().zip(lengths) {
            for (coded, layer) in row.coded.iter_mut().zip(&self.layers) {
                let reached = layer.start.is_some_and(|start| row.tokens >= start);
                *coded |= reached && *length > 0;
            }
        }
    }

    /// Index keys [B, S, D] are those of the rows' tokens, whatever becomes of the latents.
    fn compare_index(&self, i: usize, line: &Timeline, lengths: &[i32], index: &Array) {
        let sizes = Sizes { kv_heads: 1, ..self.sizes };
        let (columns, dim) = (index.dim(1) as usize, sizes.dim);
        let index = crate::ops::reshape(index, &[-1]).unwrap().to_vec_cast::<f32>().unwrap();
        for (b, (row, length)) in self.rows.iter().zip(lengths).enumerate() {
            // A row without tokens in this pass has no queries, and nothing is fetched for it.
            let end = if *length > 0 { row.tokens + length } else { 0 };
            for position in 0..end {
                let at = (b * columns + (position + line.pads[b]) as usize) * dim;
                let want = oracle::vector(sizes, row.id, i, 1, position, 0);
                assert_eq!(index[at..at + dim], want, "index key {position} of row {b}");
            }
        }
    }

    fn compare(
        &self,
        phase: Phase,
        i: usize,
        n: i32,
        lengths: &[i32],
        front: &dyn Fn(usize) -> i32,
        y: &[f32],
    ) -> Vec<f32> {
        let layer = &self.layers[i];
        let kv_heads = if layer.latent { 1 } else { self.sizes.kv_heads };
        let sizes = Sizes { kv_heads, ..self.sizes };
        let mut seen = Vec::new();
        let width = sizes.heads * sizes.dim;
        for (b, row) in self.rows.iter().enumerate() {
            for t in 0..lengths[b] {
                let position = row.tokens + t;
                let block = phase == Phase::ReadBlock;
                let last = if block { row.tokens + n - 1 } else { position };
                let read = |kind: u64, k: i32, head: usize| {
                    let plain = || oracle::vector(sizes, row.id, i, kind, k, head);
                    // A block's own keys are never stored.
                    if !row.coded[i] || (block && k >= row.tokens) {
                        return plain();
                    }
                    self.stored
                        .borrow_mut()
                        .entry((i, row.id, kind, k, head))
                        .or_insert_with(|| oracle::stored(&layer.codes, kind, &plain()))
                        .clone()
                };
                let query = |head: usize| oracle::vector(sizes, row.id, i, 0, position, head);
                // In a block everything that its first position sees is seen by all of it.
                let want = if block {
                    let seen: Vec<i32> = (0..row.tokens)
                        .filter(|&k| layer.sight.sees(row.tokens, k))
                        .chain(row.tokens..row.tokens + n)
                        .collect();
                    let at = |kind: u64, k: i32, head: usize| read(kind, seen[k as usize], head);
                    oracle::attend(sizes, &Sight::All, 0, seen.len() as i32 - 1, false, query, at)
                } else {
                    oracle::attend(sizes, &layer.sight, position, last, true, query, read)
                };
                let at = (b * n as usize + (t + front(b)) as usize) * width;
                seen.extend_from_slice(&y[at..at + width]);
                for (got, want) in y[at..at + width].iter().zip(&want) {
                    assert!(
                        (got - want).abs() <= layer.tolerance,
                        "layer {i}, row {b}, position {position}, {phase:?} of {n}: {got} is not {want}"
                    );
                }
            }
        }
        seen
    }
}

/// Attention over what a layer stores, in plain operations: keys and values [B, 1, L, D].
fn latent(
    pass: &mut Pass<'_>,
    slot: Slot,
    [q, k, v]: [&Array; 3],
    indexed: bool,
) -> (Array, Option<Array>) {
    use crate::ops;
    let one = |x: &Array| ops::squeeze(x, 1).unwrap();
    let arrays = [&one(k), &one(v), &one(k)];
    let (stored, mask) = pass.store(slot, &arrays[..if indexed { 3 } else { 2 }]).unwrap();
    let [keys, values] = [0, 1].map(|i| ops::expand(&stored[i].decoded().unwrap(), 1).unwrap());
    let scores = ops::matmul(q, &ops::swap(&keys, -1, -2).unwrap()).unwrap();
    let scores = ops::mul_scalar(&scores, 0.5).unwrap();
    let mask = match mask {
        Mask::None => None,
        Mask::Causal => Some(pass.causal_mask(q.dim(2), keys.dim(2)).unwrap()),
        Mask::Array(mask) => Some(mask),
    };
    let scores = match mask {
        Some(mask) => ops::select(&mask, &scores, &Array::from_f32(f32::MIN)).unwrap(),
        None => scores,
    };
    let y = ops::matmul(&ops::softmax(&scores, true).unwrap(), &values).unwrap();
    (y, indexed.then(|| stored[2].decoded().unwrap()))
}
