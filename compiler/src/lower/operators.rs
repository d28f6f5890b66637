//! Operators where arrays may take part; those on values of the config alone are in `arithmetic`.

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Operand, Scalar, ScalarType};
use crate::shapes::{Poly, Shape, show};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};

impl Lowerer<'_> {
    pub(super) fn operator(
        &mut self,
        frame: &mut Frame,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne)
            && let Some(found) = self.word_comparison(frame, op, left, right, span)
        {
            return found.map(Value::Scalar);
        }
        // `and` and `or` stop early, so that names in the part that cannot matter may be absent.
        let first = self.expr(frame, left, None);
        if let Some(Value::Scalar(scalar)) = &first
            && let Some(value) = scalar.as_bool()
        {
            match op {
                BinaryOp::And if !value => {
                    return Some(Value::Scalar(Scalar::literal(ExprKind::Bool(false), span)));
                }
                BinaryOp::Or if value => {
                    return Some(Value::Scalar(Scalar::literal(ExprKind::Bool(true), span)));
                }
                _ => {}
            }
        }
        let second = self.expr(frame, right, None);
        let (first, second) = (first?, second?);
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or | BinaryOp::Else)
            && (first.is_array()
                || second.is_array()
                || first == Value::None
                || second == Value::None)
        {
            return self.presence(op, first, second, span);
        }
        match (first, second) {
            (Value::Scalar(a), Value::Scalar(b)) => self.binary(op, a, b, span).map(Value::Scalar),
            (first, second) => {
                let name = match op {
                    BinaryOp::Add => "add",
                    BinaryOp::Sub => "sub",
                    BinaryOp::Mul => "mul",
                    BinaryOp::Div => "div",
                    BinaryOp::Pow => "pow",
                    _ => {
                        let (text, _) = crate::syntax::print::operator(op);
                        self.error(
                            Code::NotConfiguration,
                            span,
                            format!("`{text}` compares values of the configuration, not arrays"),
                        );
                        return None;
                    }
                };
                self.array_operator(
                    frame,
                    name,
                    (first, left.span),
                    (second, right.span),
                    span,
                    hint,
                )
            }
        }
    }

    /// Comparisons with none, and `??`, where arrays or `none` take part.
    fn presence(&mut self, op: BinaryOp, first: Value, second: Value, span: Span) -> Option<Value> {
        let known = |value: &Value| match value {
            Value::None => Some(false),
            Value::Array { optional: false, .. } | Value::Tuple(_) | Value::Broken(_) => Some(true),
            Value::Array { .. } => None,
            Value::Scalar(scalar) => match scalar.ty {
                ScalarType::Nullable(_) | ScalarType::Json => None,
                ScalarType::None => Some(false),
                _ => Some(true),
            },
        };
        let literal = |value| Some(Value::Scalar(Scalar::literal(ExprKind::Bool(value), span)));
        match (op, known(&first), known(&second)) {
            (BinaryOp::Else, Some(true), _) => Some(first),
            (BinaryOp::Else, Some(false), _) => Some(second),
            (BinaryOp::Eq, Some(a), Some(b)) if !(a && b) => literal(a == b),
            (BinaryOp::Ne, Some(a), Some(b)) if !(a && b) => literal(a != b),
            (BinaryOp::And, Some(false), _) => literal(false),
            (BinaryOp::Or, Some(true), _) => literal(true),
            (BinaryOp::And | BinaryOp::Or, _, _) => {
                let as_scalar = |value: &Value| match (known(value), value) {
                    (_, Value::Scalar(scalar)) => Some(scalar.clone()),
                    (Some(value), _) => Some(Scalar::literal(ExprKind::Bool(value), span)),
                    _ => None,
                };
                let (a, b) = (as_scalar(&first)?, as_scalar(&second)?);
                self.binary(op, a, b, span).map(Value::Scalar)
            }
            _ => match (first, second) {
                (Value::Scalar(a), Value::None) | (Value::None, Value::Scalar(a)) => {
                    let none = Scalar::literal(ExprKind::None, span);
                    self.binary(op, a, none, span).map(Value::Scalar)
                }
                (Value::Scalar(a), Value::Scalar(b)) => {
                    self.binary(op, a, b, span).map(Value::Scalar)
                }
                (first, second) => {
                    let error = Diagnostic::error(
                        Code::NotConfiguration,
                        span,
                        "whether this array is there is not known when the model is loaded",
                    );
                    let word = |value: &Value| matches!(value, Value::Scalar(scalar) if *scalar.ty.plain() == ScalarType::Str);
                    self.diagnostics.push(match word(&first) || word(&second) {
                        true => error.help(
                            "where the word is meant that an array here has for its name, it stands in quotes",
                        ),
                        false => error,
                    });
                    None
                }
            },
        }
    }

    /// `qk_norm == head`: one side is a word when the other is a word and nothing has its name.
    fn word_comparison(
        &mut self,
        frame: &mut Frame,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Option<Option<Scalar>> {
        let none = "none".to_owned();
        let (subject, word, at) = match (&left.kind, &right.kind) {
            (_, ExprKind::Name(word)) if !self.resolves(frame, word) => (left, word, right.span),
            (ExprKind::Name(word), _) if !self.resolves(frame, word) => (right, word, left.span),
            // `none` is itself a word where the other side is one of a list of words.
            (ExprKind::Name(name), ExprKind::None) if self.is_word(frame, name) => {
                (left, &none, right.span)
            }
            _ => return None,
        };
        let kept = self.diagnostics.len();
        let Some(scalar) = self.scalar(frame, subject) else { return Some(None) };
        if *scalar.ty.plain() != ScalarType::Str {
            self.diagnostics.truncate(kept);
            return None;
        }
        let word = Scalar::literal(ExprKind::Str(word.clone()), at);
        Some(self.binary(op, scalar, word, span))
    }

    /// Whether a name stands for a word of a parameter's list.
    fn is_word(&self, frame: &Frame, name: &str) -> bool {
        matches!(frame.find(name), Some(Value::Scalar(scalar)) if scalar.ty == ScalarType::Str)
    }

    fn array_operator(
        &mut self,
        frame: &mut Frame,
        name: &str,
        (first, first_span): (Value, Span),
        (second, second_span): (Value, Span),
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        let wanted = match name {
            "add" => "sum",
            "sub" => "difference",
            "mul" => "product",
            "div" => "quotient",
            _ => "power",
        };
        match (first, second) {
            (
                Value::Array { operand: a, shape: left, optional: false, .. },
                Value::Array { operand: b, shape: right, optional: false, .. },
            ) => {
                let Some(shape) = self.broadcast(&left, &right) else {
                    let error = Diagnostic::error(Code::ShapeMismatch, span, "shapes do not agree")
                        .label(first_span, format!("this is {}", show(&left)))
                        .label(second_span, format!("this is {}", show(&right)));
                    self.diagnostics.push(match self.differing(&left, &right) {
                        Some((a, b)) => error.help(format!(
                            "`{a}` and `{b}` must be equal, or one of them 1; if they are equal for every config, say so under [checks]: \"{a} == {b}\""
                        )),
                        None => error,
                    });
                    return None;
                };
                let var = frame.result_name(hint, wanted);
                Some(self.emit_op(frame, var, &format!("ops::{name}"), vec![a, b], shape, span))
            }
            (Value::Array { operand, shape, optional: false, .. }, Value::Scalar(scalar)) => {
                let scalar = self.float_operand(frame, scalar, second_span, wanted)?;
                let var = frame.result_name(hint, wanted);
                let path = format!("ops::{name}_scalar");
                Some(self.emit_op(frame, var, &path, vec![operand, scalar], shape, span))
            }
            (Value::Scalar(scalar), Value::Array { operand, shape, optional: false, .. }) => {
                let scalar = self.float_operand(frame, scalar, first_span, wanted)?;
                let var = frame.result_name(hint, wanted);
                let (path, args) = match name {
                    "add" | "mul" => (format!("ops::{name}_scalar"), vec![operand, scalar]),
                    _ => (format!("ops::scalar_{name}"), vec![scalar, operand]),
                };
                Some(self.emit_op(frame, var, &path, args, shape, span))
            }
            (first, second) => {
                let (span, value) = match first {
                    Value::Array { optional: false, .. } | Value::Scalar(_) => {
                        (second_span, second)
                    }
                    first => (first_span, first),
                };
                self.wrong_operand(span, &value)
            }
        }
    }

    fn float_operand(
        &mut self,
        frame: &mut Frame,
        scalar: Scalar,
        span: Span,
        wanted: &str,
    ) -> Option<Operand> {
        match scalar.ty.plain() {
            ScalarType::Int | ScalarType::Float | ScalarType::Json => {
                let scalar = Scalar { expr: scalar.expr, ty: ScalarType::Float };
                Some(self.scalar_operand(frame, scalar, wanted))
            }
            other => {
                let message = format!("an array cannot be combined with {other}");
                self.error(Code::WrongType, span, message);
                None
            }
        }
    }

    /// The last sizes of two shapes that do not go together.
    fn differing(&self, a: &[Poly], b: &[Poly]) -> Option<(Poly, Poly)> {
        let one = Poly::int(1);
        let pairs = a.iter().rev().zip(b.iter().rev());
        pairs
            .filter(|(a, b)| **a != one && **b != one && !self.facts.same(a, b))
            .map(|(a, b)| (a.clone(), b.clone()))
            .next()
    }

    /// The shape two arrays have together, or none where some axis cannot agree.
    pub(super) fn broadcast(&self, a: &[Poly], b: &[Poly]) -> Option<Shape> {
        let rank = a.len().max(b.len());
        let one = Poly::int(1);
        let at = |shape: &[Poly], axis: usize| {
            (axis + shape.len()).checked_sub(rank).and_then(|axis| shape.get(axis).cloned())
        };
        (0..rank)
            .map(|axis| match (at(a, axis), at(b, axis)) {
                (Some(a), Some(b)) if self.facts.same(&a, &b) => Some(a),
                (Some(a), Some(b)) if a == one => Some(b),
                (Some(a), Some(b)) if b == one => Some(a),
                (Some(_), Some(_)) => None,
                (Some(size), None) | (None, Some(size)) => Some(size),
                (None, None) => None,
            })
            .collect()
    }
}
