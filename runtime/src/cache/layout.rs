//! What a storage declares: one document of specs/cache, compiled.

use super::layer::CacheLayer;
use super::sight::Sight;
use crate::Result;
pub use crate::composition::{PagingKind, SchemeKind};

/// A storage: what a layer keeps, how it grows, and how it is kept under a composition.
#[derive(Debug)]
pub struct StorageLayout {
    /// Its name in manifests.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub doc: &'static str,
    /// Its signature when it is plain, such as `kv:rotating-plain`.
    pub signature: &'static str,
    /// What a layer says beside the storage's name.
    pub params: &'static [ParamLayout],
    /// The arrays it keeps of each token, in the order in which mixers give them.
    pub states: &'static [StateLayout],
    /// How it grows.
    pub growth: Growth,
    /// What becomes of it when caches are cut down to a number of positions.
    pub max_kv: MaxKv,
    /// Whether it may be kept in pages.
    pub paged: Paged,
    /// Its rows of the composition table: how it is kept under a kind of scheme, and with paging.
    pub compose: fn(&CacheLayer, SchemeKind, PagingKind) -> Result<Choice>,
}

/// A parameter of a storage.
#[derive(Debug)]
pub struct ParamLayout {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What it takes.
    pub kind: ParamKind,
    /// Stands in when a layer says nothing.
    pub default: Option<ParamDefault>,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// A count or length from 1 on.
    Int,
    /// A switch.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// The value of a parameter that a layer leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is a value of the kind of its name")]
pub enum ParamDefault {
    Int(i64),
    Flag(bool),
    Word(&'static str),
}

/// An array that is kept of each token.
#[derive(Debug)]
pub struct StateLayout {
    /// Its name.
    pub name: &'static str,
    /// Its axes: `B` rows, `S` positions, and names of sizes; one name is one size.
    pub axes: &'static [&'static str],
    /// The axis of positions.
    pub axis: usize,
    /// Whether schemes write it their way.
    pub coded: bool,
    /// Whether some layers do without it; only the last ones may be.
    pub optional: bool,
    /// What its presence adds to the signature.
    pub signature: Option<&'static str>,
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
    Ring {
        /// Columns by which the buffer grows until it holds `limit`.
        step: i32,
        /// What queries see.
        sees: fn(&CacheLayer) -> Result<Sight>,
        /// Columns that a row needs at most.
        limit: fn(&CacheLayer) -> Result<i32>,
    },
    /// States that a pass replaces.
    Replace,
    /// Nothing.
    Nothing,
}

/// What becomes of a storage when caches are cut down to a number of positions.
#[derive(Debug, Clone, Copy)]
pub enum MaxKv {
    /// Nothing: it is bounded already.
    Unchanged,
    /// Another storage takes its place.
    Becomes {
        /// That storage.
        storage: &'static StorageLayout,
        /// Its parameter that is the number of positions.
        param: &'static str,
    },
    /// It is refused for this reason.
    Refuse(&'static str),
}

/// Whether a storage may be kept in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paged {
    /// Never: it is bounded already.
    Never,
    /// Where the graph declares it.
    Declared,
    /// Whatever the graph says.
    Always,
}

/// How a storage is kept under a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Written so.
    Store {
        /// How arrays that schemes apply to are written.
        coding: Coding,
        /// In pages.
        pages: bool,
        /// How it is read.
        read: Reading,
    },
    /// Not at all, for this reason; `{device}` stands for where MLX computes.
    Refuse(&'static str),
}

/// How arrays that schemes apply to are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As they come.
    Plain,
    /// By the scheme's affine groups.
    Affine,
    /// By the turbo codec.
    Turbo,
}

/// How a storage is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Not by positions.
    Nothing,
    /// Plain keys and values, by MLX's attention.
    Sdpa,
    /// The same, but several queries with the query heads of a key head as one.
    Folded,
    /// Affine groups, by the kernels that the scheme names.
    Scheme,
    /// Four bits in groups of 64 and heads of 256 by kernels of their own, else as [`Reading::Scheme`].
    Kv4,
    /// Turbo keys and values, decoded.
    Decoded,
    /// The same with values left rotated; the result is turned back.
    Rotated,
    /// By latent attention.
    Latent,
}

impl StorageLayout {
    /// The parameter of that name.
    pub fn param(&self, name: &str) -> Option<&'static ParamLayout> {
        let params: &'static [ParamLayout] = self.params;
        params.iter().find(|param| param.name == name)
    }

    /// States that every layer has.
    pub fn required(&self) -> usize {
        self.states.iter().filter(|state| !state.optional).count()
    }
}

// A storage is its document: compared by name, since functions have no equality to rely on.
impl PartialEq for StorageLayout {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.signature) == (other.name, other.signature)
    }
}
