//! From the type an expression has to the one that its place wants.

use super::{Place, Scalars, Typed};
use crate::ir::ScalarType;
use crate::syntax::ast::{Expr, ExprKind};

impl<'a> Scalars<'a> {
    /// The expression, converted to `wanted`.
    pub(in crate::emit) fn as_type(
        &self,
        expr: &Expr,
        wanted: &ScalarType,
        place: Place,
    ) -> String {
        self.converted(expr, wanted, place).code
    }

    /// As `i64`.
    pub(in crate::emit) fn int(&self, expr: &Expr, place: Place) -> String {
        self.as_type(expr, &ScalarType::Int, place)
    }

    /// As `bool`.
    pub(in crate::emit) fn truth(&self, expr: &Expr, place: Place) -> String {
        self.decided(expr, place).code
    }

    /// The expression, converted to `wanted`, and what is known about its text.
    pub(in crate::emit) fn converted(
        &self,
        expr: &Expr,
        wanted: &ScalarType,
        place: Place,
    ) -> Typed {
        self.convert(self.typed(expr, place), wanted, expr)
    }

    /// As `bool`, and what is known about its text.
    pub(in crate::emit) fn decided(&self, expr: &Expr, place: Place) -> Typed {
        let typed = self.typed(expr, place);
        let text = typed.wrapped();
        let bool = ScalarType::Bool;
        let out = match &typed.ty {
            ScalarType::Bool => return typed,
            ScalarType::Int => Typed::compound(format!("{text} != 0"), bool),
            ScalarType::Float => Typed::compound(format!("{text} != 0.0"), bool),
            ScalarType::Nullable(inner) => match **inner {
                ScalarType::Bool => Typed::simple(format!("{text}.unwrap_or(false)"), bool),
                ScalarType::Int | ScalarType::Float => {
                    let zero = if **inner == ScalarType::Int { "0" } else { "0.0" };
                    Typed::simple(format!("{text}.is_some_and(|value| value != {zero})"), bool)
                        .or_else(format!("{text}.is_none_or(|value| value == {zero})"))
                }
                _ => Typed::simple(format!("{text}.is_some()"), bool)
                    .or_else(format!("{text}.is_none()")),
            },
            ScalarType::Json => Typed::compound(format!("!{text}.is_null()"), bool),
            ScalarType::None => return Typed::literal("false", bool),
            _ => return Typed::literal("true", bool),
        };
        out.with(&typed)
    }

    pub(super) fn convert(&self, typed: Typed, wanted: &ScalarType, expr: &Expr) -> Typed {
        let ty = wanted.clone();
        let name = || crate::syntax::print::expr(expr);
        let out = match (&typed.ty, wanted) {
            (have, want) if have == want => return typed,
            (ScalarType::Int, ScalarType::Float) => match &expr.kind {
                ExprKind::Int(value) => Typed::literal(format!("{value}.0"), ty),
                _ if typed.is_literal() => Typed::literal(format!("{typed}.0"), ty),
                _ => Typed::compound(format!("{} as f64", typed.wrapped()), ty),
            },
            (ScalarType::Nullable(inner), ScalarType::Nullable(want)) => {
                match (&**inner, &**want) {
                    (ScalarType::Int, ScalarType::Float) => {
                        Typed::simple(format!("{}.map(|value| value as f64)", typed.wrapped()), ty)
                    }
                    _ => return Typed { ty, ..typed },
                }
            }
            (ScalarType::None, ScalarType::Nullable(_)) => return Typed::simple("None", ty),
            (ScalarType::None, _) => Typed::fallible(format!("given(None, {:?})?", name()), ty),
            (ScalarType::Json, ScalarType::Int) => {
                Typed::fallible(format!("json_int({typed})?"), ty)
            }
            (ScalarType::Json, ScalarType::Float) => {
                Typed::fallible(format!("json_float({typed})?"), ty)
            }
            (ScalarType::Json, ScalarType::Str) => {
                Typed::fallible(format!("json_str({typed})?"), ty)
            }
            (ScalarType::Json, ScalarType::Bool) => {
                Typed::compound(format!("!{}.is_null()", typed.wrapped()), ty)
            }
            (_, ScalarType::Nullable(want)) => {
                let inner = self.convert(typed, want, expr);
                return Typed::simple(format!("Some({inner})"), ty).with(&inner);
            }
            (ScalarType::Nullable(inner), want) => {
                let given =
                    Typed::fallible(format!("given({typed}, {:?})?", name()), (**inner).clone());
                return self.convert(given.with(&typed), want, expr);
            }
            _ => return Typed { ty, ..typed },
        };
        out.with(&typed)
    }
}
