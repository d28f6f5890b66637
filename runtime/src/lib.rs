//! Runs model families that `specc` generated, on MLX.
//!
//! * [`mod@array`], [`ops`], [`nn`]: arrays, the primitives of graphs, and the modules with weights;
//! * [`weights`]: from a model folder to arrays, with an audit;
//! * [`cache`]: what layers remember; [`pass`]: one forward; [`mix`]: the operations that read caches;
//! * [`composition`], [`capabilities`], [`graph`], [`profile`]: what is decided at load, and what a graph can do;
//! * [`codegen`]: what generated code imports.
//!
//! One thread owns MLX: load a model and run it on the same thread.

pub mod array;
pub mod backend;
pub mod cache;
pub mod capabilities;
#[cfg(feature = "cli")]
pub mod cli;
pub mod codegen;
pub mod composition;
mod error;
pub mod generate;
pub mod gguf;
pub mod graph;
pub mod mix;
pub mod nn;
pub mod ops;
pub mod pass;
pub mod profile;
pub mod sample;
#[cfg(test)]
mod testing;
pub mod weights;

pub use array::{Array, Dtype};
pub use error::{Error, OtherConfig, Result};
pub use specc_text as text;

/// Keeps tests that compute from running at once: one thread owns MLX.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static MLX: std::sync::Mutex<()> = std::sync::Mutex::new(());
    MLX.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
