//! What layers remember: storages, their composition, and the reads they own.
//!
//! A graph declares a [`CacheLayer`] for each layer that remembers something. A
//! [`Composition`](crate::composition::Composition) turns the declarations into a [`CachePlan`],
//! which makes a fresh [`CacheSet`] for each request;
//! [`bind_graph_caches`](crate::generate::bind_graph_caches) does so at load. Columns are shared by
//! the rows of a set: column `t` of row `b` holds position `t - pad[b]`, so that every layer, mask
//! and rope offset follows from one [`Timeline`].
//!
//! What a layer remembers is declared: each document of specs/cache is one static of [`storages`].
//! Three things are kept apart, so that each is written once: where columns lie (one buffer, a
//! ring, pages, rows of their own), how they are written ([`Code`]), and what a query sees of
//! them ([`Sight`]).

mod append;
mod codec;
mod kernels;
mod layer;
mod layout;
mod mask;
mod paged;
pub mod persist;
mod plan;
mod planes;
mod read;
mod ring;
mod rows;
mod rowwise;
mod set;
mod sight;
mod state;
#[rustfmt::skip]
pub mod storages;
mod timeline;
mod token_reads;
mod token_rows;
mod tokens;

pub use codec::{Code, Codes};
pub(crate) use kernels::lowest;
pub use layer::{CacheLayer, Param, Slot};
pub use layout::{
    Choice, Coding, Growth, MaxKv, Paged, PagingKind, ParamDefault, ParamKind, ParamLayout,
    Reading, SchemeKind, StateLayout, StorageLayout,
};
pub use mask::{Mask, MaskPool};
pub use persist::{DEFAULT_CODECS, Identity, LATENT_CODECS, PersistError, StateCodecs};
pub use plan::{CachePlan, LayerSize, PlanOptions};
pub use read::{Read, Scores, Stored};
pub use set::{CacheSet, LayerCache};
pub use sight::{Condition, Sight, Term};
pub use state::{Replay, StateCache, StatePart};
pub use timeline::{Offset, Timeline};
pub use tokens::{Span, TokenCache};

#[cfg(test)]
mod tests;
