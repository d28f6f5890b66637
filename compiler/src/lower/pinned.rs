//! Values of the one config that a specialised graph is for.

use super::Lowerer;
use crate::expr::fold;
use crate::ir::{Scalar, ScalarType};
use crate::shapes::Facts;
use crate::specialise::Pinned;
use crate::syntax::ast::{Expr, ExprKind};

impl Lowerer<'_> {
    /// The scalar with the values of the config filled in; as it is in a graph for every config.
    pub(super) fn settled(&self, scalar: Scalar) -> Scalar {
        let Some(pinned) = &self.manifest.pinned else { return scalar };
        if scalar.is_literal() {
            return scalar;
        }
        let expr = fold(&scalar.expr, &**pinned);
        let ty = match (&expr.kind, &scalar.ty) {
            (ExprKind::None, _) => ScalarType::None,
            (kind, ScalarType::Json) if is_literal(kind) => {
                return Scalar::literal(expr.kind, expr.span);
            }
            (kind, ScalarType::Nullable(inner)) if is_literal(kind) => (**inner).clone(),
            _ => scalar.ty,
        };
        // An integer of the config may stand for a number with a fraction.
        let kind = match (expr.kind, &ty) {
            (ExprKind::Int(value), ScalarType::Float) => ExprKind::Float(value as f64),
            (kind, _) => kind,
        };
        Scalar { expr: Expr { span: expr.span, kind }, ty }
    }

    /// Whether `layer.KEY` is the same for all layers of the one config.
    pub(super) fn same_for_all_layers(&self, key: &str) -> bool {
        let pinned = self.manifest.pinned.as_ref();
        key != "index"
            && pinned
                .and_then(|pinned| pinned.layer(key))
                .is_some_and(|value| !matches!(value, crate::expr::Value::Rope(_)))
    }
}

fn is_literal(kind: &ExprKind) -> bool {
    !matches!(
        kind,
        ExprKind::Name(_)
            | ExprKind::Attr(..)
            | ExprKind::Index(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Call(_)
            | ExprKind::At(..)
            | ExprKind::If { .. }
            | ExprKind::Match { .. }
    )
}

/// Sizes that names stand for.
pub(super) fn sizes(facts: &mut Facts, pinned: &Pinned) {
    for (name, value) in &pinned.values.keys {
        if let crate::expr::Value::Int(size) = value {
            facts.know(name, *size);
        }
    }
}
