//! What generated code imports: `use specc_runtime::codegen::*;`.

mod layers;
mod pinned;
mod values;

pub use layers::*;
pub use pinned::PinnedConfig;
pub use values::*;

pub use specc_checkpoint::config::{
    ConfigError, ConfigFile, Key, Presence, Reader as ConfigReader, RopeScaling,
};
pub use specc_checkpoint::map::{
    Asked, DropRule, Match, Pattern, Present, Rule, Step, Target, WeightMap,
};

pub use serde_json;

pub use crate::cache::{self, CacheLayer, Slot};
pub use crate::capabilities::{
    GraphDeclaration, ORDINARY_VERIFICATION, PrefillDeclaration, SpeculationDeclaration,
};
pub use crate::generate::denoise::{CanvasSampler, DenoisingMethod, Stopping, Temperature};
pub use crate::gguf::{GgufMap, GgufTensor, GgufValue};
pub use crate::graph::{
    Autoregressive, ChatFormat, Denoiser, Embedder, Family, LoadedGraph, Method, Pooling,
    TextVector, Tier,
};
pub use crate::nn::{RopeConfig, RopeSource};
pub use crate::pass::{Pass, Phase};
pub use crate::profile::{
    ArtifactProfile, Claim, ExpertCounts, FamilyProfile, Fidelity, FidelityTier, GeneratedProfile,
    GenerationDefaults, MediaTokens, Specialization,
};
pub use crate::weights::{Loader, ModelSource};
pub use crate::{Array, Error, Result, mix, nn, ops};

/// A condition on a configuration.
///
/// # Errors
/// [`Error::Check`] with `message` when it does not hold.
pub fn need(holds: bool, message: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Check(message.to_owned())) }
}

/// `a // b`, rounded down.
///
/// # Errors
/// When `b` is 0.
pub fn floor_div(a: i64, b: i64) -> Result<i64> {
    let quotient = a.checked_div_euclid(b).ok_or_else(|| undefined(a, "//", b))?;
    // Euclid rounds a negative divisor's quotient up.
    Ok(if b < 0 && a.rem_euclid(b) != 0 { quotient - 1 } else { quotient })
}

/// `a % b`, of the sign of `b`.
///
/// # Errors
/// When `b` is 0.
pub fn floor_mod(a: i64, b: i64) -> Result<i64> {
    let rest = a.checked_rem_euclid(b).ok_or_else(|| undefined(a, "%", b))?;
    Ok(if b < 0 && rest != 0 { rest + b } else { rest })
}

fn undefined(a: i64, operator: &str, b: i64) -> Error {
    Error::Check(format!("{a} {operator} {b} has no value"))
}

/// A configuration's integer as the size of an axis.
///
/// # Errors
/// When it does not fit 32 bits.
pub fn size(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::Check(format!("{value} is no size of an axis")))
}

/// The element `list[i]`.
///
/// # Errors
/// When there is none; `name` is the list's.
pub fn at<'a, T>(list: &'a [T], i: i64, name: &str) -> Result<&'a T> {
    usize::try_from(i)
        .ok()
        .and_then(|i| list.get(i))
        .ok_or_else(|| Error::Check(format!("{name}[{i}]: there are {} entries", list.len())))
}

/// `value` rounded to bfloat16.
pub fn bf16(value: f64) -> f64 {
    half::bf16::from_f64(value).to_f64()
}
