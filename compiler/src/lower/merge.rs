//! What is left after the arms of a choice: names and values that some arm set, made one.

use std::collections::HashMap;

use super::Lowerer;
use super::choice::{Case, Done};
use super::frame::Frame;
use super::value::{Value, flatten};
use crate::diag::{Code, Diagnostic};
use crate::ir::{Operand, Scalar, ScalarType, Variable, join};
use crate::shapes::show;
use crate::source::Span;
use crate::syntax::ast::{Body, BodyEq, Expr, ExprKind};

/// What the place of a choice asks of it.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'n> {
    pub(super) span: Span,
    /// The name that its value is bound to.
    pub(super) hint: Option<&'n str>,
    /// Whether the value itself is asked for, besides the names that arms set.
    pub(super) value: bool,
}

/// Names that some arm set and that have a value behind all of them, in a fixed order.
pub(super) fn changed(
    done: &[Done],
    before: &HashMap<String, Value>,
    refined: Option<&str>,
) -> Vec<String> {
    let mut changed: Vec<String> = Vec::new();
    for arm in done {
        for (name, value) in &arm.scope {
            let was = before.get(name);
            let everywhere = was.is_some() || done.iter().all(|arm| arm.scope.contains_key(name));
            let unwrapped = refined == Some(name.as_str());
            if everywhere && !unwrapped && was != Some(value) && !changed.contains(name) {
                changed.push(name.clone());
            }
        }
    }
    changed.sort();
    changed
}

/// What the values of all arms at one place are.
enum Kind {
    Scalars,
    Nothing,
    Arrays,
}

impl Kind {
    fn of(values: &[Value]) -> Self {
        let scalar = |value: &Value| matches!(value, Value::Scalar(_));
        if values.iter().all(|value| *value == Value::None) {
            Kind::Nothing
        } else if values.iter().all(|value| scalar(value) || *value == Value::None) {
            Kind::Scalars
        } else {
            Kind::Arrays
        }
    }
}

impl Lowerer<'_> {
    /// Makes one of the values that the arms left: of the names in `changed`, and of the results.
    pub(super) fn merge(
        &mut self,
        frame: &mut Frame,
        cases: &[Case<'_>],
        mut done: Vec<Done>,
        changed: Vec<String>,
        wanted: Wanted<'_>,
    ) -> Option<Value> {
        let results = if wanted.value { self.results(cases, &done, wanted.span)? } else { vec![] };
        let count = results.len();
        let of_name = |name: String| {
            let values =
                done.iter().map(|arm| arm.scope.get(&name).cloned().unwrap_or(Value::None));
            let values = values.collect();
            (Some(name), values)
        };
        let mut merged: Vec<(Option<String>, Vec<Value>)> =
            changed.into_iter().map(of_name).collect();
        merged.extend(results.into_iter().map(|values| (None, values)));
        let needs_enum = done.iter().any(|arm| !arm.statements.is_empty())
            || merged.iter().any(|(_, values)| values.iter().any(Value::is_array));
        let mut outputs: Vec<Value> = Vec::new();
        let mut vars: Vec<Variable> = Vec::new();
        let mut yields: Vec<Vec<Operand>> = vec![Vec::new(); done.len()];
        let tuple_names = std::mem::take(&mut frame.tuple_names);
        let mut tuple = tuple_names.iter();
        let chosen = wanted.hint.unwrap_or("chosen");
        for (name, values) in &merged {
            let value = match Kind::of(values) {
                Kind::Scalars => Value::Scalar(self.merged_scalar(cases, values, wanted.span)?),
                Kind::Nothing => Value::None,
                Kind::Arrays => {
                    let (shape, optional) = self.merged_shape(cases, values, wanted.span)?;
                    let present = self.presence_of(cases, values, optional, wanted.span);
                    for (arm, value) in yields.iter_mut().zip(values) {
                        arm.push(match value {
                            Value::Array { operand, .. } => operand.clone(),
                            _ => Operand::None,
                        });
                    }
                    let rust = match (name, tuple.next()) {
                        (Some(name), _) => frame.variable(name),
                        (None, Some(part)) if count > 1 => frame.variable(part),
                        (None, _) if count == 1 => frame.result_name(wanted.hint, chosen),
                        (None, _) => frame.temporary(chosen),
                    };
                    let variable = Variable { name: rust, shape, optional };
                    let mut value = Value::of(&variable);
                    if let Value::Array { present: slot, .. } = &mut value {
                        *slot = present.map(Box::new);
                    }
                    vars.push(variable);
                    value
                }
            };
            match name {
                Some(name) => frame.set(name, value),
                None => outputs.push(value),
            }
        }
        if needs_enum && (!vars.is_empty() || done.iter().any(|arm| !arm.fields.is_empty())) {
            self.choice_statement(frame, cases, &mut done, vars, yields, wanted.span, chosen);
        }
        Some(match outputs.len() {
            0 => Value::None,
            1 => outputs.remove(0),
            _ => Value::Tuple(outputs),
        })
    }

    /// The values that the arms yield: for each place those of all arms.
    fn results(
        &mut self,
        cases: &[Case<'_>],
        done: &[Done],
        span: Span,
    ) -> Option<Vec<Vec<Value>>> {
        let results: Vec<Vec<Value>> = done.iter().map(|arm| flatten(arm.result.clone())).collect();
        let count = results.first().map_or(0, Vec::len);
        if results.iter().any(|values| values.len() != count) {
            let mut error = Diagnostic::error(
                Code::ArmsDisagree,
                span,
                "the arms yield different numbers of values",
            );
            for (case, values) in cases.iter().zip(&results) {
                error = error.label(case.span, format!("this yields {}", values.len()));
            }
            self.diagnostics.push(error);
            return None;
        }
        let at = |at: usize| results.iter().filter_map(|values| values.get(at).cloned()).collect();
        Some((0..count).map(at).collect())
    }

    fn merged_scalar(
        &mut self,
        cases: &[Case<'_>],
        values: &[Value],
        span: Span,
    ) -> Option<Scalar> {
        let mut result: Option<Scalar> = None;
        for (case, value) in cases.iter().zip(values).rev() {
            let value = match value {
                Value::Scalar(scalar) => scalar.clone(),
                _ => Scalar::literal(ExprKind::None, span),
            };
            result = Some(match (result, &case.condition) {
                (Some(rest), Some(condition)) => {
                    let ty = join(&value.ty, &rest.ty);
                    if *ty.plain() == ScalarType::Json && !fits_json(&value, &rest) {
                        let message = format!(
                            "the arms yield {} and {}: no type holds both",
                            value.ty, rest.ty
                        );
                        self.error(Code::ArmsDisagree, span, message);
                        return None;
                    }
                    let wrap = |expr: Expr| {
                        Box::new(BodyEq(Body {
                            span: expr.span,
                            statements: Vec::new(),
                            result: Some(Box::new(expr)),
                        }))
                    };
                    let kind = ExprKind::If {
                        condition: Box::new(condition.expr.clone()),
                        then: wrap(value.expr),
                        otherwise: Some(wrap(rest.expr)),
                    };
                    Scalar { expr: Expr { span, kind }, ty }
                }
                _ => value,
            });
        }
        Some(result.unwrap_or_else(|| Scalar::literal(ExprKind::None, span)))
    }

    fn merged_shape(
        &mut self,
        cases: &[Case<'_>],
        values: &[Value],
        span: Span,
    ) -> Option<(crate::shapes::Shape, bool)> {
        let mut found: Option<(crate::shapes::Shape, Span)> = None;
        let mut optional = false;
        for (case, value) in cases.iter().zip(values) {
            match value {
                Value::None => optional = true,
                Value::Array { shape, optional: absent, .. } => {
                    optional |= absent;
                    match &found {
                        None => found = Some((shape.clone(), case.span)),
                        Some((first, at)) => {
                            let same = first.len() == shape.len()
                                && first.iter().zip(shape).all(|(a, b)| self.facts.same(a, b));
                            if !same {
                                self.diagnostics.push(
                                    Diagnostic::error(
                                        Code::ArmsDisagree,
                                        span,
                                        "the arms yield arrays of different shapes",
                                    )
                                    .label(*at, format!("this is {}", show(first)))
                                    .label(case.span, format!("this is {}", show(shape))),
                                );
                                return None;
                            }
                        }
                    }
                }
                other => {
                    let message = format!("one arm yields an array, this one {}", other.describe());
                    self.error(Code::ArmsDisagree, case.span, message);
                    return None;
                }
            }
        }
        found.map(|(shape, _)| (shape, optional))
    }

    /// The condition under which a merged array is there, where each arm is sure.
    fn presence_of(
        &mut self,
        cases: &[Case<'_>],
        values: &[Value],
        optional: bool,
        span: Span,
    ) -> Option<Scalar> {
        if !optional {
            return None;
        }
        let parts: Option<Vec<Value>> = values
            .iter()
            .map(|value| match value {
                Value::None => Some(ExprKind::Bool(false)),
                Value::Array { optional: false, .. } => Some(ExprKind::Bool(true)),
                _ => None,
            })
            .map(|kind| kind.map(|kind| Value::Scalar(Scalar::literal(kind, span))))
            .collect();
        let mut scalar = self.merged_scalar(cases, &parts?, span)?;
        scalar.ty = ScalarType::Bool;
        // `c ? true : false` is c itself.
        if let ([Case { condition: Some(condition), .. }, _], [Value::Array { .. }, Value::None]) =
            (cases, values)
        {
            return Some(condition.clone());
        }
        Some(scalar)
    }
}

/// Whether json comes of two values that are json, or of one and nothing.
fn fits_json(a: &Scalar, b: &Scalar) -> bool {
    let json = |one: &Scalar| matches!(one.ty.plain(), ScalarType::Json | ScalarType::None);
    json(a) && json(b)
}
