//! A model under test: forwards, appends through a cache, greedy continuations.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use specc_runtime::cache::{CachePlan, CacheSet, PlanOptions};
use specc_runtime::composition::{CompositionRequest, KvOverride, KvRequest, resolve_composition};
use specc_runtime::generate;
use specc_runtime::graph::{Autoregressive, TokenPhases};
use specc_runtime::pass::Pass;
use specc_runtime::phase::{Binding, Padding, Phase};
use specc_runtime::profile::find_family;
use specc_runtime::weights::{LoadOptions, ModelSource};
use specc_runtime::{Array, Dtype, ops};

/// What a run keeps its keys and values in.
#[derive(Debug, Clone, PartialEq)]
pub enum Cache {
    /// In the type of the activations.
    Plain,
    /// In `bits` bits, from the first token, or once `start` tokens are stored.
    Affine {
        /// Bits of a value.
        bits: u32,
        /// Values that share a scale.
        group_size: u32,
        /// Tokens stored before the first conversion.
        start: Option<u32>,
    },
}

/// A loaded model.
#[derive(Debug)]
pub struct Model {
    model: generate::Model,
}

impl Model {
    /// Loads the model of a folder with the family that takes it.
    ///
    /// # Errors
    /// Where no family takes it, or its weights do not fit.
    pub fn load(dir: &Path) -> Result<Self> {
        Self::load_with(dir, LoadOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_with(dir: &Path, options: LoadOptions) -> Result<Self> {
        let model = generate::Model::load(specc_families::families(), dir, options)?;
        Ok(Self { model })
    }

    /// The family's name.
    pub fn family(&self) -> &'static str {
        self.model.family().name
    }

    /// Keys of `config.json` that say something and that nobody reads.
    pub fn unread(&self) -> Vec<String> {
        self.model.unread().iter().map(ToString::to_string).collect()
    }

    fn graph(&self) -> Result<&dyn Autoregressive> {
        Ok(self.model.graph().autoregressive()?)
    }

    /// Fresh caches.
    ///
    /// # Errors
    /// Where the graph's layers cannot be kept that way.
    pub fn caches(&self, cache: &Cache) -> Result<CacheSet> {
        let Cache::Affine { bits, group_size, start } = *cache else {
            return Ok(self.model.cache_plan().make());
        };
        let kv = KvRequest {
            scheme: KvOverride::Bits(bits),
            group_size: Some(group_size),
            quantized_kv_start: start.map(i64::from),
            immediate: start.is_none(),
            ..KvRequest::default()
        };
        let request = CompositionRequest { kv, ..CompositionRequest::default() };
        let composition = resolve_composition(&request, &[])?;
        let layers = self.graph()?.cache_layers();
        Ok(CachePlan::compose(layers, &composition, PlanOptions::default())?.make())
    }

    /// Logits of one forward over rows of equal length, row by row: [B, T, V] flattened.
    ///
    /// # Errors
    /// What the forward reports.
    pub fn logits(&self, rows: &[&[i32]]) -> Result<Vec<f32>> {
        self.append(&mut self.caches(&Cache::Plain)?, rows)
    }

    /// Logits of ids through one cache in appends of `sizes`: [T, V] flattened.
    ///
    /// # Errors
    /// What the forwards report.
    pub fn chunked(&self, ids: &[i32], sizes: &[usize], cache: &Cache) -> Result<Vec<f32>> {
        let mut caches = self.caches(cache)?;
        let mut rest = ids;
        let mut logits = Vec::new();
        for size in sizes {
            let (part, after) =
                rest.split_at_checked(*size).context("chunks are longer than the ids")?;
            logits.extend(self.append(&mut caches, &[part])?);
            rest = after;
        }
        Ok(logits)
    }

    /// The `count` ids that follow, each the likeliest after those before.
    ///
    /// # Errors
    /// What the forwards report.
    pub fn greedy(&self, ids: &[i32], count: usize) -> Result<Vec<i32>> {
        let mut caches = self.caches(&Cache::Plain)?;
        let mut logits = self.append(&mut caches, &[ids])?;
        let vocabulary = logits.len() / ids.len().max(1);
        let mut chosen = Vec::with_capacity(count);
        loop {
            let last = logits.get(logits.len() - vocabulary..).context("no logits")?;
            chosen.push(likeliest(last)?);
            if chosen.len() == count {
                return Ok(chosen);
            }
            logits = self.append(&mut caches, &[&chosen[chosen.len() - 1..]])?;
        }
    }

    /// Appends rows of equal length; logits of each of their ids: [B, L, V] flattened.
    ///
    /// # Errors
    /// What the forward reports.
    pub fn append(&self, caches: &mut CacheSet, rows: &[&[i32]]) -> Result<Vec<f32>> {
        let ids = ids(rows)?;
        let graph = self.graph()?;
        // A single token is a decode, as it is for a user.
        let hidden = if ids.dim(1) == 1 {
            graph.decode(caches, &ids)?
        } else {
            graph.prompt(caches, &ids)?
        };
        self.head(&hidden)
    }

    /// As [`Model::append`], computed by `binding` whatever the phase.
    ///
    /// # Errors
    /// What the forward reports.
    pub fn append_bound(
        &self,
        caches: &mut CacheSet,
        rows: &[&[i32]],
        binding: Binding,
    ) -> Result<Vec<f32>> {
        let ids = ids(rows)?;
        let phase = if ids.dim(1) == 1 { Phase::Decode } else { Phase::Prompt };
        let mut pass = Pass::begin(caches, phase, &ids, Padding::default())?.with_binding(binding);
        let hidden = self.graph()?.hidden(&mut pass, &ids)?;
        pass.finish()?;
        self.head(&hidden)
    }

    /// Appends prompts of unequal lengths in one forward, filled up with zeros in front or behind.
    /// Logits of each row's own ids, [T, V] flattened.
    ///
    /// # Errors
    /// What the forward reports.
    pub fn append_uneven(
        &self,
        caches: &mut CacheSet,
        rows: &[&[i32]],
        side: Side,
    ) -> Result<Vec<Vec<f32>>> {
        let length = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let blank = |row: &[i32]| vec![0; length - row.len()];
        let filled: Vec<Vec<i32>> = rows
            .iter()
            .map(|row| match side {
                Side::Left => [blank(row).as_slice(), row].concat(),
                Side::Right => [row, blank(row).as_slice()].concat(),
            })
            .collect();
        let counts = rows
            .iter()
            .map(|row| Ok(i32::try_from(length - row.len())?))
            .collect::<Result<Vec<_>>>()?;
        let padding = match side {
            Side::Left => Padding { left: counts, right: Vec::new() },
            Side::Right => Padding { left: Vec::new(), right: counts },
        };
        let ids = ids(&filled.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let hidden = self.graph()?.multi_sequence_prompt(caches, &ids, padding)?;
        let logits = self.head(&hidden)?;
        let vocabulary = logits.len() / (rows.len() * length).max(1);
        let mut by_row = Vec::with_capacity(rows.len());
        for (row, all) in rows.iter().zip(logits.chunks(length * vocabulary)) {
            let own = row.len() * vocabulary;
            let from = if side == Side::Left { all.len() - own } else { 0 };
            by_row.push(all.get(from..from + own).context("fewer logits than ids")?.to_vec());
        }
        Ok(by_row)
    }

    /// Appends a span that may be taken back by `resolve`; logits of each of its ids.
    ///
    /// # Errors
    /// What the forward reports.
    pub fn verify(&self, caches: &mut CacheSet, rows: &[&[i32]]) -> Result<Vec<f32>> {
        let hidden = self.graph()?.verify(caches, &ids(rows)?)?;
        self.head(&hidden)
    }

    fn head(&self, hidden: &Array) -> Result<Vec<f32>> {
        let logits = TokenPhases::logits(self.graph()?, hidden)?;
        let flat = ops::reshape(&ops::cast(&logits, Dtype::Float32)?, &[-1])?;
        flat.eval()?;
        Ok(flat.as_slice::<f32>().to_vec())
    }
}

/// Where rows are filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In front.
    Left,
    /// Behind.
    Right,
}

/// The family that takes the model of a folder.
///
/// # Errors
/// Where none does.
pub fn family_of(dir: &Path) -> Result<&'static str> {
    let source = ModelSource::open(dir, LoadOptions::default())?;
    Ok(find_family(specc_families::families(), &source)?.name)
}

fn ids(rows: &[&[i32]]) -> Result<Array> {
    let length = rows.first().map_or(0, |row| row.len());
    ensure!(rows.iter().all(|row| row.len() == length), "rows of unequal lengths");
    Ok(Array::from_slice(&rows.concat(), &[i32::try_from(rows.len())?, i32::try_from(length)?]))
}

/// The first of the largest values.
fn likeliest(logits: &[f32]) -> Result<i32> {
    let mut best = None;
    for (id, value) in (0..).zip(logits) {
        if best.is_none_or(|(_, most)| *value > most) {
            best = Some((id, *value));
        }
    }
    Ok(best.context("no logits")?.0)
}
