//! Runs model families that `specc` generated, on MLX.
//!
//! ```no_run
//! # fn main() -> specc_runtime::Result<()> {
//! # let families: &[&'static specc_runtime::Family] = &[];
//! use specc_runtime::{LoadOptions, Model, Options};
//!
//! let model = Model::load(families, "model-folder".as_ref(), LoadOptions::default())?;
//! let prompt = model.tokenizer()?.encode_prompt("The capital of France is")?;
//! for piece in model.generate(&prompt, Options { max_tokens: 20, ..Options::default() })? {
//!     print!("{}", piece?.text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! * [`generate`]: a loaded model, its sessions, the loops over tokens and canvases; [`sample`]: draws from logits;
//! * [`composition`], [`family`], [`capabilities`], [`graph`], [`profile`]: what is decided at load, and what a
//!   graph can do;
//! * [`weights`]: from a model folder to arrays, with an audit; [`gguf`]: model folders from GGUF files;
//! * [`cache`]: what layers remember; [`pass`], [`phase`]: one forward, and what it is for; [`mix`]: the operations that read caches;
//! * [`mod@array`], [`ops`], [`nn`], [`backend`]: arrays, the primitives of graphs, the modules with weights, and what
//!   differs between devices;
//! * [`codegen`]: what generated code imports; `cli` (feature): the commands of `specc-run`.
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
pub mod family;
pub mod generate;
pub mod gguf;
pub mod graph;
pub mod mix;
pub mod nn;
pub mod ops;
pub mod pass;
pub mod phase;
pub mod profile;
pub mod sample;
#[cfg(test)]
mod testing;
pub mod weights;

pub use array::{Array, Dtype};
pub use error::{Error, OtherConfig, Result};
pub use family::Family;
pub use generate::{Model, Options};
pub use specc_text as text;
pub use weights::LoadOptions;

/// Keeps tests that compute from running at once: one thread owns MLX.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static MLX: std::sync::Mutex<()> = std::sync::Mutex::new(());
    MLX.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
