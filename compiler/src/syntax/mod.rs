//! The graph language and the expressions of manifests: text to tree.

pub mod ast;
mod build;
mod errors;
mod exprs;
mod grammar;
mod parse;
pub mod print;
mod recover;
pub mod scan;
mod statements;
mod strings;
pub mod visit;

pub use parse::{parse_expr, parse_expr_at, parse_graph};
pub use strings::Positions;

#[cfg(test)]
mod tests;
