//! Operators on values of the config: their types, and folding of what is known already.

use specc_checkpoint::scalar;

use super::Lowerer;
use crate::diag::{Code, Diagnostic, one_of};
use crate::ir::{Scalar, ScalarType, integer_or_float, join};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

impl Lowerer<'_> {
    pub(super) fn unary(&mut self, op: UnaryOp, inner: Scalar, span: Span) -> Option<Scalar> {
        let folded = match (op, &inner.expr.kind) {
            (UnaryOp::Neg, ExprKind::Int(value)) => scalar::int_neg(*value).ok().map(ExprKind::Int),
            (UnaryOp::Neg, ExprKind::Float(value)) => Some(ExprKind::Float(-value)),
            (UnaryOp::Not, _) => inner.as_bool().map(|value| ExprKind::Bool(!value)),
            _ => None,
        };
        if let Some(kind) = folded {
            return Some(Scalar::literal(kind, span));
        }
        let ty = match op {
            UnaryOp::Not => ScalarType::Bool,
            UnaryOp::Neg if inner.ty.is_number() => integer_or_float(&inner.ty),
            UnaryOp::Neg => {
                let message = format!("`-` needs a number, and this is {}", inner.ty);
                self.error(Code::WrongType, inner.expr.span, message);
                return None;
            }
        };
        let inner = if op == UnaryOp::Not { truth(inner) } else { inner };
        Some(Scalar { expr: Expr { span, kind: ExprKind::Unary(op, Box::new(inner.expr)) }, ty })
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: Scalar,
        right: Scalar,
        span: Span,
    ) -> Option<Scalar> {
        let found = self.binary_as_written(op, left, right, span)?;
        Some(self.settled(found))
    }

    fn binary_as_written(
        &mut self,
        op: BinaryOp,
        left: Scalar,
        right: Scalar,
        span: Span,
    ) -> Option<Scalar> {
        if let Some(kind) = fold(op, &left, &right) {
            return Some(Scalar::literal(kind, span));
        }
        let ty = match op {
            BinaryOp::And | BinaryOp::Or => return Some(logic(op, left, right, span)),
            BinaryOp::Else => return self.fallback(left, right, span),
            BinaryOp::Eq | BinaryOp::Ne => self.comparable(&left, &right, span)?,
            BinaryOp::In => self.searchable(&right)?,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.numbers(op, [&left, &right])?;
                ScalarType::Bool
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::Rem
            | BinaryOp::Pow => {
                self.numbers(op, [&left, &right])?;
                let float =
                    [&left, &right].iter().any(|side| *side.ty.plain() == ScalarType::Float);
                let fraction = op == BinaryOp::Div
                    || (op == BinaryOp::Pow && !matches!(right.expr.kind, ExprKind::Int(0..)));
                if float || fraction { ScalarType::Float } else { ScalarType::Int }
            }
        };
        Some(join_binary(op, left, right, span, ty))
    }

    /// The type of `==` and `!=`.
    fn comparable(&mut self, left: &Scalar, right: &Scalar, span: Span) -> Option<ScalarType> {
        let (l, r) = (left.ty.plain(), right.ty.plain());
        let open = |ty: &ScalarType| matches!(ty, ScalarType::None | ScalarType::Json);
        let meet = l == r || open(l) || open(r) || (l.is_number() && r.is_number());
        if !meet {
            let told = |side: &Scalar| {
                format!("`{}` is {}", crate::syntax::print::expr(&side.expr), side.ty)
            };
            let message = format!("{} and {}: they are never equal", told(left), told(right));
            self.error(Code::WrongType, span, message);
            return None;
        }
        if self.impossible(left, right) || self.impossible(right, left) {
            return None;
        }
        Some(ScalarType::Bool)
    }

    /// The type of `in`.
    fn searchable(&mut self, list: &Scalar) -> Option<ScalarType> {
        if matches!(list.ty.plain(), ScalarType::List(_) | ScalarType::Str | ScalarType::Json) {
            return Some(ScalarType::Bool);
        }
        let message = format!("`in` needs a list or a word, and this is {}", list.ty);
        self.error(Code::WrongType, list.expr.span, message);
        None
    }

    /// `left ?? right`
    fn fallback(&mut self, left: Scalar, right: Scalar, span: Span) -> Option<Scalar> {
        if left.ty == ScalarType::None {
            return Some(right);
        }
        if !matches!(left.ty, ScalarType::Nullable(_) | ScalarType::Json) {
            return Some(left);
        }
        let (l, r) = (left.ty.plain().clone(), right.ty.plain().clone());
        let ty = match (l, r) {
            (ScalarType::Json, r @ (ScalarType::List(_) | ScalarType::Rope)) => {
                let message =
                    format!("json falls back on a number, word or switch, and this is {r}");
                self.error(Code::WrongType, right.expr.span, message);
                return None;
            }
            (ScalarType::Json, ScalarType::None) => ScalarType::Json,
            (ScalarType::Json, r) => r,
            (l, r) => match join(&l, &right.ty) {
                ScalarType::Json if r != ScalarType::Json => {
                    let message = format!("the sides of `??` are {l} and {r}: no type holds both");
                    self.error(Code::WrongType, span, message);
                    return None;
                }
                ty => ty,
            },
        };
        Some(join_binary(BinaryOp::Else, left, right, span, ty))
    }

    /// Both sides must be numbers.
    fn numbers(&mut self, op: BinaryOp, sides: [&Scalar; 2]) -> Option<()> {
        let Some(wrong) = sides.into_iter().find(|side| !side.ty.is_number()) else {
            return Some(());
        };
        let (text, _) = crate::syntax::print::operator(op);
        let message = format!("`{text}` needs numbers");
        let error = Diagnostic::error(Code::WrongType, wrong.expr.span, message);
        self.diagnostics.push(error.here(format!("this is {}", wrong.ty)));
        None
    }
}

/// `and` and `or`
fn logic(op: BinaryOp, left: Scalar, right: Scalar, span: Span) -> Scalar {
    let decided = op == BinaryOp::Or;
    match (left.as_bool(), right.as_bool()) {
        (Some(value), _) if value == decided => Scalar::literal(ExprKind::Bool(decided), span),
        (Some(_), _) => truth(right),
        (_, Some(value)) if value != decided => truth(left),
        _ => join_binary(op, truth(left), truth(right), span, ScalarType::Bool),
    }
}

impl Lowerer<'_> {
    /// Reports a word that is none of those a value can be. Only in the family's own documents: what
    /// a base compares with may be a word that this family's key does not have.
    fn impossible(&mut self, subject: &Scalar, word: &Scalar) -> bool {
        let ExprKind::Str(text) = &word.expr.kind else { return false };
        let file = word.expr.span.file;
        if file != self.manifest.file && Some(file) != self.own {
            return false;
        }
        let Some(words) = self.words_of(subject).filter(|words| !words.contains(text)) else {
            return false;
        };
        let words = || words.iter().map(String::as_str);
        let message = format!(
            "`{}` is {}, never `{text}`",
            crate::syntax::print::expr(&subject.expr),
            one_of(words())
        );
        self.diagnostics.push(
            Diagnostic::error(Code::UnknownWord, word.expr.span, message)
                .did_you_mean(text, words()),
        );
        true
    }
}

/// The scalar as a bool.
pub(super) fn truth(scalar: Scalar) -> Scalar {
    if let Some(value) = scalar.as_bool() {
        return Scalar::literal(ExprKind::Bool(value), scalar.expr.span);
    }
    let span = scalar.expr.span;
    let compare = |scalar: Scalar, with: ExprKind| Scalar {
        expr: Expr {
            span,
            kind: ExprKind::Binary(
                BinaryOp::Ne,
                Box::new(scalar.expr),
                Box::new(Expr { span, kind: with }),
            ),
        },
        ty: ScalarType::Bool,
    };
    match &scalar.ty {
        ScalarType::Bool => scalar,
        ScalarType::Int | ScalarType::Float => compare(scalar, ExprKind::Int(0)),
        ScalarType::Nullable(inner)
            if matches!(**inner, ScalarType::Int | ScalarType::Float | ScalarType::Bool) =>
        {
            // Null and zero (or false) both count as no.
            let zero =
                if **inner == ScalarType::Bool { ExprKind::Bool(false) } else { ExprKind::Int(0) };
            let ty = (**inner).clone();
            let filled = Expr {
                span,
                kind: ExprKind::Binary(
                    BinaryOp::Else,
                    Box::new(scalar.expr),
                    Box::new(Expr { span, kind: zero.clone() }),
                ),
            };
            let filled = Scalar { expr: filled, ty: ty.clone() };
            if ty == ScalarType::Bool { filled } else { compare(filled, ExprKind::Int(0)) }
        }
        _ => compare(scalar, ExprKind::None),
    }
}

fn join_binary(op: BinaryOp, left: Scalar, right: Scalar, span: Span, ty: ScalarType) -> Scalar {
    let kind = ExprKind::Binary(op, Box::new(left.expr), Box::new(right.expr));
    Scalar { expr: Expr { span, kind }, ty }
}

/// The value of an operation on literals; floats are left for the program that reads the config.
fn fold(op: BinaryOp, left: &Scalar, right: &Scalar) -> Option<ExprKind> {
    match (&left.expr.kind, &right.expr.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => match op {
            BinaryOp::Add => scalar::plus(*a, *b).ok().map(ExprKind::Int),
            BinaryOp::Sub => scalar::minus(*a, *b).ok().map(ExprKind::Int),
            BinaryOp::Mul => scalar::times(*a, *b).ok().map(ExprKind::Int),
            BinaryOp::FloorDiv => scalar::floor_div(*a, *b).ok().map(ExprKind::Int),
            BinaryOp::Rem => scalar::floor_mod(*a, *b).ok().map(ExprKind::Int),
            BinaryOp::Pow if *b >= 0 => scalar::int_pow(*a, *b).ok().map(ExprKind::Int),
            BinaryOp::Eq => Some(ExprKind::Bool(a == b)),
            BinaryOp::Ne => Some(ExprKind::Bool(a != b)),
            BinaryOp::Lt => Some(ExprKind::Bool(a < b)),
            BinaryOp::Le => Some(ExprKind::Bool(a <= b)),
            BinaryOp::Gt => Some(ExprKind::Bool(a > b)),
            BinaryOp::Ge => Some(ExprKind::Bool(a >= b)),
            _ => None,
        },
        (ExprKind::Str(a), ExprKind::Str(b)) => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(a == b)),
            BinaryOp::Ne => Some(ExprKind::Bool(a != b)),
            _ => None,
        },
        (ExprKind::Bool(a), ExprKind::Bool(b)) => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(a == b)),
            BinaryOp::Ne => Some(ExprKind::Bool(a != b)),
            BinaryOp::And => Some(ExprKind::Bool(*a && *b)),
            BinaryOp::Or => Some(ExprKind::Bool(*a || *b)),
            _ => None,
        },
        (ExprKind::None, ExprKind::None) => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(true)),
            BinaryOp::Ne => Some(ExprKind::Bool(false)),
            _ => None,
        },
        (ExprKind::None, _) if right.is_literal() => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(false)),
            BinaryOp::Ne => Some(ExprKind::Bool(true)),
            _ => None,
        },
        (_, ExprKind::None) if left.is_literal() => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(false)),
            BinaryOp::Ne => Some(ExprKind::Bool(true)),
            _ => None,
        },
        _ => None,
    }
}
