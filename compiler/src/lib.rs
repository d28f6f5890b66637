//! Compiles model families, written as TOML manifests and graph files, into Rust.
//!
//! Texts go into [`source::Sources`], findings come back as [`diag::Diagnostic`].

pub mod build;
pub mod checks;
pub mod compile;
pub mod declare;
pub mod diag;
pub mod emit;
pub mod expr;
pub mod format;
pub mod ir;
pub mod library;
pub mod lower;
pub mod manifest;
pub mod measured;
pub mod model;
pub mod propose;
pub mod schema;
pub mod shapes;
pub mod show;
pub mod source;
pub mod specialise;
pub mod syntax;
pub mod weights;

pub use build::{Build, BuildError};
