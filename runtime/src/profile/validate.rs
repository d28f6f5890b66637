//! What a profile may ask of this engine.

use std::collections::BTreeSet;

use super::{Claim, Fidelity, FidelityTier, Profile, ProfileError, Specialization};
use crate::family::Family;

/// What the engine can do whatever families it has.
pub const BASE_CAPABILITIES: [&str; 6] = [
    "autoregressive",
    "diffusion",
    "embedding",
    "generated-graph",
    "mixed-precision-kv",
    "safetensors",
];

/// Compositions that a profile may ask for: what the loader resolves from the caller's request.
pub const EXECUTION_COMPOSITIONS: [&str; 1] = ["default"];

/// What the engine can do with these families: [`BASE_CAPABILITIES`] and theirs.
pub fn engine_capabilities(families: &[&'static Family]) -> BTreeSet<&'static str> {
    let own = families.iter().flat_map(|family| {
        let artifacts = family.profile.artifacts.iter().flat_map(|a| a.capabilities);
        family.profile.capabilities.iter().chain(artifacts).copied()
    });
    BASE_CAPABILITIES.into_iter().chain(own).collect()
}

/// Checks a profile by itself and against what the engine can do.
///
/// # Errors
/// The first of: an empty id, a fidelity that is no contract, a composition that nobody makes,
/// capabilities that nobody has, an implementation named by a profile that is of no exact artifact.
pub fn validate_profile(profile: &Profile, engine: &BTreeSet<&str>) -> Result<(), ProfileError> {
    let id = || profile.id.clone();
    if profile.id.is_empty() {
        return Err(ProfileError::EmptyId);
    }
    if !is_contract(&profile.fidelity) {
        let Fidelity { tier, oracle, claim } = profile.fidelity;
        let found = format!(
            "{} with {} and {}",
            match tier {
                FidelityTier::L1 => "l1",
                FidelityTier::L2 => "l2",
                FidelityTier::L3 => "l3",
            },
            oracle.unwrap_or("no oracle"),
            match claim {
                Claim::BitExact => "bit-exact",
                Claim::Measured => "measured",
            },
        );
        return Err(ProfileError::Fidelity { id: id(), found });
    }
    if let Some(found) = &profile.execution.composition
        && !EXECUTION_COMPOSITIONS.contains(&found.as_str())
    {
        let (found, expected) = (found.clone(), EXECUTION_COMPOSITIONS.join(", "));
        return Err(ProfileError::Composition { id: id(), found, expected });
    }
    let unknown = profile.capabilities.iter().filter(|word| !engine.contains(*word));
    let capabilities: Vec<String> = unknown.map(|word| (*word).to_owned()).collect();
    if !capabilities.is_empty() {
        return Err(ProfileError::Capabilities { id: id(), capabilities });
    }
    match &profile.execution.implementation {
        Some(implementation) if profile.specialization != Specialization::Artifact => {
            Err(ProfileError::Implementation { id: id(), implementation: implementation.clone() })
        }
        _ => Ok(()),
    }
}

fn is_contract(fidelity: &Fidelity) -> bool {
    match fidelity.tier {
        FidelityTier::L1 | FidelityTier::L2 => {
            fidelity.oracle.is_some() && fidelity.claim == Claim::BitExact
        }
        FidelityTier::L3 => fidelity.oracle.is_none() && fidelity.claim == Claim::Measured,
    }
}
