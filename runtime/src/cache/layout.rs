//! What a storage declares, and the storages that are built in.

use super::layer::CacheLayer;
use super::rule::Rule;
use crate::Result;
use crate::composition::SchemeKind;

/// A storage: what a layer keeps and how it grows. One of specs/cache, compiled.
#[derive(Debug, Clone, Copy)]
pub struct StorageLayout {
    /// Its name in manifests.
    pub name: &'static str,
    /// Its signature when it is plain, such as `kv:rotating-plain`.
    pub signature: &'static str,
    /// How it grows.
    pub growth: Growth,
    /// The arrays it keeps of each token, in the order in which mixers give them; trailing ones may
    /// be absent.
    pub states: &'static [StateLayout],
    /// Its rows of the composition table: how it is kept under a kind of scheme, and with paging.
    pub compose: fn(SchemeKind, Pages) -> Choice,
}

/// An array that is kept of each token.
#[derive(Debug, Clone, Copy)]
pub struct StateLayout {
    /// Its name.
    pub name: &'static str,
    /// The axis of tokens.
    pub axis: usize,
    /// Whether schemes quantise it.
    pub quantised: bool,
}

/// How a storage grows.
#[derive(Debug, Clone, Copy)]
pub enum Growth {
    /// All tokens, in a buffer that grows by whole steps.
    Append {
        /// Columns of a step.
        step: i32,
    },
    /// Tokens as long as some query sees them.
    Window {
        /// Columns by which the buffer grows until it holds `most`.
        step: i32,
        /// What queries see.
        visible: fn(&CacheLayer) -> Result<Rule>,
        /// Columns that a row needs at most.
        most: fn(&CacheLayer) -> Result<i32>,
    },
    /// States that do not grow.
    States,
    /// Nothing.
    Nothing,
}

/// Whether pages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Pages {
    No,
    Yes,
}

/// How a storage is kept under a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Written so, in pages or not.
    Store(Coding, Pages),
    /// Not at all, for this reason.
    Refuse(&'static str),
}

/// How arrays that schemes quantise are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As they come.
    Plain,
    /// By the scheme's affine groups.
    Affine,
    /// By the turbo codec.
    Turbo,
}

const KEYS_VALUES: &[StateLayout] = &[
    StateLayout { name: "keys", axis: 2, quantised: true },
    StateLayout { name: "values", axis: 2, quantised: true },
];

/// The built-in storages.
pub const STORAGES: &[StorageLayout] = &[
    StorageLayout {
        name: "full",
        signature: "kv:plain",
        growth: Growth::Append { step: 256 },
        states: KEYS_VALUES,
        compose: |scheme, pages| match scheme {
            SchemeKind::Bf16 => Choice::Store(Coding::Plain, pages),
            SchemeKind::Affine => Choice::Store(Coding::Affine, pages),
            SchemeKind::Turbo => Choice::Store(Coding::Turbo, pages),
        },
    },
    StorageLayout {
        name: "sliding",
        signature: "kv:rotating-plain",
        growth: Growth::Window {
            step: 256,
            visible: |layer| Ok(Rule::Window(layer.length("window")?)),
            most: |layer| layer.length("window"),
        },
        states: KEYS_VALUES,
        compose: unpaged,
    },
    StorageLayout {
        name: "chunked",
        signature: "kv:chunked-plain",
        growth: Growth::Window {
            step: 256,
            visible: |layer| Ok(Rule::Chunk(layer.length("chunk")?)),
            most: |layer| layer.length("chunk"),
        },
        states: KEYS_VALUES,
        compose: unpaged,
    },
    StorageLayout {
        name: "latent",
        signature: "kv:mla:target",
        growth: Growth::Append { step: 256 },
        states: &[
            StateLayout { name: "latents", axis: 1, quantised: true },
            StateLayout { name: "rope_keys", axis: 1, quantised: false },
            StateLayout { name: "index_keys", axis: 1, quantised: false },
        ],
        compose: |scheme, pages| match scheme {
            SchemeKind::Bf16 | SchemeKind::Turbo => Choice::Store(Coding::Plain, pages),
            SchemeKind::Affine => Choice::Store(Coding::Affine, pages),
        },
    },
    StorageLayout {
        name: "recurrent",
        signature: "ssm",
        growth: Growth::States,
        states: &[],
        compose: |_, _| Choice::Store(Coding::Plain, Pages::No),
    },
    StorageLayout {
        name: "none",
        signature: "none",
        growth: Growth::Nothing,
        states: &[],
        compose: |_, _| Choice::Store(Coding::Plain, Pages::No),
    },
];

/// Windows stay in one buffer, and plain under the turbo codec.
fn unpaged(scheme: SchemeKind, _: Pages) -> Choice {
    match scheme {
        SchemeKind::Bf16 | SchemeKind::Turbo => Choice::Store(Coding::Plain, Pages::No),
        SchemeKind::Affine => Choice::Store(Coding::Affine, Pages::No),
    }
}
