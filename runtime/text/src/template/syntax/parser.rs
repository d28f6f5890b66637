//! From tokens to the tree: the state of the parser and what all of it uses.

use super::lexer::{Token, Tokens, normalise, tokenize};
use super::tree::Statement;
use super::{Result, SyntaxError};

/// How deep expressions and statements may nest.
const MAX_DEPTH: usize = 50;

/// How many operators, filters or subscripts may follow one another.
pub(super) const MAX_CHAIN: usize = 500;

/// Where a `break` would have to get out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enclosing {
    Loop,
    Scope,
    Macro,
}

pub(super) struct Parser {
    tokens: Tokens,
    at: usize,
    depth: usize,
    pub enclosing: Vec<Enclosing>,
}

/// Parses a template's text.
pub(super) fn parse(source: &str) -> Result<Vec<Statement>> {
    let tokens = tokenize(&normalise(source))?;
    let mut parser = Parser { tokens, at: 0, depth: 0, enclosing: Vec::new() };
    let (body, _) = parser.body(&[])?;
    Ok(body)
}

impl Parser {
    pub fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::Eof, |(token, _)| token)
    }

    pub fn peek_next(&self) -> &Token {
        self.tokens.get(self.at + 1).map_or(&Token::Eof, |(token, _)| token)
    }

    pub fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    pub fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(SyntaxError::new(self.line(), message))
    }

    pub fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Token::Op(found) if *found == op)
    }

    pub fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if found == name)
    }

    pub fn skip_op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        self.at += usize::from(found);
        found
    }

    pub fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    pub fn expect_op(&mut self, op: &str) -> Result<()> {
        if self.skip_op(op) { Ok(()) } else { self.expected(op) }
    }

    pub fn expect_name(&mut self) -> Result<String> {
        match self.peek() {
            Token::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.expected("name"),
        }
    }

    pub fn expect(&mut self, token: &Token) -> Result<()> {
        if self.peek() == token {
            self.at += 1;
            Ok(())
        } else {
            self.expected(&token.describe())
        }
    }

    pub fn expected<T>(&self, what: &str) -> Result<T> {
        self.fail(format!("expected token '{what}', got '{}'", self.peek().describe()))
    }

    /// Puts the last token back.
    pub fn step_back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    /// Runs a part of the parser one level deeper.
    pub fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Counts a link of a chain of operators, filters or subscripts.
    pub fn link(&self, links: &mut usize) -> Result<()> {
        *links += 1;
        if *links > MAX_CHAIN {
            return self.fail(format!("more than {MAX_CHAIN} operators in a row"));
        }
        Ok(())
    }

    /// Runs a part of the parser inside a construct.
    pub fn within<T>(
        &mut self,
        enclosing: Enclosing,
        part: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.enclosing.push(enclosing);
        let result = part(self);
        self.enclosing.pop();
        result
    }
}
