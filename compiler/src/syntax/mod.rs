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

/// Words that start or join something, and thus name nothing; `true`, `false` and `none` are values.
pub const KEYWORDS: [&str; 12] =
    ["if", "else", "match", "for", "in", "use", "block", "graph", "extern", "and", "or", "not"];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests;
