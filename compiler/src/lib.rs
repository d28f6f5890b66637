//! Compiles model families, written as TOML manifests and graph files, into Rust.
//!
//! Texts go into [`source::Sources`], findings come back as [`diag::Diagnostic`].

pub mod diag;
pub mod manifest;
pub mod source;
pub mod syntax;
pub mod ir;
pub mod lower;
pub mod shapes;
