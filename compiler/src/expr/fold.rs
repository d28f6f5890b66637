//! Expressions with what is known already filled in.

use super::eval::{Env, eval};
use super::functions::Function;
use super::value::Value;
use crate::syntax::ast::{Arg, BinaryOp, Body, Body0, BodyEq, Call, Expr, ExprKind, UnaryOp};

/// The expression with each part that has a value here replaced by that value, and with each choice
/// that is decided here replaced by what is chosen. Names without a value stay.
pub fn fold(expr: &Expr, env: &dyn Env) -> Expr {
    let span = expr.span;
    if let Some(kind) = eval(expr, env).ok().and_then(|value| literal(&value, expr)) {
        return Expr { span, kind };
    }
    let part = |inner: &Expr| Box::new(fold(inner, env));
    let kind = match &expr.kind {
        ExprKind::Index(base, index) => ExprKind::Index(part(base), part(index)),
        ExprKind::List(items) => ExprKind::List(items.iter().map(|item| fold(item, env)).collect()),
        ExprKind::Unary(op, inner) => ExprKind::Unary(*op, part(inner)),
        ExprKind::Binary(op, left, right) => return binary(expr, *op, part(left), part(right)),
        ExprKind::Call(call) => ExprKind::Call(Call {
            callee: call.callee.clone(),
            args: call
                .args
                .iter()
                .map(|arg| Arg { name: arg.name.clone(), value: fold(&arg.value, env) })
                .collect(),
        }),
        ExprKind::If { condition, then, otherwise } => {
            let condition = part(condition);
            match (truth(&condition), otherwise) {
                (Some(true), _) => return chosen(then, env),
                (Some(false), Some(otherwise)) => return chosen(otherwise, env),
                (Some(false), None) => ExprKind::None,
                (None, _) => ExprKind::If {
                    condition,
                    then: body(then, env),
                    otherwise: otherwise.as_ref().map(|otherwise| body(otherwise, env)),
                },
            }
        }
        other => other.clone(),
    };
    Expr { span, kind }
}

/// The literal of a value, where it has one.
pub fn literal(value: &Value, origin: &Expr) -> Option<ExprKind> {
    // Json is calculated with as an integer: a float's literal would be calculated with as a float.
    if matches!(value, Value::Json(serde_json::Value::Number(number)) if !number.is_i64()) {
        return None;
    }
    Some(match value.clone().settled() {
        Value::None => ExprKind::None,
        Value::Int(value) => ExprKind::Int(value),
        Value::Float(value) => ExprKind::Float(value),
        Value::Bool(value) => ExprKind::Bool(value),
        Value::Str(value) => ExprKind::Str(value),
        Value::List(items) => {
            let items = items
                .iter()
                .map(|item| Some(Expr { span: origin.span, kind: literal(item, origin)? }));
            ExprKind::List(items.collect::<Option<Vec<_>>>()?)
        }
        Value::Rope(_) | Value::Json(_) => return None,
    })
}

/// The truth of a literal.
fn truth(expr: &Expr) -> Option<bool> {
    Some(match &expr.kind {
        ExprKind::Bool(value) => *value,
        ExprKind::Int(value) => *value != 0,
        ExprKind::Float(value) => *value != 0.0,
        ExprKind::None => false,
        ExprKind::Str(_) => true,
        _ => return None,
    })
}

fn binary(origin: &Expr, op: BinaryOp, left: Box<Expr>, right: Box<Expr>) -> Expr {
    match (op, truth(&left)) {
        (BinaryOp::And, Some(false)) => {
            return Expr { span: origin.span, kind: ExprKind::Bool(false) };
        }
        (BinaryOp::Or, Some(true)) => {
            return Expr { span: origin.span, kind: ExprKind::Bool(true) };
        }
        (BinaryOp::And | BinaryOp::Or, Some(_)) if is_bool(&right) => return *right,
        (BinaryOp::Else, Some(_)) => {
            return if left.kind == ExprKind::None { *right } else { *left };
        }
        _ => {}
    }
    // A factor that became 1 says nothing.
    match (op, &left.kind, &right.kind) {
        (BinaryOp::Mul, ExprKind::Int(1), _) => return *right,
        (BinaryOp::Mul, _, ExprKind::Int(1)) => return *left,
        _ => {}
    }
    let settles = |value: bool| match op {
        BinaryOp::And => value,
        BinaryOp::Or => !value,
        _ => false,
    };
    if truth(&right).is_some_and(settles) && is_bool(&left) {
        return *left;
    }
    Expr { span: origin.span, kind: ExprKind::Binary(op, left, right) }
}

/// Whether an expression is true or false rather than something that counts as that.
fn is_bool(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_) | ExprKind::Unary(UnaryOp::Not, _) => true,
        ExprKind::Binary(op, ..) => matches!(
            op,
            BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::In
        ),
        ExprKind::Call(call) => {
            matches!(Function::of(&call.callee.node), Some(Function::Has | Function::Any))
        }
        _ => false,
    }
}

/// What a body of one expression comes to; any other is left alone.
fn chosen(part: &Body0, env: &dyn Env) -> Expr {
    match &part.0.result {
        Some(result) => fold(result, env),
        None => Expr { span: part.0.span, kind: ExprKind::None },
    }
}

fn body(part: &Body0, env: &dyn Env) -> Body0 {
    Box::new(BodyEq(Body {
        span: part.0.span,
        statements: part.0.statements.clone(),
        result: part.0.result.as_ref().map(|result| Box::new(fold(result, env))),
    }))
}
