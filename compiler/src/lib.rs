//! Compiles model families, written as TOML manifests and graph files, into Rust.
//!
//! Texts go into [`source::Sources`], findings come back as [`diag::Diagnostic`].

pub mod diag;
pub mod show;
pub mod schema;
pub mod format;
pub mod checks;
pub mod expr;
pub mod library;
pub mod manifest;
pub mod model;
pub mod propose;
pub mod source;
pub mod syntax;
pub mod weights;
pub mod ir;
pub mod lower;
pub mod shapes;
pub mod emit;
pub mod compile;
pub mod build;

pub use build::{Build, BuildError};
