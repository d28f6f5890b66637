//! The grammar of graph.pest as a parser.

#[allow(missing_docs, reason = "the derive writes one variant a rule, named after it")]
mod derived {
    /// Rules of graph.pest.
    #[derive(pest_derive::Parser)]
    #[grammar = "syntax/graph.pest"]
    pub struct Grammar;
}

pub use derived::{Grammar, Rule};
