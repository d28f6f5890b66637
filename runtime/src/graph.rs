//! What a model can do: its operations by phase, and how it is found and loaded.

use std::fmt;

use mlx_rs::Array;

use crate::cache::{CacheLayer, CacheSet};
use crate::capabilities::{GraphDeclaration, GraphRegistration};
use crate::generate::denoise::DenoisingMethod;
use crate::gguf::GgufMap;
use crate::pass::{Padding, Pass, Phase};
use crate::profile::{FamilyProfile, Specialization};
use crate::weights::ModelSource;
use crate::{Error, Result};

/// An autoregressive graph as the compiler writes it: one forward over tokens, in which only the
/// mixers differ by phase, and the head.
pub trait Autoregressive {
    /// What each slot remembers.
    fn cache_layers(&self) -> &[CacheLayer];

    /// Whether layers that keep all keys and values may keep them in pages.
    fn cache_paging(&self) -> bool {
        false
    }

    /// Hidden states after the final norm: ids [B, L] -> [B, L, hidden].
    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array>;

    /// Hidden states to the vocabulary: [B, L, hidden] -> [B, L, vocab].
    fn logits(&self, hidden: &Array) -> Result<Array>;
}

impl<G: Autoregressive + ?Sized> Autoregressive for Box<G> {
    fn cache_layers(&self) -> &[CacheLayer] {
        (**self).cache_layers()
    }

    fn cache_paging(&self) -> bool {
        (**self).cache_paging()
    }

    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array> {
        (**self).hidden(cx, ids)
    }

    fn logits(&self, hidden: &Array) -> Result<Array> {
        (**self).logits(hidden)
    }
}

/// Tokens of one pass over tokens that are decided already.
pub const KNOWN_TOKENS: i32 = 4;

/// The phases of an autoregressive graph. All of them are needed: a graph that lacks one is no
/// autoregressive graph.
pub trait TokenPhases {
    /// A part of the prompts: ids [B, L] -> hidden states [B, L, hidden].
    fn prompt(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array>;

    /// Parts of several prompts of unequal lengths in one forward; `padding` counts the ids of each
    /// row that are none.
    fn multi_sequence_prompt(
        &self,
        caches: &mut CacheSet,
        ids: &Array,
        padding: Padding,
    ) -> Result<Array>;

    /// One token a row: ids [B, 1] -> [B, 1, hidden].
    fn decode(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array>;

    /// A pending token and drafts, [B, d + 1], of which [`CacheSet::resolve`] keeps some.
    fn verify(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array>;

    /// Tokens that are decided already, each with the arithmetic of a decode; in passes of at most
    /// [`KNOWN_TOKENS`], which end where stored tokens are rewritten.
    fn append_known(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array>;

    /// Hidden states to the vocabulary: [B, L, hidden] -> [B, L, vocab].
    fn logits(&self, hidden: &Array) -> Result<Array>;
}

impl<G: Autoregressive + ?Sized> TokenPhases for G {
    fn prompt(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array> {
        run(self, caches, Phase::Prompt, ids, Padding::default())
    }

    fn multi_sequence_prompt(
        &self,
        caches: &mut CacheSet,
        ids: &Array,
        padding: Padding,
    ) -> Result<Array> {
        run(self, caches, Phase::MultiSequencePrompt, ids, padding)
    }

    fn decode(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array> {
        run(self, caches, Phase::Decode, ids, Padding::default())
    }

    fn verify(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array> {
        run(self, caches, Phase::Verify, ids, Padding::default())
    }

    fn append_known(&self, caches: &mut CacheSet, ids: &Array) -> Result<Array> {
        let phase = Phase::AppendKnown;
        let tokens = if ids.ndim() == 2 { ids.dim(1) } else { 0 };
        let mut parts = Vec::new();
        let mut at = 0;
        while at < tokens {
            let most = caches.max_append_tokens().unwrap_or(KNOWN_TOKENS).min(KNOWN_TOKENS);
            let end = tokens.min(at + most);
            let part = crate::ops::slice(ids, 1, at, end)?;
            parts.push(run(self, caches, phase, &part, Padding::default())?);
            at = end;
        }
        match parts.as_slice() {
            [] => run(self, caches, phase, ids, Padding::default()),
            [one] => Ok(one.clone()),
            _ => crate::ops::concat(&parts.iter().collect::<Vec<_>>(), 1),
        }
    }

    fn logits(&self, hidden: &Array) -> Result<Array> {
        Autoregressive::logits(self, hidden)
    }
}

fn run<G: Autoregressive + ?Sized>(
    graph: &G,
    caches: &mut CacheSet,
    phase: Phase,
    ids: &Array,
    padding: Padding,
) -> Result<Array> {
    let mut pass = Pass::begin(caches, phase, ids, padding)?;
    let hidden = graph.hidden(&mut pass, ids)?;
    pass.finish()?;
    Ok(hidden)
}

/// A graph that turns texts into vectors.
pub trait Embedder {
    /// Hidden states of whole sequences: ids [B, L] -> [B, L, hidden]; padding is the pass's.
    fn hidden(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array>;
}

/// A graph that denoises blocks of tokens.
pub trait Denoiser {
    /// What each slot remembers.
    fn cache_layers(&self) -> &[CacheLayer];

    /// Appends ids [B, L] causally and gives their hidden states.
    fn encode(&self, cx: &mut Pass<'_>, ids: &Array) -> Result<Array>;

    /// Logits [B, C, vocab] of a canvas [B, C] that sees the caches and itself, in a pass of
    /// [`Phase::ReadBlock`]; `signal` [B, C, hidden] is what the step before
    /// believed, zeros in the first.
    fn denoise(&self, cx: &mut Pass<'_>, canvas: &Array, signal: &Array) -> Result<Array>;

    /// Expected token vectors of probabilities: [B, C, vocab] -> [B, C, hidden].
    fn soft_embeddings(&self, probabilities: &Array) -> Result<Array>;
}

/// A graph with its weights.
pub enum LoadedGraph {
    /// Next tokens.
    Autoregressive(Box<dyn Autoregressive>),
    /// Vectors of texts.
    Embedding(Box<dyn Embedder>),
    /// Blocks of tokens.
    Denoising(Box<dyn Denoiser>),
    /// Whatever its parts do; binding checks what they are.
    Registered(Box<GraphRegistration>),
}

impl fmt::Debug for LoadedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadedGraph::Autoregressive(_) => "LoadedGraph::Autoregressive",
            LoadedGraph::Embedding(_) => "LoadedGraph::Embedding",
            LoadedGraph::Denoising(_) => "LoadedGraph::Denoising",
            LoadedGraph::Registered(_) => "LoadedGraph::Registered",
        })
    }
}

impl LoadedGraph {
    /// What each slot remembers.
    pub fn cache_layers(&self) -> &[CacheLayer] {
        match self {
            LoadedGraph::Autoregressive(graph) => graph.cache_layers(),
            LoadedGraph::Denoising(graph) => graph.cache_layers(),
            LoadedGraph::Registered(graph) => graph.cache_layers(),
            LoadedGraph::Embedding(_) => &[],
        }
    }

    /// Whether layers that keep all positions may keep them in pages.
    pub fn cache_paging(&self) -> bool {
        match self {
            LoadedGraph::Autoregressive(graph) => graph.cache_paging(),
            LoadedGraph::Registered(graph) => graph.cache_paging(),
            LoadedGraph::Embedding(_) | LoadedGraph::Denoising(_) => false,
        }
    }

    /// The autoregressive graph.
    ///
    /// # Errors
    /// When the model does something else.
    pub fn autoregressive(&self) -> Result<&dyn Autoregressive> {
        match self {
            LoadedGraph::Autoregressive(graph) => Ok(&**graph),
            LoadedGraph::Registered(graph) => Ok(&**graph),
            LoadedGraph::Embedding(_) => {
                Err(Error::Unsupported("this model embeds texts and generates none".into()))
            }
            LoadedGraph::Denoising(_) => {
                Err(Error::Unsupported("this model denoises blocks of tokens".into()))
            }
        }
    }
}

/// What a family's models produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Next tokens.
    Autoregressive,
    /// Vectors of texts.
    Embedding,
    /// Blocks of tokens.
    Denoising,
}

/// Whether a family is for certain model types or for whatever it can describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Tried first; has a label.
    Targeted,
    /// Tried last.
    Generic,
}

/// What a family says about its chats; checkpoints and their templates say the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatFormat {
    /// How thinking is marked: `none`, `think-tag`, `gemma-channel`; else the template gives it away.
    pub thinking: Option<&'static str>,
    /// How tools are called; else the template gives it away.
    pub tool_calls: Option<&'static str>,
    /// Variables of the template, as JSON text, where the user gives none.
    pub variables: &'static [(&'static str, &'static str)],
    /// A Jinja template for checkpoints that carry none.
    pub fallback: Option<&'static str>,
}

impl ChatFormat {
    /// A family that says nothing.
    pub const UNSAID: Self =
        Self { thinking: None, tool_calls: None, variables: &[], fallback: None };
}

/// Which hidden states of the last layer make the vector of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The first token's.
    First,
    /// The last token's.
    Last,
}

/// How a text becomes one vector.
#[derive(Debug, Clone, Copy)]
pub struct TextVector {
    /// Which hidden states.
    pub pooling: Pooling,
    /// Divided by its Euclidean length.
    pub normalise: bool,
    /// The token that a text has to end with.
    pub terminator: Option<&'static str>,
    /// The most tokens of a text, where there is a limit.
    pub max_positions: Option<fn(&ModelSource) -> Result<i64>>,
}

impl TextVector {
    /// The mean over all tokens, of length 1.
    pub const UNSAID: Self =
        Self { pooling: Pooling::Mean, normalise: true, terminator: None, max_positions: None };
}

/// A model family: data, and the functions that the compiler wrote for it.
#[derive(Debug)]
pub struct Family {
    /// Unique name.
    pub name: &'static str,
    /// Values of `model_type` that it answers to.
    pub model_types: &'static [&'static str],
    /// Its place in the order of families.
    pub tier: Tier,
    /// Its name in messages; targeted families have one.
    pub label: Option<&'static str>,
    /// Whether its model types alone do not tell: [`Family::accepts`] looks at the configuration.
    pub conditional: bool,
    /// What its models produce.
    pub method: Method,
    /// What its graph declares.
    pub declaration: GraphDeclaration,
    /// What its profile says.
    pub profile: FamilyProfile,
    /// How its models are written in GGUF files.
    pub gguf: Option<&'static GgufMap>,
    /// What its chats look like, where checkpoints do not say.
    pub chat: ChatFormat,
    /// How a text becomes one vector, where its models can give one.
    pub embedding: Option<TextVector>,
    /// How blocks are refined, where its models denoise.
    pub denoising: Option<DenoisingMethod>,
    /// Whether it takes a model whose `model_type` is its own.
    pub accepts: fn(&ModelSource) -> Result<bool>,
    /// Loads the weights of a model that it accepts.
    pub load: fn(&ModelSource) -> Result<LoadedGraph>,
}

impl Family {
    /// Whether a model of this type is the family's, as far as the type alone tells: `false` where more
    /// than the type is needed.
    pub fn has_model_type(&self, model_type: &str) -> bool {
        !self.conditional && self.model_types.contains(&model_type)
    }

    /// [`Family::accepts`], whose errors name the family.
    pub(crate) fn takes(&self, source: &ModelSource) -> Result<bool> {
        (self.accepts)(source).map_err(|error| error.of_family(self.name))
    }

    /// [`Family::load`], whose errors of the configuration name the family.
    pub(crate) fn load_graph(&self, source: &ModelSource) -> Result<LoadedGraph> {
        (self.load)(source).map_err(|error| error.of_family(self.name))
    }

    /// Whether its graph was made for one configuration, as `specc emit --specialize` makes them.
    pub fn is_for_one_configuration(&self) -> bool {
        self.profile.specialization == Specialization::Generated
    }
}
