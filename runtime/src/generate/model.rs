//! A model folder, loaded.

use std::cell::OnceCell;
use std::path::Path;

use specc_text::Tokenizer;

use super::generation::row;
use super::{Generation, Options, Session};
use crate::cache::CachePlan;
use crate::composition::{Composition, CompositionRequest, LayerScheme, resolve_composition};
use crate::graph::{Family, LoadedGraph, Tier, TokenPhases};
use crate::weights::{LoadOptions, ModelSource};
use crate::{Error, Result};

/// A model: its family's graph with the weights of a folder, and what text needs.
#[derive(Debug)]
pub struct Model {
    source: ModelSource,
    family: &'static Family,
    graph: LoadedGraph,
    composition: Composition,
    plan: CachePlan,
    vocabulary: Option<u32>,
    eos: Vec<u32>,
    tokenizer: OnceCell<Tokenizer>,
}

/// The family of a model: of those that answer to its type and accept it, a targeted one first.
///
/// # Errors
/// `config.json` has no `model_type`, or one that no family takes; the nearest known is named.
pub fn find_family(families: &[&'static Family], source: &ModelSource) -> Result<&'static Family> {
    let Some(wanted) = source.config().model_type() else {
        let path = source.folder().join("config.json");
        return Err(Error::Unsupported(format!("{}: no `model_type`", path.display())));
    };
    let mut refused = Vec::new();
    let mut other_config = None;
    for tier in [Tier::Targeted, Tier::Generic] {
        for family in families.iter().filter(|f| f.tier == tier) {
            if family.model_types.contains(&wanted) {
                match (family.accepts)(source) {
                    Ok(true) => return Ok(family),
                    Ok(false) => refused.push(family.name),
                    // Another family may take what a graph for one configuration does not.
                    Err(error @ Error::OtherConfig(_)) => {
                        other_config.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    if let Some(error) = other_config.filter(|_| refused.is_empty()) {
        return Err(error);
    }
    let mut known: Vec<&str> = families.iter().flat_map(|f| f.model_types).copied().collect();
    known.sort_unstable();
    known.dedup();
    let path = source.folder().join("config.json");
    let mut text = format!("{}: model_type {wanted:?} ", path.display());
    if refused.is_empty() {
        text.push_str("is not supported");
        if let Some(near) = nearest(wanted, &known) {
            text.push_str(&format!("; did you mean {near:?}?"));
        }
        text.push_str(&format!("; supported are {}", known.join(", ")));
    } else {
        text.push_str(&format!("is known, but {} does not take this model", refused.join(", ")));
    }
    Err(Error::Unsupported(text))
}

/// The known word that is closest, where one is close.
fn nearest<'a>(wanted: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |word: &str| strsim::damerau_levenshtein(wanted, word);
    let best = known.iter().min_by_key(|word| distance(word))?;
    (distance(best) <= 1 + best.len() / 3).then_some(*best)
}

/// What `kv_config.json` says of each layer's keys and values; nothing where there is none.
fn kv_config(folder: &Path) -> Result<Vec<LayerScheme>> {
    #[derive(serde::Deserialize)]
    struct Entry {
        layer_idx: u32,
        bits: u32,
        group_size: u32,
    }
    let file = folder.join("kv_config.json");
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::Io { file, reason: e.to_string() }),
    };
    let entries: Vec<Entry> = serde_json::from_slice(&text).map_err(|e| Error::Io {
        file,
        reason: format!("expected a list of {{layer_idx, bits, group_size}}: {e}"),
    })?;
    let scheme =
        |e: Entry| LayerScheme { layer: e.layer_idx, bits: e.bits, group_size: e.group_size };
    Ok(entries.into_iter().map(scheme).collect())
}

impl Model {
    /// Loads a model folder with the one of `families` that it belongs to, under the default
    /// composition.
    ///
    /// # Errors
    /// The folder is no model, no family takes it, or its weights do not fit.
    pub fn load(families: &[&'static Family], folder: &Path, options: LoadOptions) -> Result<Self> {
        Self::load_with(families, folder, options, &CompositionRequest::default())
    }

    /// Loads a model folder under a composition.
    ///
    /// # Errors
    /// As [`Model::load`]; and the composition cannot be, or is not for this model.
    pub fn load_with(
        families: &[&'static Family],
        folder: &Path,
        options: LoadOptions,
        request: &CompositionRequest,
    ) -> Result<Self> {
        let source = ModelSource::open(folder, options)?;
        Self::of_source(find_family(families, &source)?, source, request)
    }

    /// Loads a model whose headers are read already.
    ///
    /// # Errors
    /// As [`Model::load_with`].
    pub fn of_source(
        family: &'static Family,
        source: ModelSource,
        request: &CompositionRequest,
    ) -> Result<Self> {
        let composition = resolve_composition(request, &kv_config(source.folder())?)?;
        let graph = (family.load)(&source)?;
        let plan = match &graph {
            LoadedGraph::Autoregressive(graph) => CachePlan::bind(&**graph, &composition, &[])?,
            LoadedGraph::Denoising(graph) => CachePlan::new(graph.cache_layers())?,
            LoadedGraph::Embedding(_) => CachePlan::new(&[])?,
        };
        // What loading needed on the way is given back.
        mlx_rs::memory::clear_cache()?;
        let eos = specc_text::tokenizer::eos_token_ids(source.folder(), None)?;
        let mut model = Self {
            source,
            family,
            graph,
            composition,
            plan,
            vocabulary: None,
            eos: eos.into_iter().collect(),
            tokenizer: OnceCell::new(),
        };
        model.vocabulary = model.find_vocabulary()?;
        Ok(model)
    }

    /// The family.
    pub fn family(&self) -> &'static Family {
        self.family
    }

    /// The folder's headers.
    pub fn source(&self) -> &ModelSource {
        &self.source
    }

    /// The graph with its weights.
    pub fn graph(&self) -> &LoadedGraph {
        &self.graph
    }

    /// What was decided at load.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// How caches are made.
    pub fn cache_plan(&self) -> &CachePlan {
        &self.plan
    }

    /// Ids are below this number, where it is known.
    pub fn vocabulary(&self) -> Option<u32> {
        self.vocabulary
    }

    /// The folder's tokenizer, read on first use.
    ///
    /// # Errors
    /// There is none, or it is malformed.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        if let Some(tokenizer) = self.tokenizer.get() {
            return Ok(tokenizer);
        }
        let tokenizer = Tokenizer::load(self.source.folder())?;
        Ok(self.tokenizer.get_or_init(|| tokenizer))
    }

    /// The tokens that end an answer: those of the configuration, of the generation configuration,
    /// and of the tokenizer where there is one.
    pub fn eos(&self) -> Vec<u32> {
        let mut eos = self.eos.clone();
        if let Some(id) = self.tokenizer().ok().and_then(Tokenizer::eos_id)
            && !eos.contains(&id)
        {
            eos.push(id);
        }
        eos
    }

    /// A conversation's caches, empty.
    pub fn session(&self) -> Session {
        Session::new(&self.plan)
    }

    /// Generates after a prompt in a session of its own; iterate over the pieces.
    ///
    /// # Errors
    /// An empty prompt, an id outside the vocabulary, a setting out of range.
    pub fn generate(&self, prompt: &[u32], options: Options) -> Result<Generation<'_>> {
        Generation::start(self, super::Held::Own(Box::new(self.session())), prompt, options)
    }

    /// Generates after a prompt; what the session holds of it is not read again.
    ///
    /// # Errors
    /// As [`Model::generate`].
    pub fn continue_session<'a>(
        &'a self,
        session: &'a mut Session,
        prompt: &[u32],
        options: Options,
    ) -> Result<Generation<'a>> {
        Generation::start(self, super::Held::Lent(session), prompt, options)
    }

    /// Checks the ids of a prompt.
    ///
    /// # Errors
    /// There are none, or one is outside the vocabulary.
    pub fn check_ids(&self, ids: &[u32]) -> Result<()> {
        if ids.is_empty() {
            return Err(Error::input("prompt", "at least one token", "none"));
        }
        let bound = self.vocabulary.unwrap_or(i32::MAX as u32);
        match ids.iter().find(|id| **id >= bound) {
            Some(id) => Err(Error::input("token", format!("an id below {bound}"), id.to_string())),
            None => Ok(()),
        }
    }

    /// The vocabulary's size: the configuration's, else that of the logits of a forward that is
    /// built and never computed.
    fn find_vocabulary(&self) -> Result<Option<u32>> {
        let reader = self.source.config().under(&["", "text_config"]);
        if let Ok(Some(size)) = reader.int("vocab_size") {
            return Ok(u32::try_from(size).ok());
        }
        let LoadedGraph::Autoregressive(graph) = &self.graph else { return Ok(None) };
        let hidden = graph.prompt(&mut self.plan.make(), &row(&[0])?)?;
        let logits = TokenPhases::logits(&**graph, &hidden)?;
        Ok(u32::try_from(logits.dim(-1)).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let known = ["acme", "acme_moe", "other"];
        assert_eq!(nearest("acme2", &known), Some("acme"));
        assert_eq!(nearest("acmemoe", &known), Some("acme_moe"));
        assert_eq!(nearest("zzzzzz", &known), None);
    }
}
