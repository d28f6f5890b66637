//! Weight paths with loop indices: `model.layers.{i}`, `blocks.{i // 2}.mlp`.

use crate::source::Sources;
use crate::syntax::ast::Expr;

/// A part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// As it stands.
    Text(&'a str),
    /// An index, or arithmetic over indices, without its braces.
    Index(&'a str),
}

/// The parts of a path in their order.
pub fn parts(path: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((index, tail)) = after.split_once('}') else { break };
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(Part::Index(index));
        rest = tail;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

/// The arithmetic that an index part writes out; none for an index alone.
pub fn computed(index: &str) -> Option<Expr> {
    if index.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    // Written by the lowering from an expression, so that it parses.
    let file = Sources::default().add("path", index);
    crate::syntax::parse_expr(file, 0, index, &mut Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_apart() {
        let path = "a.{i}.b.{i // 2}";
        let wanted = [Part::Text("a."), Part::Index("i"), Part::Text(".b."), Part::Index("i // 2")];
        assert_eq!(parts(path), wanted);
        assert_eq!(computed("i"), None);
        assert!(computed("i // 2").is_some());
    }
}
