//! Family manifests: what a TOML document says, with places, after `extends` is applied.

pub mod cache;
pub mod capabilities;
mod config;
mod family;
mod layers;
pub(crate) mod load;
pub mod merge;
mod method;
pub mod profile;
mod reader;
mod sections;
pub mod tree;
mod values;
mod weights;

pub(crate) use family::inherited;
pub use layers::ONLY_KIND;
pub(crate) use method::method_schema;
pub use method::{CanvasSampler, Denoising};
pub(crate) use sections::section_schema;

use crate::source::{FileId, Span, Spanned};
use crate::syntax::ast::{Expr, ExprKind};
use reader::words;

/// One family, inheritance already applied: each entry keeps the place where it was written.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The document itself (not its bases).
    pub file: FileId,
    /// `[family]`
    pub family: Family,
    /// `[dialect] roots`: where dotted config paths are tried, in order; `""` is the top level.
    pub roots: Vec<String>,
    /// `[config]`, in order of first appearance, base first.
    pub config: Vec<ConfigKey>,
    /// `[checks]`: conditions on the config with the text shown when they fail.
    pub checks: Vec<Check>,
    /// `[graph]`: values given to the parameters of blocks.
    pub graph: Vec<BlockSetting>,
    /// `[weights]`
    pub weights: Weights,
    /// `[layers]`
    pub layers: Layers,
    /// `[cache] paging`
    pub paging: bool,
    /// `[method]` of a family that denoises.
    pub denoising: Option<Denoising>,
    /// What `[capabilities]` declares of the graph.
    pub capabilities: capabilities::Capabilities,
    /// `[profile]`
    pub profile: profile::Profile,
    /// `[capabilities]`, `[profile]`, `[chat]`, `[gguf]`, `[embedding]`: kept as data for their readers.
    pub sections: Vec<Section>,
    /// The graph files that hold this family's blocks, the base's first: a later block of the same
    /// name replaces an earlier one.
    pub graphs: Vec<Spanned<String>>,
    /// The one config that it is for, where it is specialised.
    pub pinned: Option<Box<crate::specialise::Pinned>>,
}

/// A section kept as data.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its name, such as `chat`.
    pub name: Spanned<String>,
    /// Its contents.
    pub value: toml::Value,
    /// What in it is an expression over the config, by dotted path within the section.
    pub exprs: Vec<(String, Expr)>,
}

/// `[family]`
#[derive(Debug, Clone)]
pub struct Family {
    /// Unique name, also the Rust module's and the cargo feature's.
    pub name: Spanned<String>,
    /// Values of `model_type` it answers to.
    pub model_types: Vec<Spanned<String>>,
    /// The family it starts from.
    pub extends: Option<Spanned<String>>,
    /// Tried last, and without a label of its own.
    pub generic: bool,
    /// As shown to people.
    pub label: Option<String>,
    /// What the numbers are compared with.
    pub fidelity: Fidelity,
    /// How it is run.
    pub method: Spanned<Method>,
    /// A condition on the config beside the model type.
    pub accepts: Option<Expr>,
}

/// What a family's numbers are held against.
#[derive(Debug, Clone, PartialEq)]
pub struct Fidelity {
    /// How near it comes to the reference.
    pub tier: FidelityTier,
    /// The reference program; none for l3.
    pub oracle: Option<String>,
    /// What is said of the numbers.
    pub claim: Claim,
}

words! {
    /// How near a family comes to its reference.
    FidelityTier { L1 = "l1", L2 = "l2", L3 = "l3" }
}

words! {
    /// What is said of a family's numbers.
    Claim { BitExact = "bit-exact", Measured = "measured" }
}

/// How a family is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Next-token logits over a cache.
    Autoregressive,
    /// Hidden states of a whole text.
    Embedding,
    /// Blocks of tokens refined in steps.
    Denoising,
}

/// One `[config]` entry.
#[derive(Debug, Clone)]
pub struct ConfigKey {
    /// The name that expressions use.
    pub name: Spanned<String>,
    /// Its type.
    pub ty: ConfigType,
    /// May be absent or null without a default.
    pub nullable: bool,
    /// Dotted paths, first present wins; the name itself where the manifest gives none.
    pub from: Vec<String>,
    /// Stands in when absent or null.
    pub default: Option<Expr>,
    /// Computed, never read.
    pub value: Option<Expr>,
    /// For [`ConfigType::Rope`].
    pub rope: Option<RopeKey>,
    /// Read and knowingly not used.
    pub ignored: bool,
}

impl ConfigKey {
    /// Whether a config may say infinity: where the default does.
    pub fn infinite(&self) -> bool {
        let mut found = false;
        if let Some(default) = &self.default {
            crate::syntax::visit::each(default, &mut |part| {
                found |= matches!(part.kind, ExprKind::Float(value) if value.is_infinite());
            });
        }
        found
    }

    /// The expressions that its value may come from.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let rope = self.rope.as_ref();
        let parts = [
            self.default.as_ref(),
            self.value.as_ref(),
            rope.and_then(|rope| rope.theta.as_ref()),
            rope.and_then(|rope| rope.partial.as_ref()),
            rope.and_then(|rope| rope.max_positions.as_ref()),
            rope.and_then(|rope| rope.original.as_ref()),
        ];
        parts.into_iter().flatten()
    }
}

/// Extra words of a rope key.
#[derive(Debug, Clone, Default)]
pub struct RopeKey {
    /// The base when the config gives none.
    pub theta: Option<Expr>,
    /// The rotated share of a head when the config gives none.
    pub partial: Option<Expr>,
    /// The longest context, for variants that choose by it.
    pub max_positions: Option<Expr>,
    /// The context of training, for variants that scale from it.
    pub original: Option<Expr>,
    /// A rope type that stands whatever the config says.
    pub kind: Option<String>,
    /// Scaling entries of the config have no effect.
    pub ignore_scaling: bool,
}

/// Types of config keys.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the word a manifest uses")]
pub enum ConfigType {
    Int,
    Float,
    Bool,
    Str,
    /// One of these words.
    Enum(Vec<String>),
    Ints,
    Floats,
    Strs,
    Bools,
    Rope,
    Json,
}

/// `[checks]`
#[derive(Debug, Clone)]
pub struct Check {
    /// Must hold.
    pub condition: Expr,
    /// Shown when it does not.
    pub message: String,
}

/// `[graph] block = { param = value }`
#[derive(Debug, Clone)]
pub struct BlockSetting {
    /// The block.
    pub block: Spanned<String>,
    /// Its parameter.
    pub param: Spanned<String>,
    /// The value.
    pub value: Expr,
}

/// `[weights]`
#[derive(Debug, Clone, Default)]
pub struct Weights {
    /// What checkpoints put before names, and what replaces it.
    pub prefixes: Vec<(Spanned<String>, String)>,
    /// Tensors that are not wanted.
    pub drops: Vec<WeightDrop>,
    /// In order.
    pub maps: Vec<WeightMap>,
}

/// A tensor that is not wanted.
#[derive(Debug, Clone)]
pub struct WeightDrop {
    /// Names.
    pub pattern: Spanned<String>,
    /// Only where this holds.
    pub when: Option<Expr>,
}

/// One `[[weights.map]]`.
#[derive(Debug, Clone)]
pub struct WeightMap {
    /// Sources.
    pub from: Vec<Spanned<String>>,
    /// Targets.
    pub to: Vec<Spanned<String>>,
    /// Steps in order: calls such as `stack(e)` or `reshape([a, -1])`.
    pub steps: Vec<Expr>,
    /// Only where this holds.
    pub when: Option<Expr>,
    /// The targets are stored quantised: bits, group size, mode.
    pub quantised: Option<(i64, i64, String)>,
    /// The whole entry.
    pub span: Span,
}

impl WeightMap {
    /// As the messages of the planner show it: `a + b -> c, d`.
    pub(crate) fn shown(&self) -> String {
        let list = |names: &[Spanned<String>], by: &str| {
            names.iter().map(|name| name.node.as_str()).collect::<Vec<_>>().join(by)
        };
        format!("{} -> {}", list(&self.from, " + "), list(&self.to, ", "))
    }
}

/// `[layers]`
#[derive(Debug, Clone)]
pub struct Layers {
    /// How many.
    pub count: Expr,
    /// Each layer's kind, with `i` its index; none when there is one kind.
    pub kind: Option<LayerKindRule>,
    /// Whether a layer owns its cache; the others read the last owner of their kind.
    pub donor: Option<Expr>,
    /// The kinds, in order of appearance.
    pub kinds: Vec<LayerKind>,
}

/// How a layer's kind is found.
#[derive(Debug, Clone)]
pub enum LayerKindRule {
    /// A word computed from the config and `i`.
    Expr(Expr),
    /// A pattern that repeats.
    Pattern(Vec<Spanned<String>>),
}

/// `[layers.KIND]`
#[derive(Debug, Clone)]
pub struct LayerKind {
    /// The word that `kind` yields.
    pub name: Spanned<String>,
    /// The storage, `none` for a layer without a cache.
    pub storage: Spanned<String>,
    /// Parameters of the storage.
    pub params: Vec<(Spanned<String>, Expr)>,
    /// Values that blocks read as `layer.NAME`, defaults of `[layers]` filled in.
    pub values: Vec<(Spanned<String>, Expr)>,
}
