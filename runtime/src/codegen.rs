//! What generated code imports: `use specc_runtime::codegen::*;`.

mod layers;
mod pinned;
mod shown;
mod values;

pub use layers::*;
pub use pinned::PinnedConfig;
use shown::Shown;
pub use values::*;

pub use specc_checkpoint::config::{
    ConfigError, ConfigFile, Key, Presence, Reader as ConfigReader, RopeScaling,
};
pub use specc_checkpoint::map::{
    DropRule, Match, Pattern, Present, Reason, Rule, Step, Target, WeightMap,
};
pub use specc_checkpoint::scalar::*;

pub use serde_json;

pub use crate::cache::{self, CacheLayer, Slot};
pub use crate::capabilities::{
    GraphDeclaration, ORDINARY_VERIFICATION, PrefillDeclaration, SpeculationDeclaration,
};
pub use crate::family::{ChatFormat, Family, Pooling, TextVector, Tier};
pub use crate::generate::denoise::{CanvasSampler, DenoisingMethod, Stopping, Temperature};
pub use crate::gguf::{GgufMap, GgufTensor, GgufValue};
pub use crate::graph::{Autoregressive, Denoiser, Embedder, LoadedGraph, Method};
pub use crate::nn::{RopeConfig, RopeSource};
pub use crate::pass::Pass;
pub use crate::phase::Phase;
pub use crate::profile::{
    ArtifactProfile, Claim, ExpertCounts, FamilyProfile, Fidelity, FidelityTier, GeneratedProfile,
    GenerationDefaults, MediaTokens, Specialization,
};
pub use crate::weights::{Loader, ModelSource};
pub use crate::{Array, Error, Result, mix, nn, ops};

/// A condition on a configuration; `values` are those that it looks at, by name.
///
/// # Errors
/// [`Error::Check`] with `message` and the values when it does not hold.
pub fn need(holds: bool, message: &str, values: &[(&str, &dyn Shown)]) -> Result<()> {
    if holds {
        return Ok(());
    }
    let told = values.iter().map(|(name, value)| format!("{name} = {}", shown::cut(value.shown())));
    let told: Vec<String> = told.collect();
    Err(Error::Check(match told.as_slice() {
        [] => message.to_owned(),
        told => format!("{message} ({})", told.join(", ")),
    }))
}

/// A configuration's integer as the size of an axis.
///
/// # Errors
/// When it does not fit 32 bits.
pub fn size(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::Check(format!("{value} is no size of an axis")))
}
