//! Under which profile a model is run: which graph, what its numbers are held against, what the
//! engine must be able to do for it.
//!
//! Three kinds, tried in this order: a profile of one exact artifact, which is pinned to a
//! repository's revision and to the fingerprint of its configuration; a generated one, for
//! configurations whose fingerprints a family lists; and the family's own. What an exact artifact
//! pins is never given up silently: where it does not fit, loading fails.

mod artifact;
mod chat;
mod error;
mod registry;
mod validate;

pub use artifact::artifact_of;
pub(crate) use chat::load_chat_template;
pub use chat::load_model_chat_template;
pub use error::ProfileError;
pub use registry::{Registry, ResolvedProfile, find_family};
pub use validate::{
    BASE_CAPABILITIES, EXECUTION_COMPOSITIONS, engine_capabilities, validate_profile,
};

use serde::Serialize;

use crate::Result;
use crate::family::{ChatFormat, Family};
use crate::graph::Method;
use crate::weights::ModelSource;

/// How much is known of a graph's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FidelityTier {
    /// The same bits as the reference program of most families.
    L1,
    /// The same bits as another program.
    L2,
    /// Measured, without a program to compare with.
    L3,
}

/// What is claimed of a graph's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// The oracle's bits.
    BitExact,
    /// What was measured.
    Measured,
}

/// What a graph's numbers are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Fidelity {
    /// How much is known.
    pub tier: FidelityTier,
    /// The program that is compared with.
    pub oracle: Option<&'static str>,
    /// What is claimed.
    pub claim: Claim,
}

/// For how much a graph was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Specialization {
    /// One family.
    Dedicated,
    /// Whatever its words describe.
    Generic,
    /// Some configurations of a family, whose numbers are folded in.
    Generated,
    /// One artifact.
    Artifact,
}

/// Settings of a request that says nothing of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GenerationDefaults {
    /// Whether the template is rendered with thinking; `None`: as the template has it.
    pub enable_thinking: Option<bool>,
    /// The highest temperature of an answer without thinking.
    pub no_think_temperature_cap: f64,
}

impl GenerationDefaults {
    /// Those of a family that says nothing.
    pub const UNSAID: Self = Self { enable_thinking: None, no_think_temperature_cap: 0.7 };
}

/// Texts that stand around or for media in a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MediaTokens {
    /// For one image, before it and behind it.
    pub image: &'static [&'static str],
    /// For one sound, before it and behind it.
    pub audio: &'static [&'static str],
    /// For one video, before it and behind it.
    pub video: &'static [&'static str],
}

/// How many experts a mixture has, for sizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ExpertCounts {
    /// How many a layer has.
    pub count: i64,
    /// How many a token goes to.
    pub chosen: i64,
}

/// The experts of a configuration; none where it has none.
pub type FindExperts = fn(&ModelSource) -> Result<Option<ExpertCounts>>;

/// Configurations that run a generated graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedProfile {
    /// The profile's id.
    pub id: &'static str,
    /// Fingerprints of their configurations.
    pub fingerprints: &'static [&'static str],
}

/// The profile of one exact artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactProfile {
    /// The profile's id.
    pub id: &'static str,
    /// `hf:REPOSITORY@REVISION`
    pub artifact: &'static str,
    /// The fingerprint of its configuration.
    pub fingerprint: &'static str,
    /// What its numbers are held against; the family's where it says nothing.
    pub fidelity: Option<Fidelity>,
    /// Capabilities beside the family's.
    pub capabilities: &'static [&'static str],
    /// The graph's implementation, where it is another than the family's.
    pub implementation: Option<&'static str>,
    /// How it is composed.
    pub composition: Option<&'static str>,
}

/// What a family says about its profiles.
#[derive(Debug, Clone, Copy)]
pub struct FamilyProfile {
    /// The graph's name, unique among families.
    pub graph: &'static str,
    /// The id of the family's own profile.
    pub id: &'static str,
    /// The id under which this record's graph is an implementation.
    pub implementation: &'static str,
    /// For how much the graph was made.
    pub specialization: Specialization,
    /// What its numbers are held against.
    pub fidelity: Fidelity,
    /// What an engine needs for it, beyond what its loader and its loop need.
    pub capabilities: &'static [&'static str],
    /// Settings of requests.
    pub generation: GenerationDefaults,
    /// Configurations that run a generated graph.
    pub generated: Option<GeneratedProfile>,
    /// Exact artifacts.
    pub artifacts: &'static [ArtifactProfile],
    /// Reads how many experts a model has, for sizing.
    pub experts: Option<FindExperts>,
    /// The most tokens of a sequence in training, where nobody says otherwise.
    pub training_length: fn(&ModelSource) -> Result<i64>,
    /// Texts around calls of tools and channels.
    pub sentinels: &'static [&'static str],
    /// Texts around media.
    pub media_tokens: MediaTokens,
}

impl FamilyProfile {
    /// The profile of a family whose graph was made for it and whose numbers were measured: the graph's
    /// name, which is its implementation's too, and the profile's id.
    pub const fn new(graph: &'static str, id: &'static str) -> Self {
        FamilyProfile {
            graph,
            id,
            implementation: graph,
            specialization: Specialization::Dedicated,
            fidelity: Fidelity { tier: FidelityTier::L3, oracle: None, claim: Claim::Measured },
            capabilities: &[],
            generation: GenerationDefaults::UNSAID,
            generated: None,
            artifacts: &[],
            experts: None,
            training_length: |_| Ok(4096),
            sentinels: &[],
            media_tokens: MediaTokens { image: &[], audio: &[], video: &[] },
        }
    }
}

/// The loop that runs a method.
pub fn loop_of(method: Method) -> &'static str {
    match method {
        Method::Autoregressive => "autoregressive",
        Method::Embedding => "embedding",
        Method::Denoising => "diffusion",
    }
}

/// How a profile's graph is run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Execution {
    /// Another implementation than the graph's own; for exact artifacts only.
    pub implementation: Option<String>,
    /// One of [`EXECUTION_COMPOSITIONS`].
    pub composition: Option<String>,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Its name.
    pub id: String,
    /// The graph's name.
    pub graph: &'static str,
    /// For how much the graph was made.
    pub specialization: Specialization,
    /// The container that weights come in.
    pub loader: &'static str,
    /// The loop that runs it.
    #[serde(rename = "loop")]
    pub run_loop: &'static str,
    /// What its numbers are held against.
    pub fidelity: Fidelity,
    /// What an engine needs for it; sorted.
    pub capabilities: Vec<&'static str>,
    /// Settings of requests.
    pub generation_defaults: GenerationDefaults,
    /// Whether chats can be rendered without a template of the checkpoint's.
    #[serde(rename = "chat_template_fallback", serialize_with = "is_there")]
    pub chat: ChatFormat,
    /// How it is run.
    pub execution: Execution,
}

fn is_there<S: serde::Serializer>(chat: &ChatFormat, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(chat.fallback.is_some())
}

impl Profile {
    /// A family's own profile.
    pub fn of_family(family: &Family) -> Profile {
        let said = &family.profile;
        let run_loop = loop_of(family.method);
        let mut profile = Profile {
            id: said.id.to_owned(),
            graph: said.graph,
            specialization: said.specialization,
            loader: "safetensors",
            run_loop,
            fidelity: said.fidelity,
            capabilities: Vec::new(),
            generation_defaults: said.generation,
            chat: family.chat,
            execution: Execution::default(),
        };
        profile.need(&[profile.loader, run_loop]);
        profile.need(said.capabilities);
        profile
    }

    /// The same graph, generated for some configurations.
    pub fn generated(family: &Family, generated: &GeneratedProfile) -> Profile {
        let mut profile = Profile::of_family(family);
        profile.id = generated.id.to_owned();
        profile.specialization = Specialization::Generated;
        profile.need(&["generated-graph"]);
        profile
    }

    /// The same graph for one artifact.
    pub fn artifact(family: &Family, artifact: &ArtifactProfile) -> Profile {
        let mut profile = Profile::of_family(family);
        profile.id = artifact.id.to_owned();
        profile.specialization = Specialization::Artifact;
        profile.fidelity = artifact.fidelity.unwrap_or(profile.fidelity);
        profile.need(artifact.capabilities);
        profile.execution = Execution {
            implementation: artifact.implementation.map(str::to_owned),
            composition: artifact.composition.map(str::to_owned),
        };
        profile
    }

    /// The id of the implementation that runs it: the one that it names, else its graph's, which is
    /// another one for generated graphs.
    pub fn implementation_id(&self) -> String {
        match (&self.execution.implementation, self.specialization) {
            (Some(id), _) => id.clone(),
            (None, Specialization::Generated) => format!("{}-generated", self.graph),
            (None, _) => self.graph.to_owned(),
        }
    }

    fn need(&mut self, more: &[&'static str]) {
        self.capabilities.extend(more);
        self.capabilities.sort_unstable();
        self.capabilities.dedup();
    }
}

#[cfg(test)]
mod tests;
