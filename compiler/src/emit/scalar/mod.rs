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

/// How Rust text is put together, and thus where it needs parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number or a switch, written out.
    Literal,
    /// A name, another literal, or a call.
    Simple,
    /// `if`, down to its last `else`.
    If,
    /// Operators.
    Compound,
}

/// Rust text, its type in the spec, and what its place has to know about it.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) code: String,
    pub(super) ty: ScalarType,
    form: Form,
    /// What it is a reference to, where it is `&` and a name.
    pub(super) referent: Option<String>,
    /// The text of the opposite, where that has a name of its own.
    opposite: Option<String>,
    /// Whether `cfg` stands in it.
    pub(super) reads_config: bool,
    /// Whether `?` stands in it.
    fallible: bool,
}

impl std::fmt::Display for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.code)
    }
}

impl Typed {
    fn new(form: Form, code: impl Into<String>, ty: ScalarType) -> Self {
        let code = code.into();
        let (referent, opposite) = (None, None);
        Self { code, ty, form, referent, opposite, reads_config: false, fallible: false }
    }

    fn literal(code: impl Into<String>, ty: ScalarType) -> Self {
        Self::new(Form::Literal, code, ty)
    }

    fn simple(code: impl Into<String>, ty: ScalarType) -> Self {
        Self::new(Form::Simple, code, ty)
    }

    fn reference(to: String, ty: ScalarType) -> Self {
        Self { referent: Some(to.clone()), ..Self::simple(format!("&{to}"), ty) }
    }

    fn compound(code: impl Into<String>, ty: ScalarType) -> Self {
        Self::new(Form::Compound, code, ty)
    }

    /// Text that ends with `?`.
    fn fallible(code: impl Into<String>, ty: ScalarType) -> Self {
        Self { fallible: true, ..Self::simple(code, ty) }
    }

    /// Says that another text stands in this one.
    fn with(mut self, part: &Self) -> Self {
        self.reads_config |= part.reads_config;
        self.fallible |= part.fallible;
        self
    }

    /// Says what the opposite of a condition is called.
    fn or_else(self, opposite: String) -> Self {
        Self { opposite: Some(opposite), ..self }
    }

    pub(super) fn is_literal(&self) -> bool {
        self.form == Form::Literal
    }

    fn is_simple(&self) -> bool {
        matches!(self.form, Form::Literal | Form::Simple)
    }

    fn wrapped(&self) -> String {
        if self.is_simple() { self.code.clone() } else { format!("({})", self.code) }
    }

    /// The opposite of a condition, as one would write it.
    fn negated(self) -> Self {
        let code = match &self.opposite {
            Some(opposite) => opposite.clone(),
            None => format!("!({self})"),
        };
        Self::compound(code, ScalarType::Bool).with(&self)
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
            ExprKind::Float(value) => double(*value),
            ExprKind::Bool(value) => Typed::literal(value.to_string(), ScalarType::Bool),
            ExprKind::Str(text) => Typed::simple(format!("{text:?}"), ScalarType::Str),
            ExprKind::None => Typed::simple("None", ScalarType::None),
            ExprKind::Name(name) => self.name(name, place),
            ExprKind::Attr(_, key) => self.layer_value(&key.node),
            ExprKind::Index(base, index) => self.index(base, index, place),
            ExprKind::List(items) => self.list(items, place),
            ExprKind::Tuple(items) => self.list(items, place),
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let typed = self.typed(inner, place);
                let ty = crate::ir::integer_or_float(&typed.ty);
                let typed = self.convert(typed, &ty, inner);
                let checked = ty == ScalarType::Int && self.bound(inner, place).is_none();
                match inner.kind {
                    _ if checked => Typed::fallible(format!("int_neg({typed})?"), ty),
                    ExprKind::Float(0.0..) if typed.is_literal() => {
                        Typed::literal(format!("-{typed}"), ty)
                    }
                    _ => Typed::compound(format!("-{}", typed.wrapped()), ty),
                }
                .with(&typed)
            }
            ExprKind::Unary(UnaryOp::Not, inner) => self.decided(inner, place).negated(),
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
        Value::Bool(value) => Typed::literal(value.to_string(), ScalarType::Bool),
        _ => return None,
    })
}

/// A number as a literal, which says its type where one would not guess it.
fn integer(value: i64) -> Typed {
    match i32::try_from(value) {
        Ok(value) => Typed::literal(value.to_string(), ScalarType::Int),
        Err(_) => Typed::simple(format!("{value}_i64"), ScalarType::Int),
    }
}

/// A number as a literal of `f64`.
fn double(value: f64) -> Typed {
    match (value.is_infinite(), value < 0.0) {
        (false, _) => Typed::literal(format!("{value:?}"), ScalarType::Float),
        (true, false) => Typed::simple("f64::INFINITY", ScalarType::Float),
        (true, true) => Typed::simple("f64::NEG_INFINITY", ScalarType::Float),
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
