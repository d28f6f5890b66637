//! What is wrong with a profile.

use thiserror::Error;

/// Why a profile cannot be, or does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A profile without a name.
    #[error("profile id must not be empty")]
    EmptyId,
    /// Tier, oracle and claim do not go together.
    #[error(
        "profile {id}: fidelity must be l1 or l2 with an oracle and bit-exact, or l3 without an oracle and measured; found {found}"
    )]
    Fidelity {
        /// The profile.
        id: String,
        /// Its tier, oracle and claim.
        found: String,
    },
    /// It asks for a composition that nobody makes.
    #[error("profile {id}: unsupported execution composition {found:?}; expected {expected}")]
    Composition {
        /// The profile.
        id: String,
        /// What it asks for.
        found: String,
        /// What there is.
        expected: String,
    },
    /// It needs what no engine is known to do.
    #[error("profile {id}: undeclared capabilities: {}", capabilities.join(", "))]
    Capabilities {
        /// The profile.
        id: String,
        /// The unknown ones.
        capabilities: Vec<String>,
    },
    /// It names an implementation and is not of an exact artifact.
    #[error(
        "profile {id}: only a profile of an exact artifact names an implementation, found {implementation:?}"
    )]
    Implementation {
        /// The profile.
        id: String,
        /// What it names.
        implementation: String,
    },
    /// The model is an artifact that a profile pins, and not what the profile pins.
    #[error("profile {id} of {artifact}: {why}; refusing to fall back")]
    Artifact {
        /// The profile.
        id: String,
        /// The artifact.
        artifact: String,
        /// What differs.
        why: String,
    },
    /// Two graphs are registered under one id.
    #[error("graph implementation {id:?} is registered twice, by {first} and {second}")]
    DuplicateImplementation {
        /// The id.
        id: String,
        /// The family that came first.
        first: String,
        /// The other family.
        second: String,
    },
    /// A profile's implementation is not among the families.
    #[error(
        "graph implementation {id:?} is unavailable: profile {profile} needs it, and no family of this program provides it"
    )]
    UnavailableImplementation {
        /// The id.
        id: String,
        /// The profile.
        profile: String,
    },
    /// A profile's implementation does something else.
    #[error("graph implementation {id:?} is incompatible with profile {profile}: {why}")]
    IncompatibleImplementation {
        /// The id.
        id: String,
        /// The profile.
        profile: String,
        /// What differs.
        why: String,
    },
    /// The families of a program do not go together.
    #[error("families: {0}")]
    Families(String),
}
