//! Sequence mixers: the only operations that touch a layer's cache.
//!
//! Each takes the pass and the layer's slot first; which of its forms runs follows from the pass.

mod attend;
mod latent;
mod linear;
mod recurrent;
mod scan;
#[cfg(test)]
mod tests;

pub use attend::{attend, attend_all, attend_shared};
pub use latent::{IndexedLatentAttention, LatentAttention};
pub use linear::{decayed_sum, gated_linear, low_rank_recurrence, previous};
pub use recurrent::{CausalConv, gated_delta, selective_scan, ssd};
