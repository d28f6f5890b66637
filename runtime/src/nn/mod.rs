//! Modules: operations with weights or tables, loaded once.
//!
//! `load` takes the loader, the module's path where it has one, and its sizes; `forward` the pass
//! where positions matter, and the tensors.

mod embedding;
mod experts;
mod linear;
mod norm;
mod rope;

pub use embedding::{Embedding, MeanEmbedding, Unembedding};
pub use experts::{ExpertLinear, MultiLinear};
pub use linear::Linear;
pub use norm::{LayerNorm, RmsNorm};
pub use rope::{BasedRope, Rope, RopeConfig, RopeSource};
