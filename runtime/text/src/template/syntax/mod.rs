//! Jinja2's syntax, as Jinja2 reads it: the token stream, the tree, and its rewriting into the
//! subset that minijinja runs alike.
//!
//! minijinja differs from Jinja2 where Python's values show: `+` and `%` on strings, slices,
//! printing, truth, attributes against items, who is iterable. So the tree is written out again
//! with every such operation as a filter of our own (see [`super::runtime`]), while control flow,
//! scopes, macros and captures stay minijinja's. Places are carried along: an error names the line
//! of the model's own template.

mod emit;
mod expr;
mod lexer;
mod parser;
mod statements;
mod tree;

pub(super) use emit::{Emitted, Known};
pub(super) use lexer::normalise;

/// Parses a template as Jinja2 and writes it out for minijinja.
pub(super) fn rewrite(source: &str, known: &Known) -> Result<Emitted> {
    emit::emit(&parser::parse(source)?, known)
}

/// A refusal to parse: the line, from 1, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub line: usize,
    pub message: String,
}

impl SyntaxError {
    pub fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

/// What Python's `str.isspace` and the `\s` of its regular expressions mean.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
