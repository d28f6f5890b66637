//! A model folder, loaded.

use std::cell::OnceCell;
use std::path::Path;

use specc_checkpoint::config::{Unread, eos_token_ids};
use specc_text::Tokenizer;

use super::bind::{BoundGraph, bind_graph_caches};
use super::denoise::{self, DenoisingSettings, Refusal};
use super::generation::row;
use super::{Generation, Options, Session};
use crate::cache::CachePlan;
use crate::capabilities::{GraphCapabilities, declared_graph};
use crate::composition::{Composition, CompositionRequest, kv_config, resolve_composition};
use crate::family::Family;
use crate::graph::{LoadedGraph, Method, TokenPhases};
use crate::profile::{Registry, ResolvedProfile};
use crate::weights::{LoadOptions, ModelSource};
use crate::{Error, Result};

/// A model: its family's graph with the weights of a folder, and what text needs.
#[derive(Debug)]
pub struct Model {
    source: ModelSource,
    profile: ResolvedProfile,
    graph: BoundGraph,
    pub(super) denoising: Option<DenoisingSettings>,
    /// Ids are below this number, where it is known.
    vocabulary: Option<u32>,
    eos: Vec<u32>,
    tokenizer: OnceCell<Tokenizer>,
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
        Self::of_source(families, ModelSource::open(folder, options)?, request)
    }

    /// Loads a model whose headers are read already.
    ///
    /// # Errors
    /// As [`Model::load_with`].
    pub fn of_source(
        families: &[&'static Family],
        source: ModelSource,
        request: &CompositionRequest,
    ) -> Result<Self> {
        let registry = Registry::new(families)?;
        let profile = registry.resolve(&source)?;
        let composition = resolve_composition(request, &kv_config(source.folder(), &request.kv)?)?;
        let family = profile.family;
        if family.method == Method::Denoising {
            Refusal::of_composition(&composition)?;
        }
        let how = family.denoising.as_ref();
        let denoising = how.map(|how| DenoisingSettings::of(how, &source)).transpose();
        let denoising = denoising.map_err(|error| error.of_family(family.name))?;
        let implementation = registry.implementation(&profile, &source)?;
        let graph = declared_graph(implementation, implementation.load_graph(&source)?)?;
        let graph = bind_graph_caches(graph, composition)?;
        // What loading needed on the way is given back.
        mlx_rs::memory::clear_cache()?;
        let eos = eos_token_ids(source.config(), source.generation(), None)?;
        let mut model = Self {
            source,
            profile,
            graph,
            denoising,
            vocabulary: None,
            eos,
            tokenizer: OnceCell::new(),
        };
        model.vocabulary = model.find_vocabulary()?;
        Ok(model)
    }

    /// The family.
    pub fn family(&self) -> &'static Family {
        self.profile.family
    }

    /// The profile that the model is run under.
    pub fn profile(&self) -> &ResolvedProfile {
        &self.profile
    }

    /// What the graph can do.
    pub fn capabilities(&self) -> &GraphCapabilities {
        self.graph.capabilities()
    }

    /// The graph with its composition and its caches.
    pub fn bound(&self) -> &BoundGraph {
        &self.graph
    }

    /// The folder's headers.
    pub fn source(&self) -> &ModelSource {
        &self.source
    }

    /// Keys of config.json that say something and that the family neither reads nor declares ignored.
    pub fn unread(&self) -> Vec<Unread<'_>> {
        self.source.config().unread()
    }

    /// The graph with its weights.
    pub fn graph(&self) -> &LoadedGraph {
        self.graph.graph()
    }

    /// What was decided at load.
    pub fn composition(&self) -> &Composition {
        self.graph.composition()
    }

    /// Tokens of a part of a prompt of `length` tokens: the record's number, made smaller where the
    /// graph declares a bound and nobody asked for the number.
    pub fn prefill_chunk(&self, length: usize) -> usize {
        let chunk = self.composition().prefill_chunk_tokens() as usize;
        match self.composition().prefill_chunk_asked() {
            true => chunk,
            false => super::bounded_chunk(self.graph.workspace(), chunk, length),
        }
    }

    /// How caches are made.
    pub fn cache_plan(&self) -> &CachePlan {
        self.graph.cache_plan()
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
        Session::new(self.cache_plan())
    }

    /// Generates after a prompt in a session of its own; iterate over the pieces.
    ///
    /// # Errors
    /// An empty prompt, an id outside the vocabulary, a setting out of range.
    pub fn generate(&self, prompt: &[u32], options: Options) -> Result<Generation<'_>> {
        Generation::start(self, super::SessionRef::Own(Box::new(self.session())), prompt, options)
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
        Generation::start(self, super::SessionRef::Lent(session), prompt, options)
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
        if let LoadedGraph::Denoising(graph) = self.graph() {
            return denoise::vocabulary(&**graph, self.cache_plan());
        }
        let Ok(graph) = self.graph().autoregressive() else { return Ok(None) };
        // Plain caches: those of a scheme may convert, which computes.
        let mut caches = CachePlan::new(graph.cache_layers())?.make();
        let hidden = graph.prompt(&mut caches, &row(&[0])?)?;
        let logits = TokenPhases::logits(graph, &hidden)?;
        Ok(u32::try_from(logits.dim(-1)).ok())
    }
}
