//! Operators.

use super::{Place, Scalars, Typed};
use crate::ir::ScalarType;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};

impl<'a> Scalars<'a> {
    pub(super) fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr, place: Place) -> Typed {
        let (a, b) = (self.typed(left, place), self.typed(right, place));
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let sign = if op == BinaryOp::And { "&&" } else { "||" };
                let side = |expr: &Expr| {
                    let code = self.truth(expr, place);
                    match expr.kind {
                        ExprKind::Name(_) | ExprKind::Attr(..) | ExprKind::Call(_) => code,
                        _ => format!("({code})"),
                    }
                };
                Typed::compound(format!("{} {sign} {}", side(left), side(right)), ScalarType::Bool)
            }
            BinaryOp::Else => self.otherwise(a, left, b, right),
            BinaryOp::Eq | BinaryOp::Ne => self.equality(op, a, left, b, right),
            BinaryOp::In => self.membership(&a, left, b, right),
            _ => self.arithmetic(op, a, left, b, right),
        }
    }

    pub(super) fn otherwise(&self, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        if a.ty == ScalarType::Json {
            let ty = b.ty.plain().clone();
            let read = match ty {
                ScalarType::Int => "json_int",
                ScalarType::Float => "json_float",
                ScalarType::Str => "json_str",
                _ => "json_bool",
            };
            let (json, fallback) = (a.code, self.convert(b, &ty, right));
            let code = format!("if ({json}).is_null() {{ {fallback} }} else {{ {read}({json})? }}");
            return Typed::compound(code, ty);
        }
        let ScalarType::Nullable(inner) = a.ty.clone() else { return a };
        if matches!(b.ty, ScalarType::Nullable(_) | ScalarType::None) {
            let ty = crate::lower::join(&a.ty, &b.ty);
            let (a, b) = (self.convert(a, &ty, left), self.convert(b, &ty, right));
            return Typed::simple(format!("({a}).or({b})"), ty);
        }
        let ty = crate::lower::join(&inner, &b.ty);
        let taken = self.convert(Typed::simple("value", *inner), &ty, left);
        let fallback = self.convert(b, &ty, right);
        if taken == "value"
            && (fallback.parse::<f64>().is_ok() || fallback == "true" || fallback == "false")
        {
            return Typed::simple(format!("{}.unwrap_or({fallback})", a.code), ty);
        }
        Typed::compound(
            format!("match {} {{ Some(value) => {taken}, None => {fallback} }}", a.code),
            ty,
        )
    }

    fn equality(&self, op: BinaryOp, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let sign = if op == BinaryOp::Eq { "==" } else { "!=" };
        let none = if op == BinaryOp::Eq { "is_none" } else { "is_some" };
        let code = match (&a.ty, &b.ty) {
            (ScalarType::None, ScalarType::None) => (op == BinaryOp::Eq).to_string(),
            (ScalarType::Nullable(_), ScalarType::None) => format!("{}.{none}()", a.wrapped()),
            (ScalarType::None, ScalarType::Nullable(_)) => format!("{}.{none}()", b.wrapped()),
            (ScalarType::Json, ScalarType::None) | (ScalarType::None, ScalarType::Json) => {
                let json = if a.ty == ScalarType::Json { &a } else { &b };
                let sign = if op == BinaryOp::Eq { "" } else { "!" };
                format!("{sign}({}).is_null()", json.code)
            }
            (ScalarType::Json, _) => {
                let json = match a.code.strip_prefix('&') {
                    Some(name) => name.to_owned(),
                    None => format!("*{}", a.wrapped()),
                };
                format!("{json} {sign} serde_json::json!({})", b.code)
            }
            (_, ScalarType::None) | (ScalarType::None, _) => (op == BinaryOp::Ne).to_string(),
            _ => {
                let ty = crate::lower::join(&a.ty, &b.ty);
                let parts = |typed: Typed, expr: &Expr| {
                    let simple = typed.simple;
                    let code = self.convert(typed, &ty, expr);
                    if simple || code.ends_with(')') { code } else { format!("({code})") }
                };
                format!("{} {sign} {}", parts(a, left), parts(b, right))
            }
        };
        Typed::compound(code, ScalarType::Bool)
    }

    fn membership(&self, a: &Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let plain = b.ty.plain().clone();
        let item = self.convert(a.clone(), &a.ty.plain().clone(), left);
        let list = self.convert(b, &plain, right);
        let code = match &plain {
            ScalarType::Str => format!("{list}.contains({item})"),
            ScalarType::List(inner) if **inner == ScalarType::Str => {
                if matches!(right.kind, ExprKind::List(_)) {
                    format!("{list}.contains(&{item})")
                } else {
                    format!("{list}.iter().any(|word| word == {item})")
                }
            }
            ScalarType::Json => format!("json_holds({list}, &serde_json::json!({item}))"),
            _ => format!("{list}.contains(&({item}))"),
        };
        Typed::compound(code, ScalarType::Bool)
    }

    fn arithmetic(&self, op: BinaryOp, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let float = [&a, &b].iter().any(|side| *side.ty.plain() == ScalarType::Float)
            || op == BinaryOp::Div
            || (op == BinaryOp::Pow && !matches!(right.kind, ExprKind::Int(0..)));
        let ty = if float { ScalarType::Float } else { ScalarType::Int };
        let leaf = |typed: &Typed| typed.simple;
        let leaves = leaf(&a) && leaf(&b);
        let side = |typed: Typed, expr: &Expr| {
            let simple = typed.simple && typed.ty == ty;
            let code = self.convert(typed, &ty, expr);
            let literal = matches!(expr.kind, ExprKind::Int(_) | ExprKind::Float(_));
            if simple || literal { code } else { format!("({code})") }
        };
        let (a, b) = (side(a, left), side(b, right));
        let result = match op {
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => ScalarType::Bool,
            _ => ty.clone(),
        };
        let (sign, _) = crate::syntax::print::operator(op);
        let checked = match op {
            BinaryOp::Add => "plus",
            BinaryOp::Sub => "minus",
            BinaryOp::Mul => "times",
            _ => "",
        };
        match (op, float) {
            (BinaryOp::Pow, true) => Typed::simple(format!("{}.powf({b})", paren(&a)), result),
            (BinaryOp::Pow, false) => Typed::simple(format!("int_pow({a}, {b})?"), result),
            (BinaryOp::FloorDiv, true) => Typed::simple(format!("({a} / {b}).floor()"), result),
            (BinaryOp::FloorDiv, false) => Typed::simple(format!("floor_div({a}, {b})?"), result),
            (BinaryOp::Rem, true) => {
                Typed::simple(format!("{}.rem_euclid({b})", paren(&a)), result)
            }
            (BinaryOp::Rem, false) => Typed::simple(format!("floor_mod({a}, {b})?"), result),
            // Two sizes of 31 bits cannot overflow; longer sums and products are checked.
            (_, false) if !checked.is_empty() && !leaves => {
                Typed::simple(format!("{checked}({}, {})?", bare(&a), bare(&b)), result)
            }
            _ => Typed::compound(format!("{a} {sign} {b}"), result),
        }
    }
}

/// The opposite of a condition, as one would write it.
pub(super) fn negated(code: &str) -> String {
    let swaps = [
        (".is_some()", ".is_none()"),
        (".is_some_and(|value| value != 0)", ".is_none_or(|value| value == 0)"),
        (".is_some_and(|value| value != 0.0)", ".is_none_or(|value| value == 0.0)"),
    ];
    for (is, is_not) in swaps {
        if let Some(subject) = code.strip_suffix(is)
            && !subject.contains("&&")
            && !subject.contains("||")
        {
            return format!("{subject}{is_not}");
        }
    }
    format!("!({code})")
}

fn paren(code: &str) -> String {
    // A literal's type must be known before a method of it is called.
    if code.parse::<f64>().is_ok() {
        return format!("{code}_f64");
    }
    if code.starts_with('(') && code.ends_with(')') { code.to_owned() } else { format!("({code})") }
}

/// Without the parentheses around a whole argument.
fn bare(code: &str) -> &str {
    let Some(inner) = code.strip_prefix('(').and_then(|code| code.strip_suffix(')')) else {
        return code;
    };
    let mut depth = 0i32;
    for letter in inner.chars() {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return code;
        }
    }
    inner
}
