//! A compiled family as text for people: graph with shapes, tensors, caches.

mod caches;
mod graph;
mod tensors;

pub use caches::caches;
pub use graph::graph;
pub use tensors::tensors;

use crate::expr::{ConfigValues, LayerValues, Value};
use crate::shapes::Poly;
use crate::syntax::ast::{Expr, ExprKind};

/// A model that a family is shown with.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    /// The values of its config.
    pub config: &'a ConfigValues,
    /// Its layers.
    pub layers: &'a [LayerValues],
    /// The type its numbers are in.
    pub dtype: &'a str,
    /// Bytes of one of them.
    pub width: u64,
}

/// A size as text: with a config, names of keys become numbers.
fn size(poly: &Poly, config: Option<&ConfigValues>) -> String {
    let Some(config) = config else { return poly.to_string() };
    let known = |name: &str| match config.get(name) {
        Some(Value::Int(value)) => Some(Poly::int(*value)),
        _ => None,
    };
    poly.substitute(&known).to_string()
}

/// An expression as text: with a config, its value where it has one.
fn value(expr: &Expr, config: Option<&ConfigValues>) -> String {
    let literal = matches!(expr.kind, ExprKind::Str(_));
    match config.and_then(|config| crate::expr::eval(expr, config).ok()) {
        Some(value) if !literal => value.to_string(),
        _ => crate::syntax::print::expr(expr),
    }
}
