//! Types of values known once the config is read.

use std::fmt;

use super::{Scalar, ScalarType};
use crate::manifest::{ConfigKey, ConfigType};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind};

impl Scalar {
    /// A literal.
    pub fn literal(kind: ExprKind, span: Span) -> Self {
        let ty = match &kind {
            ExprKind::Int(_) => ScalarType::Int,
            ExprKind::Float(_) => ScalarType::Float,
            ExprKind::Bool(_) => ScalarType::Bool,
            ExprKind::Str(_) => ScalarType::Str,
            _ => ScalarType::None,
        };
        Self { expr: Expr { span, kind }, ty }
    }

    /// Whether it is the same value, wherever the two were written.
    pub fn same(&self, other: &Scalar) -> bool {
        self.ty == other.ty
            && crate::syntax::print::expr(&self.expr) == crate::syntax::print::expr(&other.expr)
    }

    /// Whether it is a literal.
    pub fn is_literal(&self) -> bool {
        matches!(
            self.expr.kind,
            ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Bool(_)
                | ExprKind::Str(_)
                | ExprKind::None
        )
    }

    /// Whether it is a list of integers written out.
    pub fn is_ints(&self) -> bool {
        let int = |item: &Expr| matches!(item.kind, ExprKind::Int(_));
        matches!(&self.expr.kind, ExprKind::List(items) if !items.is_empty() && items.iter().all(int))
    }

    /// Whether it is a word, a description or a list rather than a number or a flag.
    pub fn is_text(&self) -> bool {
        !matches!(self.ty, ScalarType::Int | ScalarType::Float | ScalarType::Bool)
    }

    /// Whether its Rust type is copied rather than borrowed: a number or flag, given or not.
    pub fn is_copied(&self) -> bool {
        matches!(self.ty.plain(), ScalarType::Int | ScalarType::Float | ScalarType::Bool)
    }

    /// The truth it stands for, where that is known already.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.expr.kind {
            ExprKind::Bool(value) => Some(*value),
            ExprKind::Int(value) => Some(*value != 0),
            ExprKind::None => Some(false),
            ExprKind::Str(_) => Some(true),
            _ => None,
        }
    }
}

impl ScalarType {
    /// The type without `?`.
    pub fn plain(&self) -> &ScalarType {
        match self {
            ScalarType::Nullable(inner) => inner.plain(),
            other => other,
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self.plain(), ScalarType::Int | ScalarType::Float | ScalarType::Json)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarType::Int => f.write_str("int"),
            ScalarType::Float => f.write_str("float"),
            ScalarType::Bool => f.write_str("bool"),
            ScalarType::Str => f.write_str("str"),
            ScalarType::Rope => f.write_str("rope"),
            ScalarType::Json => f.write_str("json"),
            ScalarType::None => f.write_str("none"),
            ScalarType::List(inner) => write!(f, "list of {inner}"),
            ScalarType::Nullable(inner) => write!(f, "{inner}?"),
        }
    }
}

/// The type a config key has in expressions.
pub fn scalar_of_config(key: &ConfigKey) -> ScalarType {
    let ty = declared_scalar(key);
    // JSON has a null of its own.
    if ty == ScalarType::Json {
        return ty;
    }
    if key.nullable && key.default.is_none() { ScalarType::Nullable(Box::new(ty)) } else { ty }
}

/// The type a config key declares, its `?` aside.
pub fn declared_scalar(key: &ConfigKey) -> ScalarType {
    let list = |inner| ScalarType::List(Box::new(inner));
    match &key.ty {
        ConfigType::Int => ScalarType::Int,
        ConfigType::Float => ScalarType::Float,
        ConfigType::Bool => ScalarType::Bool,
        ConfigType::Str | ConfigType::Enum(_) => ScalarType::Str,
        ConfigType::Ints => list(ScalarType::Int),
        ConfigType::Floats => list(ScalarType::Float),
        ConfigType::Strs => list(ScalarType::Str),
        ConfigType::Bools => list(ScalarType::Bool),
        ConfigType::Rope => ScalarType::Rope,
        ConfigType::Json => ScalarType::Json,
    }
}

/// The type that holds values of both.
pub fn join(a: &ScalarType, b: &ScalarType) -> ScalarType {
    match (a, b) {
        _ if a == b => a.clone(),
        (ScalarType::None, ScalarType::Nullable(_)) => b.clone(),
        (ScalarType::Nullable(_), ScalarType::None) => a.clone(),
        (ScalarType::None, other) | (other, ScalarType::None) => {
            ScalarType::Nullable(Box::new(other.clone()))
        }
        (ScalarType::Nullable(a), b) | (b, ScalarType::Nullable(a)) => {
            ScalarType::Nullable(Box::new(join(a, b.plain())))
        }
        (ScalarType::Int, ScalarType::Float) | (ScalarType::Float, ScalarType::Int) => {
            ScalarType::Float
        }
        // Only these pairs reach here: a list without elements takes the other's element type.
        (ScalarType::List(inner), other) | (other, ScalarType::List(inner))
            if **inner == ScalarType::None =>
        {
            other.clone()
        }
        _ => ScalarType::Json,
    }
}

/// The type of a number that keeps its own; json stands for an integer.
pub(crate) fn integer_or_float(ty: &ScalarType) -> ScalarType {
    if *ty.plain() == ScalarType::Float { ScalarType::Float } else { ScalarType::Int }
}
