//! What a model folder holds, without reading its weights.
//!
//! * [`config`]: `config.json`, with typed and audited access, rope and quantisation dialects;
//! * [`tensors`]: the headers of safetensors files, single or in shards, and mapped bytes;
//! * [`map`]: the weight map, from the names of a checkpoint to the names of a graph;
//! * [`quant`]: how each module is stored;
//! * [`scalar`]: arithmetic of expressions over a config.
//!
//! The runtime loads weights with it and `specc check --model` reads headers with it, so both
//! decide alike. Everything in a folder is untrusted: sizes and names are checked, and errors
//! name the file, the place, what was expected and what was found.

pub mod config;
pub mod map;
mod problems;
pub mod quant;
pub mod scalar;
pub mod tensors;

pub use problems::{Problems, nearest};
