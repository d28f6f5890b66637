//! From a model folder to the arrays of a graph, with an audit of every tensor.

mod evaluate;
mod fingerprint;
mod loader;
mod module;
mod source;
mod synthetic;

pub use loader::Loader;
pub use module::Weight;
pub use specc_checkpoint::config::QuantMode;
pub use specc_checkpoint::map::QuantParams;

pub use source::{LoadOptions, ModelSource};
pub use synthetic::Synthetic;
