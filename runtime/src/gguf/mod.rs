//! GGUF files: reading them, and turning one into a model folder.
//!
//! A GGUF file holds a whole model: hyper-parameters and tokenizer as metadata, weights in blocks.
//! [`import`] writes the folder that every other part of this crate reads: `config.json`,
//! `tokenizer.json`, `tokenizer_config.json` and `model.safetensors`. Block types whose values are
//! `scale · q + bias` keep their quantisation, bit for bit, as MLX's affine one with float32 scales;
//! all others become floats.
//!
//! What a family's tensors and keys are called in GGUF is data of the family: [`GgufMap`].
//! The format is that of the PyPI package `gguf` (versions 2 and 3, little endian).

mod blocks;
mod config;
mod error;
mod import;
mod lattice;
mod map;
mod names;
mod plan;
mod reader;
mod rope;
mod tokenizer;
mod write;

pub use blocks::BlockType;
pub use error::GgufError;
pub use import::{ImportReport, Progress, import, read_map};
pub use map::{GgufMap, GgufTensor, GgufValue};
pub use reader::{Gguf, Metadata, TensorInfo};

#[cfg(test)]
mod fixture;
