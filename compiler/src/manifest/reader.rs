//! Typed reading of a table: each mistake is reported, unknown keys included.

use std::collections::HashSet;

use super::tree::{Key, Node, NodeKind, Table};
use crate::diag::{Code, Diagnostic, one_of};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Expr, ExprKind, UnaryOp};
use crate::syntax::parse_expr_at;

/// An enum whose values are words of a document.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($value:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each value is the word it stands for")]
        pub enum $name {
            $($value),+
        }

        impl $name {
            /// The words of documents and what they stand for.
            pub const WORDS: &[(&str, Self)] = &[$(($word, Self::$value)),+];

            /// Its word in documents.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word),+
                }
            }

            /// Its name in Rust, here and in the runtime.
            pub fn rust(self) -> &'static str {
                match self {
                    $(Self::$value => stringify!($value)),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
pub(super) use words;

/// A table being read: what is asked for is known, the rest is reported by [`Fields::finish`].
pub(super) struct Fields<'a> {
    table: &'a Table,
    /// Of the table itself.
    pub span: Span,
    /// As shown: `[family]`.
    pub place: String,
    asked: HashSet<&'static str>,
}

impl<'a> Fields<'a> {
    pub fn new(table: &'a Table, span: Span, place: impl Into<String>) -> Self {
        Self { table, span, place: place.into(), asked: HashSet::new() }
    }

    /// The key and value, where present.
    pub fn entry(&mut self, name: &'static str) -> Option<&'a (Key, Node)> {
        self.asked.insert(name);
        self.table.entry(name)
    }

    pub fn get(&mut self, name: &'static str) -> Option<&'a Node> {
        self.entry(name).map(|(_, node)| node)
    }

    pub fn text(
        &mut self,
        name: &'static str,
        diags: &mut Vec<Diagnostic>,
    ) -> Option<Spanned<String>> {
        let (key, node) = self.entry(name)?;
        text(node, key, diags)
    }

    pub fn bool(&mut self, name: &'static str, diags: &mut Vec<Diagnostic>) -> Option<bool> {
        let (key, node) = self.entry(name)?;
        match node.kind {
            NodeKind::Bool(value) => Some(value),
            _ => wrong(node, key, "`true` or `false`", diags),
        }
    }

    pub fn int(&mut self, name: &'static str, diags: &mut Vec<Diagnostic>) -> Option<i64> {
        let (key, node) = self.entry(name)?;
        match node.kind {
            NodeKind::Int(value) => Some(value),
            _ => wrong(node, key, "an integer", diags),
        }
    }

    /// A list of texts; one text may stand alone.
    pub fn texts(
        &mut self,
        name: &'static str,
        diags: &mut Vec<Diagnostic>,
    ) -> Option<Vec<Spanned<String>>> {
        let (key, node) = self.entry(name)?;
        Some(texts(node, key, diags))
    }

    /// A table under this one.
    pub fn table(
        &mut self,
        name: &'static str,
        diags: &mut Vec<Diagnostic>,
    ) -> Option<(&'a Table, Span)> {
        let (key, node) = self.entry(name)?;
        match &node.kind {
            NodeKind::Table(table) => Some((table, node.span)),
            _ => wrong(node, key, "a table", diags),
        }
    }

    /// An expression: text, or a number or switch as it stands.
    pub fn expr(&mut self, name: &'static str, diags: &mut Vec<Diagnostic>) -> Option<Expr> {
        let (key, node) = self.entry(name)?;
        expr(node, key, diags)
    }

    pub fn missing(&self, name: &str, example: &str, diags: &mut Vec<Diagnostic>) {
        diags.push(
            Diagnostic::error(
                Code::MissingKey,
                self.span,
                format!("{} lacks `{name}`", self.place),
            )
            .help(format!("write `{example}`")),
        );
    }

    /// Reports every key that nothing asked for.
    pub fn finish(self, diags: &mut Vec<Diagnostic>) {
        for (key, _) in &self.table.entries {
            if !self.asked.contains(key.name.node.as_str()) {
                let mut known: Vec<&str> = self.asked.iter().copied().collect();
                known.sort_unstable();
                diags.push(unknown_key(key, &self.place, &known));
            }
        }
    }
}

/// An unknown key, with the nearest known one or all of them.
pub(super) fn unknown_key(key: &Key, place: &str, known: &[&str]) -> Diagnostic {
    let name = &key.name.node;
    let error =
        Diagnostic::error(Code::UnknownKey, key.name.span, format!("{place} has no key `{name}`"));
    error.did_you_mean_or(name, known.iter().copied(), || format!("known keys: {}", list(known)))
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reports a value of the wrong type.
pub(super) fn wrong<T>(
    node: &Node,
    key: &Key,
    expected: &str,
    diags: &mut Vec<Diagnostic>,
) -> Option<T> {
    diags.push(Diagnostic::error(
        Code::WrongValue,
        node.span,
        format!("`{}` must be {expected}, found {}", key.name.node, node.describe()),
    ));
    None
}

pub(super) fn text(node: &Node, key: &Key, diags: &mut Vec<Diagnostic>) -> Option<Spanned<String>> {
    match node.as_str() {
        Some(value) => Some(Spanned::new(value.to_owned(), node.span)),
        None => wrong(node, key, "text", diags),
    }
}

pub(super) fn texts(node: &Node, key: &Key, diags: &mut Vec<Diagnostic>) -> Vec<Spanned<String>> {
    let mut all = Vec::new();
    for item in node.items() {
        match item.as_str() {
            Some(value) => all.push(Spanned::new(value.to_owned(), item.span)),
            None => {
                let _: Option<()> = wrong(item, key, "text, or a list of texts", diags);
            }
        }
    }
    all
}

/// One of several words.
pub(super) fn word<T: Copy>(
    value: &Spanned<String>,
    key: &str,
    words: &[(&str, T)],
    diags: &mut Vec<Diagnostic>,
) -> Option<T> {
    if let Some((_, found)) = words.iter().find(|(word, _)| *word == value.node) {
        return Some(*found);
    }
    let names = || words.iter().map(|(word, _)| *word);
    let error = Diagnostic::error(
        Code::WrongValue,
        value.span,
        format!("`{key}` must be {}, found {:?}", one_of(names()), value.node),
    );
    diags.push(error.did_you_mean(&value.node, names()));
    None
}

/// An expression: text, or a number, switch or list as it stands.
pub(super) fn expr(node: &Node, key: &Key, diags: &mut Vec<Diagnostic>) -> Option<Expr> {
    match (&node.kind, node.positions()) {
        (NodeKind::Str { value, .. }, Some(positions)) => parse_expr_at(&positions, value, diags),
        _ => match literal(node) {
            Some(expr) => Some(expr),
            None => wrong(node, key, "an expression, a number, a switch or a list of them", diags),
        },
    }
}

/// A value that is no text, as an expression; texts within lists are words.
pub(super) fn literal(node: &Node) -> Option<Expr> {
    let span = node.span;
    let kind = match &node.kind {
        NodeKind::Int(value) => ExprKind::Int(*value),
        NodeKind::Float(value) => ExprKind::Float(*value),
        NodeKind::Bool(value) => ExprKind::Bool(*value),
        NodeKind::Array(items) => {
            let items = items.iter().map(|item| match item.as_str() {
                Some(text) => Some(Expr { span: item.span, kind: ExprKind::Str(text.to_owned()) }),
                None => literal(item),
            });
            ExprKind::List(items.collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    };
    // Negative numbers read as they do in expressions.
    let kind = match kind {
        ExprKind::Int(value) if value < 0 && value != i64::MIN => {
            ExprKind::Unary(UnaryOp::Neg, Box::new(Expr { span, kind: ExprKind::Int(-value) }))
        }
        ExprKind::Float(value) if value < 0.0 => {
            ExprKind::Unary(UnaryOp::Neg, Box::new(Expr { span, kind: ExprKind::Float(-value) }))
        }
        other => other,
    };
    Some(Expr { span, kind })
}

/// An expression written as a key.
pub(super) fn key_expr(key: &Key, diags: &mut Vec<Diagnostic>) -> Option<Expr> {
    parse_expr_at(&key.positions(), &key.name.node, diags)
}
