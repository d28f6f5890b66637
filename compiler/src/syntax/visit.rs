//! Walks over the AST.

use super::ast::{Body, Expr, ExprKind, Range, Statement};
use crate::source::Spanned;

/// Every name an expression reads, nested bodies included.
pub fn names(expr: &Expr, found: &mut dyn FnMut(&Spanned<String>)) {
    each(expr, &mut |inner| {
        if let ExprKind::Name(name) = &inner.kind {
            found(&Spanned::new(name.clone(), inner.span));
        }
    });
}

/// Every expression inside an expression, itself first, nested bodies included.
pub fn each(expr: &Expr, found: &mut dyn FnMut(&Expr)) {
    found(expr);
    match &expr.kind {
        ExprKind::Attr(inner, _) | ExprKind::Unary(_, inner) | ExprKind::At(inner, _) => {
            each(inner, found);
        }
        ExprKind::Index(left, right) | ExprKind::Binary(_, left, right) => {
            each(left, found);
            each(right, found);
        }
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            items.iter().for_each(|item| each(item, found));
        }
        ExprKind::Call(call) => call.args.iter().for_each(|arg| each(&arg.value, found)),
        ExprKind::If { condition, then, otherwise } => {
            each(condition, found);
            body(&then.0, found);
            if let Some(otherwise) = otherwise {
                body(&otherwise.0, found);
            }
        }
        ExprKind::Match { subject, arms } => {
            each(subject, found);
            arms.iter().for_each(|arm| body(&arm.body.0, found));
        }
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::None
        | ExprKind::Name(_) => {}
    }
}

/// Every expression of a body.
pub fn body(body_: &Body, found: &mut dyn FnMut(&Expr)) {
    for statement in &body_.statements {
        match statement {
            Statement::Assign { value, .. } => each(value, found),
            Statement::Choice(choice) => each(choice, found),
            Statement::For { over, body: inner, .. } => {
                if let Range::Ints(from, to) = over {
                    each(from, found);
                    each(to, found);
                }
                body(inner, found);
            }
        }
    }
    if let Some(result) = &body_.result {
        each(result, found);
    }
}

/// Every name a body assigns, nested bodies included.
pub fn assigned(body_: &Body, found: &mut dyn FnMut(&Spanned<String>)) {
    for statement in &body_.statements {
        match statement {
            Statement::Assign { targets, .. } => targets.iter().for_each(&mut *found),
            Statement::Choice(choice) => choice_assigns(choice, found),
            Statement::For { body: inner, .. } => assigned(inner, found),
        }
    }
    if let Some(result) = &body_.result {
        choice_assigns(result, found);
    }
}

fn choice_assigns(choice: &Expr, found: &mut dyn FnMut(&Spanned<String>)) {
    match &choice.kind {
        ExprKind::If { then, otherwise, .. } => {
            assigned(&then.0, found);
            if let Some(otherwise) = otherwise {
                assigned(&otherwise.0, found);
            }
        }
        ExprKind::Match { arms, .. } => arms.iter().for_each(|arm| assigned(&arm.body.0, found)),
        _ => {}
    }
}
