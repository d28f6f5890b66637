//! What an expression of the graph language comes to.

use crate::diag::Diagnostic;
use crate::ir::{Operand, Scalar, Variable};
use crate::shapes::Shape;
use crate::syntax::ast::{Expr, ExprKind};

/// A value of the graph language during lowering.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// An array.
    Array {
        operand: Operand,
        shape: Shape,
        /// May turn out absent.
        optional: bool,
        /// When it is there, where the config settles that.
        present: Option<Box<Scalar>>,
        /// Tells apart two arrays that were bound to one Rust name.
        id: usize,
    },
    /// No array.
    None,
    /// Known once the config is read.
    Scalar(Scalar),
    /// Several values.
    Tuple(Vec<Value>),
    /// A default that makes no sense for this family: an error once it is used.
    Broken(Vec<Diagnostic>),
}

impl Value {
    pub(super) fn uses(&self, name: &str) -> bool {
        match self {
            Value::Array { operand: Operand::Variable { name: own, .. }, .. } => own == name,
            Value::Tuple(values) => values.iter().any(|value| value.uses(name)),
            _ => false,
        }
    }

    /// A few words for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Value::Array { shape, .. } => crate::shapes::show(shape),
            Value::None => "none".to_owned(),
            Value::Scalar(scalar) => {
                format!("{} `{}`", scalar.ty, crate::syntax::print::expr(&scalar.expr))
            }
            Value::Tuple(values) => format!("a tuple of {}", values.len()),
            Value::Broken(_) => "nothing".to_owned(),
        }
    }

    /// A variable as a value.
    pub(super) fn of(variable: &Variable) -> Self {
        let Variable { name, shape, optional } = variable.clone();
        let operand = Operand::Variable { name, borrowed: false, optional };
        Value::Array { operand, shape, optional, present: None, id: new_id() }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self, Value::Array { .. })
    }
}

/// The values of a tuple, or the one value.
pub(super) fn flatten(value: Value) -> Vec<Value> {
    match value {
        Value::Tuple(values) => values.into_iter().flat_map(flatten).collect(),
        other => vec![other],
    }
}

/// A path or word given as a string.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Scalar(Scalar { expr: Expr { kind: ExprKind::Str(text), .. }, .. }) => Some(text),
        _ => None,
    }
}

/// A number that no other array has.
pub(super) fn new_id() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
