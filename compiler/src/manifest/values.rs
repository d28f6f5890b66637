//! Values of layers that name other values of the same layer.

use super::{ConfigKey, Layers};
use crate::source::Spanned;
use crate::syntax::ast::{Arg, Body, BodyEq, Call, Expr, ExprKind};

type Values = [(Spanned<String>, Expr)];

/// Puts into each value, and into the parameters of each cache, the values of the same kind that it
/// names. A config key of the same name comes first; what names itself stays as it is.
pub(super) fn settle(layers: &mut Layers, config: &[ConfigKey]) {
    for kind in &mut layers.kinds {
        let mut known = kind.values.clone();
        known.retain(|(name, _)| !config.iter().any(|key| key.name.node == name.node));
        if known.is_empty() {
            continue;
        }
        for (name, value) in &mut kind.values {
            let own = known.iter().find(|(known, _)| known.node == name.node);
            let mut open: Vec<&str> = own.iter().map(|(name, _)| name.node.as_str()).collect();
            *value = filled(value, &known, &mut open);
        }
        for (_, value) in &mut kind.params {
            *value = filled(value, &known, &mut Vec::new());
        }
    }
}

/// The expression with the known values in place of their names; `open` are those it stands in.
fn filled<'v>(expr: &Expr, known: &'v Values, open: &mut Vec<&'v str>) -> Expr {
    let mut part = |inner: &Expr| Box::new(filled(inner, known, open));
    let kind = match &expr.kind {
        ExprKind::Name(name) => {
            let found = known.iter().find(|(own, _)| own.node == *name);
            return match found {
                Some((own, value)) if !open.contains(&own.node.as_str()) => {
                    open.push(&own.node);
                    let value = filled(value, known, open);
                    open.pop();
                    value
                }
                _ => expr.clone(),
            };
        }
        ExprKind::Index(base, index) => ExprKind::Index(part(base), part(index)),
        ExprKind::List(items) => ExprKind::List(items.iter().map(|item| *part(item)).collect()),
        ExprKind::Unary(op, inner) => ExprKind::Unary(*op, part(inner)),
        ExprKind::Binary(op, left, right) => ExprKind::Binary(*op, part(left), part(right)),
        ExprKind::Call(call) => {
            let arg = |arg: &Arg| Arg { name: arg.name.clone(), value: *part(&arg.value) };
            let args = call.args.iter().map(arg).collect();
            ExprKind::Call(Call { callee: call.callee.clone(), args })
        }
        ExprKind::If { condition, then, otherwise } => {
            let condition = part(condition);
            let mut body = |body: &BodyEq| {
                let result = body.0.result.as_deref().map(&mut part);
                Box::new(BodyEq(Body { result, ..body.0.clone() }))
            };
            let then = body(then);
            let otherwise = otherwise.as_ref().map(|otherwise| body(otherwise));
            ExprKind::If { condition, then, otherwise }
        }
        other => other.clone(),
    };
    Expr { span: expr.span, kind }
}
