//! The graph language and the expressions of manifests: text to tree.

pub mod ast;
pub mod print;
pub mod visit;
mod build;
mod errors;
mod exprs;
mod grammar;
mod parse;
mod recover;
pub mod scan;
mod statements;
mod strings;

pub use parse::{parse_expr, parse_expr_at, parse_graph};
pub use strings::Positions;

#[cfg(test)]
mod tests;
