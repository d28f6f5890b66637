//! Formatting of specs: blanks and line ends change, nothing else does.

mod graph;
mod manifest;

pub use graph::graph;
pub use manifest::manifest;
