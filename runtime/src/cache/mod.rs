//! What layers remember: storages, their composition, and the reads they own.
//!
//! A graph declares a [`CacheLayer`] for each layer that remembers something. A [`Composition`]
//! turns the declarations into a [`CachePlan`], which makes a fresh [`CacheSet`] for each request.
//! Columns are shared by the rows of a set: column `t` of row `b` holds position `t - pad[b]`, so
//! that every layer, mask and rope offset follows from one [`Timeline`].

mod append;
mod codec;
mod layer;
mod mask;
mod plan;
mod planes;
mod read;
mod rows;
mod rule;
mod set;
mod state;
mod timeline;
mod tokens;
mod window;

pub use layer::{CacheLayer, Param, Slot};
pub use mask::{Mask, MaskPool};
pub use plan::CachePlan;
pub(crate) use read::lowest;
pub use read::{Read, Scores};
pub use rule::Rule;
pub use set::{CacheSet, LayerCache};
pub use state::{Replay, StateCache, StatePart};
pub use timeline::{Offset, Timeline};
pub use tokens::TokenCache;
