//! Behaviour of the checkpoint crate, pinned as text.
// The helpers of tests may fail as tests do.
#![allow(clippy::unwrap_used)]

mod audit;
mod config;
mod fingerprint;
mod folder;
mod header;
mod large;
mod map;
mod pattern;
mod properties;
mod quant;
mod quantised_map;
mod rope;
mod support;
