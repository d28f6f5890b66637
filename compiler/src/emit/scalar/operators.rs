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
            _ => self.arithmetic(op, (a, left), (b, right), place),
        }
    }

    pub(super) fn otherwise(&self, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        if a.ty == ScalarType::Json {
            let ty = match b.ty.plain() {
                ScalarType::None => ScalarType::Json,
                ty => ty.clone(),
            };
            let json = match a.code.strip_prefix('&') {
                Some(name) => name.to_owned(),
                None => a.wrapped(),
            };
            let read = match ty {
                ScalarType::Int => format!("json_int({})?", a.code),
                ScalarType::Float => format!("json_float({})?", a.code),
                ScalarType::Str => format!("json_str({})?", a.code),
                ScalarType::Bool => format!("json_bool({})?", a.code),
                _ => a.code.clone(),
            };
            if b.ty == ScalarType::None {
                return a;
            }
            let fallback = self.convert(b, &ty, right);
            let code = format!("if {json}.is_null() {{ {fallback} }} else {{ {read} }}");
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
            (ScalarType::Json, _) | (_, ScalarType::Json) => {
                let json = |typed: &Typed| match typed.ty {
                    ScalarType::Json => typed.code.clone(),
                    _ => format!("&serde_json::json!({})", typed.code),
                };
                let sign = if op == BinaryOp::Eq { "" } else { "!" };
                format!("{sign}json_is({}, {})", json(&a), json(&b))
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
        let list = self.convert(b, &plain, right);
        // What may fail is settled outside of the closure.
        let among = |name: &str, one: &str, item: &str| match item.contains('?') {
            true => {
                format!("{{ let item = {item}; {list}.iter().any(|{name}| {one} == item) }}")
            }
            false => format!("{list}.iter().any(|{name}| {one} == {item})"),
        };
        let holds = |item: &str, ty: &ScalarType| match (&plain, ty) {
            (ScalarType::Str, _) => format!("{list}.contains({item})"),
            (ScalarType::Json, ScalarType::Json) => format!("json_holds({list}, {item})?"),
            (ScalarType::Json, _) => {
                format!("json_holds({list}, &serde_json::json!({item}))?")
            }
            (_, ScalarType::Json) => {
                format!("json_holds(&serde_json::json!({list}), {item})?")
            }
            (ScalarType::List(inner), _) if **inner == ScalarType::Str => {
                if matches!(right.kind, ExprKind::List(_)) {
                    format!("{list}.contains(&{item})")
                } else {
                    among("word", "word", item)
                }
            }
            (ScalarType::List(inner), ScalarType::Float) if **inner == ScalarType::Int => {
                among("one", "*one as f64", item)
            }
            (ScalarType::List(inner), ScalarType::Int) if **inner == ScalarType::Float => {
                format!("{list}.contains(&({item} as f64))")
            }
            _ => format!("{list}.contains(&({item}))"),
        };
        let code = match (&a.ty, &plain) {
            // No list holds none.
            (ScalarType::Nullable(inner), ScalarType::List(_)) => {
                let found = holds("item", inner);
                format!("match {} {{ Some(item) => {found}, None => false }}", a.code)
            }
            (ScalarType::Json, ScalarType::Str) => {
                holds(&self.convert(a.clone(), &ScalarType::Str, left), &ScalarType::Str)
            }
            _ => {
                let ty = a.ty.plain().clone();
                let item = Typed { simple: false, ..a.clone() };
                let item = self.convert(item, &ty, left);
                let wrap = !a.simple && ty != ScalarType::Str;
                holds(&if wrap { format!("({item})") } else { item }, &ty)
            }
        };
        Typed::compound(code, ScalarType::Bool)
    }

    /// The type in which two numbers meet.
    fn meet(op: BinaryOp, a: &Typed, b: &Typed, right: &Expr) -> ScalarType {
        let compares = matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge);
        let float = |side: &Typed| match side.ty.plain() {
            ScalarType::Float => true,
            // Json is compared as any number, and calculated with as an integer.
            ScalarType::Json => compares,
            _ => false,
        };
        let fraction = op == BinaryOp::Div
            || (op == BinaryOp::Pow && !matches!(right.kind, ExprKind::Int(0..)));
        if float(a) || float(b) || fraction { ScalarType::Float } else { ScalarType::Int }
    }

    fn arithmetic(
        &self,
        op: BinaryOp,
        (a, left): (Typed, &Expr),
        (b, right): (Typed, &Expr),
        place: Place,
    ) -> Typed {
        let ty = Self::meet(op, &a, &b, right);
        // Whether the result fits 64 bits whatever the config says.
        let fits = || {
            let (a, b) = (self.bound(left, place)?, self.bound(right, place)?);
            let most = if op == BinaryOp::Mul { a.checked_mul(b)? } else { a.checked_add(b)? };
            i64::try_from(most).ok()
        };
        let checked = match (op, &ty) {
            (BinaryOp::Add, ScalarType::Int) if fits().is_none() => "plus",
            (BinaryOp::Sub, ScalarType::Int) if fits().is_none() => "minus",
            (BinaryOp::Mul, ScalarType::Int) if fits().is_none() => "times",
            (BinaryOp::Div, _) => "float_div",
            (BinaryOp::FloorDiv, ScalarType::Int) => "floor_div",
            (BinaryOp::FloorDiv, _) => "float_floor_div",
            (BinaryOp::Rem, ScalarType::Int) => "floor_mod",
            (BinaryOp::Rem, _) => "float_mod",
            (BinaryOp::Pow, ScalarType::Int) => "int_pow",
            (BinaryOp::Pow, _) => "float_pow",
            _ => "",
        };
        if !checked.is_empty() {
            let (a, b) = (self.convert(a, &ty, left), self.convert(b, &ty, right));
            return Typed::simple(format!("{checked}({a}, {b})?"), ty);
        }
        let side = |typed: Typed, expr: &Expr| {
            let simple = typed.simple && typed.ty == ty;
            let code = self.convert(typed, &ty, expr);
            let literal = matches!(expr.kind, ExprKind::Int(_) | ExprKind::Float(_));
            if simple || literal { code } else { format!("({code})") }
        };
        let (a, b) = (side(a, left), side(b, right));
        let result = match op {
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => ScalarType::Bool,
            _ => ty,
        };
        let (sign, _) = crate::syntax::print::operator(op);
        Typed::compound(format!("{a} {sign} {b}"), result)
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
