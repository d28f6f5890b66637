//! From logits to the next token, on the device.
//!
//! [`Penalties`] change raw logits by what was said before; [`Sampling`] chooses. All arrays are
//! [B, V] with a row for each sequence; nothing is read by the host.

mod chain;
mod penalties;

pub use chain::{Sampler, Sampling, log_probabilities};
pub use penalties::{History, Penalties};

use crate::{Error, Result};

/// A setting that has to lie between two bounds.
fn bounded(what: &str, value: f32, low: f32, high: f32) -> Result<()> {
    if value >= low && value <= high {
        return Ok(());
    }
    let expected = match high {
        f32::MAX => format!("a number of at least {low}"),
        _ => format!("a number from {low} to {high}"),
    };
    Err(Error::input(what, expected, value.to_string()))
}

#[cfg(test)]
mod tests;
