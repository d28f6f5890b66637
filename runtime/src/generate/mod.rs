//! From a model folder to text: [`Model`], its [`Session`]s, and [`Generation`], which gives a piece a token.

mod answer;
pub(crate) mod bind;
mod chat;
pub mod denoise;
mod embed;
mod generation;
mod logits;
mod model;
mod options;
mod planner;
mod session;
mod text;

pub use answer::Generation;
pub use bind::{BoundGraph, Workspace, bind_graph_caches, compose_graph_caches};
pub use chat::Chat;
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

use generation::SessionRef;
