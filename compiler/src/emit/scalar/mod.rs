//! Values of the config as Rust expressions.

mod bounds;
mod calls;
mod convert;
mod names;
mod operators;

use std::collections::HashMap;

use crate::expr::{Env, Value, eval};
use crate::ir::ScalarType;
use crate::manifest::Manifest;
use crate::syntax::ast::{Expr, ExprKind, UnaryOp};
use operators::negated;

/// Where an expression stands in the generated code, and thus how its names are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In `Config::read`, where keys are local variables.
    Read,
    /// Where `cfg` and perhaps `layer` are at hand.
    Load,
    /// In the condition of a weight map: `cfg`, and captures of the name.
    Condition,
}

/// Writes expressions.
pub(super) struct Scalars<'a> {
    manifest: &'a Manifest,
    layer: HashMap<String, ScalarType>,
}

/// Rust text and its type in the spec.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) code: String,
    pub(super) ty: ScalarType,
    /// A name, a literal or a call: needs no parentheses.
    simple: bool,
}

impl Typed {
    pub(super) fn simple(code: impl Into<String>, ty: ScalarType) -> Self {
        Self { code: code.into(), ty, simple: true }
    }

    pub(super) fn compound(code: impl Into<String>, ty: ScalarType) -> Self {
        Self { code: code.into(), ty, simple: false }
    }

    pub(super) fn wrapped(&self) -> String {
        if self.simple { self.code.clone() } else { format!("({})", self.code) }
    }
}

impl<'a> Scalars<'a> {
    pub(super) fn new(manifest: &'a Manifest, layer: HashMap<String, ScalarType>) -> Self {
        Self { manifest, layer }
    }

    pub(super) fn layer_types(&self) -> &HashMap<String, ScalarType> {
        &self.layer
    }

    /// The expression and its type.
    pub(super) fn typed(&self, expr: &Expr, place: Place) -> Typed {
        if let (ExprKind::Binary(..) | ExprKind::Unary(..), Some(constant)) =
            (&expr.kind, constant(expr))
        {
            return constant;
        }
        match &expr.kind {
            ExprKind::Int(value) => integer(*value),
            ExprKind::Float(value) => Typed::simple(double(*value), ScalarType::Float),
            ExprKind::Bool(value) => Typed::simple(value.to_string(), ScalarType::Bool),
            ExprKind::Str(text) => Typed::simple(format!("{text:?}"), ScalarType::Str),
            ExprKind::None => Typed::simple("None", ScalarType::None),
            ExprKind::Name(name) => self.name(name, place),
            ExprKind::Attr(_, key) => self.layer_value(&key.node),
            ExprKind::Index(base, index) => self.index(base, index, place),
            ExprKind::List(items) => self.list(items, place),
            ExprKind::Tuple(items) => self.list(items, place),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let typed = self.typed(inner, place);
                let ty = crate::lower::integer_or_float(&typed.ty);
                let (simple, same) = (typed.simple, typed.ty == ty);
                let code = self.convert(typed, &ty, inner);
                if ty == ScalarType::Int && self.bound(inner, place).is_none() {
                    return Typed::simple(format!("int_neg({code})?"), ty);
                }
                let bare = (simple && same) || code.ends_with(")?");
                let code = if bare { code } else { format!("({code})") };
                Typed::compound(format!("-{code}"), ty)
            }
            ExprKind::Unary(UnaryOp::Not, inner) => {
                Typed::compound(negated(&self.truth(inner, place)), ScalarType::Bool)
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, place),
            ExprKind::Call(call) => self.call(call, place),
            ExprKind::At(inner, _) => self.typed(inner, place),
            ExprKind::If { condition, then, otherwise } => {
                self.conditional(condition, then, otherwise.as_ref(), place)
            }
            // `match` over values of the config is lowered to `if` before it gets here.
            ExprKind::Match { .. } => Typed::simple("None", ScalarType::None),
        }
    }
}

/// An integer or switch that names nothing has its value already; floats are computed where the
/// config is read, as all of them are.
fn constant(expr: &Expr) -> Option<Typed> {
    struct Nothing;
    impl Env for Nothing {
        fn name(&self, _: &str) -> Option<Result<Value, String>> {
            None
        }
    }
    Some(match eval(expr, &Nothing).ok()? {
        Value::Int(value) => integer(value),
        Value::Bool(value) => Typed::simple(value.to_string(), ScalarType::Bool),
        _ => return None,
    })
}

/// A number as a literal, which says its type where one would not guess it.
fn integer(value: i64) -> Typed {
    let code = match i32::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => format!("{value}_i64"),
    };
    Typed::simple(code, ScalarType::Int)
}

/// A number as a literal of `f64`.
fn double(value: f64) -> String {
    match (value.is_infinite(), value < 0.0) {
        (false, _) => format!("{value:?}"),
        (true, false) => "f64::INFINITY".to_owned(),
        (true, true) => "f64::NEG_INFINITY".to_owned(),
    }
}

/// A number as a literal of `f32`: the nearest one, as a conversion gives it.
pub(super) fn single(value: f64) -> String {
    let value = value as f32;
    match (value.is_infinite(), value < 0.0) {
        (false, _) => format!("{value:?}"),
        (true, false) => "f32::INFINITY".to_owned(),
        (true, true) => "f32::NEG_INFINITY".to_owned(),
    }
}
