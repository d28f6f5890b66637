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
//! What a program needs has its name here, at the root. The modules, for programs first:
//!
//! * [`generate`]: a loaded model, its sessions, the loops over tokens and canvases; [`sample`]: draws from logits;
//! * [`composition`], [`family`], [`profile`]: what is decided at load; [`text`]: tokenizers and chat templates;
//! * [`weights`]: from a model folder to arrays, with an audit; [`gguf`]: model folders from GGUF files;
//! * `cli` (feature): the commands of `specc-run`.
//!
//! For generated code and hand-written graphs:
//!
//! * [`codegen`]: what generated code imports; [`graph`], [`capabilities`]: what a graph is and can do;
//! * [`pass`], [`phase`]: one forward, and what it is for; [`cache`]: what layers remember; [`mix`]: the operations
//!   that read caches;
//! * [`mod@array`], [`ops`], [`nn`], [`backend`]: arrays, the primitives of graphs, the modules with weights, and what
//!   differs between devices.
//!
//! One thread owns MLX: load a model and run it on the same thread.

// For programs.
#[cfg(feature = "cli")]
pub mod cli;
pub mod composition;
mod error;
pub mod family;
pub mod generate;
pub mod gguf;
pub mod profile;
pub mod sample;
pub mod weights;

// For generated code and hand-written graphs.
pub mod array;
pub mod backend;
pub mod cache;
pub mod capabilities;
pub mod codegen;
pub mod graph;
pub mod mix;
pub mod nn;
pub mod ops;
pub mod pass;
pub mod phase;

#[cfg(test)]
mod testing;

pub use array::{Array, Dtype};
pub use composition::{CompositionRequest, KvRequest};
pub use error::{Error, OtherConfig, Result};
pub use family::Family;
pub use generate::{FinishReason, Generation, Model, Options, Piece, Session};
pub use sample::{Penalties, Sampling};
pub use specc_text as text;
pub use weights::LoadOptions;

/// Keeps tests that compute from running at once: one thread owns MLX.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static MLX: std::sync::Mutex<()> = std::sync::Mutex::new(());
    MLX.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
