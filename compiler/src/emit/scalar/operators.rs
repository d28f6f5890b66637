//! Operators.

use super::{Form, Place, Scalars, Typed};
use crate::ir::ScalarType;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};

impl<'a> Scalars<'a> {
    pub(super) fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr, place: Place) -> Typed {
        let (a, b) = (self.typed(left, place), self.typed(right, place));
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let sign = if op == BinaryOp::And { "&&" } else { "||" };
                let (a, b) = (self.decided(left, place), self.decided(right, place));
                let code = format!("{} {sign} {}", a.wrapped(), b.wrapped());
                Typed::compound(code, ScalarType::Bool).with(&a).with(&b)
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
            let json = match &a.referent {
                Some(name) => name.clone(),
                None => a.wrapped(),
            };
            if b.ty == ScalarType::None {
                return a;
            }
            let (read, fails) = match ty {
                ScalarType::Int => (format!("json_int({a})?"), true),
                ScalarType::Float => (format!("json_float({a})?"), true),
                ScalarType::Str => (format!("json_str({a})?"), true),
                ScalarType::Bool => (format!("json_bool({a})?"), true),
                _ => (a.code.clone(), false),
            };
            let fallback = self.convert(b, &ty, right);
            let code = format!("if {json}.is_null() {{ {fallback} }} else {{ {read} }}");
            let chosen = Typed { fallible: fails, ..Typed::new(Form::If, code, ty) };
            return chosen.with(&a).with(&fallback);
        }
        let ScalarType::Nullable(inner) = a.ty.clone() else { return a };
        if matches!(b.ty, ScalarType::Nullable(_) | ScalarType::None) {
            let ty = crate::ir::join(&a.ty, &b.ty);
            let (a, b) = (self.convert(a, &ty, left), self.convert(b, &ty, right));
            return Typed::simple(format!("({a}).or({b})"), ty).with(&a).with(&b);
        }
        let ty = crate::ir::join(&inner, &b.ty);
        let as_it_is = *inner == ty;
        let taken = self.convert(Typed::simple("value", *inner), &ty, left);
        let fallback = self.convert(b, &ty, right);
        let code = match as_it_is && fallback.is_literal() {
            true => {
                return Typed::simple(format!("{}.unwrap_or({fallback})", a.wrapped()), ty)
                    .with(&a);
            }
            false => format!("match {a} {{ Some(value) => {taken}, None => {fallback} }}"),
        };
        Typed::compound(code, ty).with(&a).with(&taken).with(&fallback)
    }

    fn equality(&self, op: BinaryOp, a: Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let sign = if op == BinaryOp::Eq { "==" } else { "!=" };
        let bool = ScalarType::Bool;
        let is_none = |typed: &Typed| {
            let text = typed.wrapped();
            match op {
                BinaryOp::Eq => Typed::simple(format!("{text}.is_none()"), ScalarType::Bool),
                _ => Typed::simple(format!("{text}.is_some()"), ScalarType::Bool)
                    .or_else(format!("{text}.is_none()")),
            }
        };
        let not = if op == BinaryOp::Eq { "" } else { "!" };
        let out = match (&a.ty, &b.ty) {
            (ScalarType::None, ScalarType::None) => {
                Typed::literal((op == BinaryOp::Eq).to_string(), bool)
            }
            (ScalarType::Nullable(_), ScalarType::None) => is_none(&a),
            (ScalarType::None, ScalarType::Nullable(_)) => is_none(&b),
            (ScalarType::Json, ScalarType::None) | (ScalarType::None, ScalarType::Json) => {
                let json = if a.ty == ScalarType::Json { &a } else { &b };
                Typed::compound(format!("{not}({json}).is_null()"), bool)
            }
            (ScalarType::Json, _) | (_, ScalarType::Json) => {
                let json = |typed: &Typed| match typed.ty {
                    ScalarType::Json => typed.code.clone(),
                    _ => format!("&serde_json::json!({typed})"),
                };
                Typed::compound(format!("{not}json_is({}, {})", json(&a), json(&b)), bool)
            }
            (_, ScalarType::None) | (ScalarType::None, _) => {
                return Typed::literal((op == BinaryOp::Ne).to_string(), bool);
            }
            _ => {
                let ty = crate::ir::join(&a.ty, &b.ty);
                let (a, b) = (self.convert(a, &ty, left), self.convert(b, &ty, right));
                let code = format!("{} {sign} {}", a.wrapped(), b.wrapped());
                return Typed::compound(code, bool).with(&a).with(&b);
            }
        };
        out.with(&a).with(&b)
    }

    fn membership(&self, a: &Typed, left: &Expr, b: Typed, right: &Expr) -> Typed {
        let plain = b.ty.plain().clone();
        let list = self.convert(b, &plain, right);
        // What may fail is settled outside of the closure.
        let among = |name: &str, one: &str, item: &Typed| match item.fallible {
            true => {
                format!("{{ let item = {item}; {list}.iter().any(|{name}| {one} == item) }}")
            }
            false => format!("{list}.iter().any(|{name}| {one} == {})", item.wrapped()),
        };
        let holds = |item: &Typed| {
            let wrapped = item.wrapped();
            let (code, fails) = match (&plain, &item.ty) {
                (ScalarType::Str, _) => (format!("{list}.contains({item})"), false),
                (ScalarType::Json, ScalarType::Json) => {
                    (format!("json_holds({list}, {item})?"), true)
                }
                (ScalarType::Json, _) => {
                    (format!("json_holds({list}, &serde_json::json!({item}))?"), true)
                }
                (_, ScalarType::Json) => {
                    (format!("json_holds(&serde_json::json!({list}), {item})?"), true)
                }
                (ScalarType::List(inner), _) if **inner == ScalarType::Str => {
                    if matches!(right.kind, ExprKind::List(_)) {
                        (format!("{list}.contains(&{wrapped})"), false)
                    } else {
                        (among("word", "word", item), false)
                    }
                }
                (ScalarType::List(inner), ScalarType::Float) if **inner == ScalarType::Int => {
                    (among("one", "*one as f64", item), false)
                }
                (ScalarType::List(inner), ScalarType::Int) if **inner == ScalarType::Float => {
                    (format!("{list}.contains(&({wrapped} as f64))"), false)
                }
                _ => (format!("{list}.contains(&({item}))"), false),
            };
            let found = Typed { fallible: fails, ..Typed::compound(code, ScalarType::Bool) };
            found.with(&list).with(item)
        };
        match (&a.ty, &plain) {
            // No list holds none.
            (ScalarType::Nullable(inner), ScalarType::List(_)) => {
                let found = holds(&Typed::simple("item", (**inner).clone()));
                let code = format!("match {a} {{ Some(item) => {found}, None => false }}");
                Typed::compound(code, ScalarType::Bool).with(a).with(&found)
            }
            (ScalarType::Json, ScalarType::Str) => {
                holds(&self.convert(a.clone(), &ScalarType::Str, left))
            }
            _ => holds(&self.convert(a.clone(), a.ty.plain(), left)),
        }
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
        let (a, b) = (self.convert(a, &ty, left), self.convert(b, &ty, right));
        if !checked.is_empty() {
            return Typed::fallible(format!("{checked}({a}, {b})?"), ty).with(&a).with(&b);
        }
        let result = match op {
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => ScalarType::Bool,
            _ => ty,
        };
        let (sign, _) = crate::syntax::print::operator(op);
        let code = format!("{} {sign} {}", a.wrapped(), b.wrapped());
        Typed::compound(code, result).with(&a).with(&b)
    }
}
