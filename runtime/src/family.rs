//! A model family: how its models are found, loaded and spoken with.

use crate::Result;
use crate::capabilities::GraphDeclaration;
use crate::generate::denoise::DenoisingMethod;
use crate::gguf::GgufMap;
use crate::graph::{LoadedGraph, Method};
use crate::profile::{FamilyProfile, Specialization};
use crate::weights::ModelSource;

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
