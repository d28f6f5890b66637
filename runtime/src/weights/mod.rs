//! From a model folder to the arrays of a graph, with an audit of every tensor.

mod evaluate;
mod loader;
mod module;
mod source;

pub use loader::Loader;
pub use module::Weight;
pub use source::{LoadOptions, ModelSource};
