//! From a model folder to text.
//!
//! ```no_run
//! # fn main() -> specc_runtime::Result<()> {
//! # let families: &[&'static specc_runtime::graph::Family] = &[];
//! use specc_runtime::generate::{Model, Options};
//!
//! let model = Model::load(families, "model-folder".as_ref(), Default::default())?;
//! let prompt = model.tokenizer()?.encode_prompt("The capital of France is")?;
//! for piece in model.generate(&prompt, Options { max_tokens: 20, ..Default::default() })? {
//!     print!("{}", piece?.text);
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
pub mod denoise;
mod embed;
mod generation;
mod logits;
mod model;
mod options;
mod planner;
mod session;
mod text;

pub use crate::profile::find_family;
pub use answer::Generation;
pub use denoise::{Denoising, DenoisingOptions, DenoisingSettings};
pub use embed::Embedded;
#[cfg(feature = "cli")]
pub(crate) use logits::append_lengths;
pub use model::Model;
pub use options::{FinishReason, Options, Piece, Stats};
pub use planner::{
    PrefillKind, PrefillState, PrefillStep, bounded_chunk, score_bytes, useful_snapshot,
};
pub use session::Session;

use generation::Held;
