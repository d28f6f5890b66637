//! Expressions as text, in one canonical spelling.

use super::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

/// The expression as an author would write it.
pub fn expr(expr: &Expr) -> String {
    level(expr, 0)
}

fn level(expr: &Expr, outer: u8) -> String {
    let (text, own) = match &expr.kind {
        ExprKind::Int(value) => (value.to_string(), 20),
        ExprKind::Float(value) => (format!("{value:?}"), 20),
        ExprKind::Bool(value) => (value.to_string(), 20),
        ExprKind::Str(text) => (format!("{text:?}"), 20),
        ExprKind::None => ("none".to_owned(), 20),
        ExprKind::Name(name) => (name.clone(), 20),
        ExprKind::Attr(base, name) => (format!("{}.{}", level(base, 19), name.node), 19),
        ExprKind::Index(base, index) => (format!("{}[{}]", level(base, 19), level(index, 0)), 19),
        ExprKind::List(items) => (format!("[{}]", join(items)), 20),
        ExprKind::Tuple(items) => (format!("({})", join(items)), 20),
        ExprKind::Unary(UnaryOp::Neg, inner) => (format!("-{}", level(inner, 9)), 9),
        ExprKind::Unary(UnaryOp::Not, inner) => (format!("not {}", level(inner, 5)), 5),
        ExprKind::Binary(op, left, right) => {
            let (text, own) = operator(*op);
            let (l, r) = if *op == BinaryOp::Pow { (own + 1, own) } else { (own, own + 1) };
            (format!("{} {text} {}", level(left, l), level(right, r)), own)
        }
        ExprKind::Call(call) => {
            let args: Vec<String> = call
                .args
                .iter()
                .map(|arg| match &arg.name {
                    Some(name) => format!("{} = {}", name.node, level(&arg.value, 0)),
                    None => level(&arg.value, 0),
                })
                .collect();
            (format!("{}({})", call.callee.node, args.join(", ")), 19)
        }
        ExprKind::At(inner, path) => (format!("{} @ {:?}", level(inner, 19), path.node), 19),
        ExprKind::If { condition, then, otherwise } => {
            let part = |body: &super::ast::Body0| match &body.0.result {
                Some(result) => level(result, 1),
                None => "{ .. }".to_owned(),
            };
            let otherwise = otherwise.as_ref().map_or_else(|| "none".to_owned(), part);
            (format!("{} ? {} : {otherwise}", level(condition, 2), part(then)), 1)
        }
        ExprKind::Match { subject, .. } => (format!("match {} {{ .. }}", level(subject, 0)), 20),
    };
    if own < outer { format!("({text})") } else { text }
}

fn join(items: &[Expr]) -> String {
    items.iter().map(|item| level(item, 0)).collect::<Vec<_>>().join(", ")
}

/// The operator's spelling and how tightly it binds.
pub fn operator(op: BinaryOp) -> (&'static str, u8) {
    match op {
        BinaryOp::Else => ("??", 2),
        BinaryOp::Or => ("or", 3),
        BinaryOp::And => ("and", 4),
        BinaryOp::Eq => ("==", 6),
        BinaryOp::Ne => ("!=", 6),
        BinaryOp::Lt => ("<", 6),
        BinaryOp::Le => ("<=", 6),
        BinaryOp::Gt => (">", 6),
        BinaryOp::Ge => (">=", 6),
        BinaryOp::In => ("in", 6),
        BinaryOp::Add => ("+", 7),
        BinaryOp::Sub => ("-", 7),
        BinaryOp::Mul => ("*", 8),
        BinaryOp::Div => ("/", 8),
        BinaryOp::FloorDiv => ("//", 8),
        BinaryOp::Rem => ("%", 8),
        BinaryOp::Pow => ("**", 10),
    }
}
