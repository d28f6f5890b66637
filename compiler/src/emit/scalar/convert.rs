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
        self.convert(self.typed(expr, place), wanted, expr)
    }

    /// As `i64`.
    pub(in crate::emit) fn int(&self, expr: &Expr, place: Place) -> String {
        self.as_type(expr, &ScalarType::Int, place)
    }

    /// As `bool`.
    pub(in crate::emit) fn truth(&self, expr: &Expr, place: Place) -> String {
        let typed = self.typed(expr, place);
        match &typed.ty {
            ScalarType::Bool => typed.code,
            ScalarType::Int => format!("{} != 0", typed.wrapped()),
            ScalarType::Float => format!("{} != 0.0", typed.wrapped()),
            ScalarType::Nullable(inner) if **inner == ScalarType::Bool => {
                format!("{}.unwrap_or(false)", typed.wrapped())
            }
            ScalarType::Nullable(inner) if **inner == ScalarType::Int => {
                format!("{}.is_some_and(|value| value != 0)", typed.wrapped())
            }
            ScalarType::Nullable(inner) if **inner == ScalarType::Float => {
                format!("{}.is_some_and(|value| value != 0.0)", typed.wrapped())
            }
            ScalarType::Nullable(_) => format!("{}.is_some()", typed.wrapped()),
            ScalarType::Json => format!("!{}.is_null()", typed.wrapped()),
            ScalarType::None => "false".to_owned(),
            _ => "true".to_owned(),
        }
    }

    pub(super) fn convert(&self, typed: Typed, wanted: &ScalarType, expr: &Expr) -> String {
        match (&typed.ty, wanted) {
            (have, want) if have == want => typed.code,
            (ScalarType::Int, ScalarType::Float) => match &expr.kind {
                ExprKind::Int(value) => format!("{value}.0"),
                _ if typed.code.parse::<i32>().is_ok() => format!("{}.0", typed.code),
                _ => format!("{} as f64", typed.wrapped()),
            },
            (ScalarType::Nullable(inner), ScalarType::Nullable(want)) => {
                match (&**inner, &**want) {
                    (ScalarType::Int, ScalarType::Float) => {
                        format!("{}.map(|value| value as f64)", typed.wrapped())
                    }
                    _ => typed.code,
                }
            }
            (ScalarType::None, ScalarType::Nullable(_)) => "None".to_owned(),
            (ScalarType::None, _) => {
                let name = crate::syntax::print::expr(expr);
                format!("given(None, {name:?})?")
            }
            (ScalarType::Json, ScalarType::Int) => format!("json_int({})?", typed.code),
            (ScalarType::Json, ScalarType::Float) => format!("json_float({})?", typed.code),
            (ScalarType::Json, ScalarType::Str) => format!("json_str({})?", typed.code),
            (ScalarType::Json, ScalarType::Bool) => format!("!{}.is_null()", typed.wrapped()),
            (have, ScalarType::Nullable(want)) => {
                let inner = Typed { ty: have.clone(), ..typed.clone() };
                format!("Some({})", self.convert(inner, want, expr))
            }
            (ScalarType::Nullable(inner), want) => {
                let name = crate::syntax::print::expr(expr);
                let code = format!("given({}, {name:?})?", typed.code);
                self.convert(Typed::simple(code, (**inner).clone()), want, expr)
            }
            _ => typed.code,
        }
    }
}
