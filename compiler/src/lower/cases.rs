//! The cases of a `match`: the conditions of its arms, and whether they leave a value open.

use super::Lowerer;
use super::choice::Case;
use super::frame::Frame;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Scalar, ScalarType, names};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, MatchArm};

impl Lowerer<'_> {
    pub(super) fn match_cases<'e>(
        &mut self,
        frame: &mut Frame,
        subject: &Expr,
        arms: &'e [MatchArm],
        span: Span,
    ) -> Option<Vec<Case<'e>>> {
        let subject_value = self.scalar(frame, subject)?;
        let mut cases: Vec<Case<'e>> = Vec::new();
        let mut closed = false;
        for arm in arms {
            if closed {
                break;
            }
            let mut condition: Option<Scalar> = None;
            for pattern in &arm.patterns {
                let value = self.pattern(frame, pattern)?;
                let equal =
                    self.binary(BinaryOp::Eq, subject_value.clone(), value, pattern.span)?;
                condition = Some(match condition {
                    None => equal,
                    Some(before) => self.binary(BinaryOp::Or, before, equal, pattern.span)?,
                });
            }
            let known = condition.as_ref().map_or(Some(true), Scalar::as_bool);
            if known == Some(false) {
                continue;
            }
            closed = known == Some(true);
            let variant = match arm.patterns.first().map(|pattern| &pattern.kind) {
                Some(ExprKind::Name(word) | ExprKind::Str(word)) => names::type_name(word),
                Some(ExprKind::Int(value)) => format!("N{value}"),
                _ => "Other".to_owned(),
            };
            let condition = condition.filter(|_| !closed);
            cases.push(Case { condition, body: Some(&arm.body.0), variant, span: arm.span });
        }
        if !closed {
            if cases.is_empty() {
                self.diagnostics.push(
                    Diagnostic::error(Code::UnknownWord, span, "no arm of this `match` is taken")
                        .here(format!(
                            "the value is {}",
                            crate::syntax::print::expr(&subject_value.expr)
                        ))
                        .help("add an arm for it, or `_ => ...` for all others"),
                );
                return None;
            }
            // The words of an enum may all be covered; then the last arm takes what is left.
            let words = self.words_of(&subject_value);
            let covered = words.is_some_and(|words| {
                let mut patterns = arms.iter().flat_map(|arm| &arm.patterns);
                let texts: Vec<&str> = patterns.by_ref().filter_map(pattern_text).collect();
                words.iter().all(|word| texts.contains(&word.as_str()))
            }) || covers_bool(&subject_value, arms);
            if covered {
                if let Some(last) = cases.last_mut() {
                    last.condition = None;
                }
            } else {
                self.diagnostics.push(
                    Diagnostic::error(Code::UnknownWord, span, "this `match` leaves values open")
                        .help("add `_ => ...` for all other values"),
                );
                return None;
            }
        }
        Some(cases)
    }

    fn pattern(&mut self, frame: &mut Frame, pattern: &Expr) -> Option<Scalar> {
        match &pattern.kind {
            ExprKind::None => Some(Scalar::literal(ExprKind::Str("none".to_owned()), pattern.span)),
            ExprKind::Name(word) => {
                Some(Scalar::literal(ExprKind::Str(word.clone()), pattern.span))
            }
            _ => self.scalar(frame, pattern),
        }
    }
}

fn pattern_text(pattern: &Expr) -> Option<&str> {
    match &pattern.kind {
        ExprKind::Name(word) | ExprKind::Str(word) => Some(word),
        _ => None,
    }
}

/// Whether the arms take both values of a bool.
fn covers_bool(subject: &Scalar, arms: &[MatchArm]) -> bool {
    let takes = |value| {
        let mut patterns = arms.iter().flat_map(|arm| &arm.patterns);
        patterns.any(|pattern| pattern.kind == ExprKind::Bool(value))
    };
    subject.ty == ScalarType::Bool && takes(true) && takes(false)
}
