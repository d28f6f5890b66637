//! `if` and `match`: decided now where everything is known, else an enum settled at load.

use std::collections::HashMap;

use super::blocks::flatten;
use super::{Frame, Lowerer, Value, names};
use crate::diag::{Code, Diagnostic};
use crate::ir::{
    Arm, ArmBody, Field, FieldKind, Home, Operand, Scalar, ScalarType, Statement, Variable,
};
use crate::shapes::show;
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Body, BodyEq, Expr, ExprKind, MatchArm};

/// One arm with its condition; the last may have none.
struct Case<'e> {
    condition: Option<Scalar>,
    body: Option<&'e Body>,
    variant: String,
    span: Span,
}

/// What an arm left behind.
struct Done {
    fields: Vec<Field>,
    statements: Vec<Statement>,
    result: Value,
    scope: HashMap<String, Value>,
}

impl Lowerer<'_> {
    pub(super) fn choice(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        hint: Option<&str>,
        wanted: bool,
    ) -> Option<Value> {
        let cases = match &expr.kind {
            ExprKind::If { condition, then, otherwise } => {
                let condition_value = self.condition_or_presence(frame, condition)?;
                match condition_value.as_bool() {
                    Some(true) => return self.body(frame, &then.0, hint),
                    Some(false) => {
                        return match otherwise {
                            Some(body) => self.body(frame, &body.0, hint),
                            None => Some(Value::None),
                        };
                    }
                    None => vec![
                        Case {
                            variant: variant_of(&condition_value.expr, true),
                            condition: Some(condition_value.clone()),
                            body: Some(&then.0),
                            span: then.0.span,
                        },
                        Case {
                            variant: variant_of(&condition_value.expr, false),
                            condition: None,
                            body: otherwise.as_ref().map(|body| &body.0),
                            span: otherwise.as_ref().map_or(expr.span, |body| body.0.span),
                        },
                    ],
                }
            }
            ExprKind::Match { subject, arms } => {
                let cases = self.match_cases(frame, subject, arms, expr.span)?;
                match cases.first() {
                    Some(Case { condition: None, body: Some(body), .. }) => {
                        return self.body(frame, body, hint);
                    }
                    Some(_) => cases,
                    None => return Some(Value::None),
                }
            }
            _ => return self.expr(frame, expr, hint),
        };
        let refined = match &expr.kind {
            ExprKind::If { condition, .. } => name_of(condition),
            _ => None,
        };
        self.run_cases(frame, cases, refined, expr.span, hint, wanted)
    }

    /// `if x` where `x` is an optional array: its presence, where the config settles it.
    fn condition_or_presence(&mut self, frame: &mut Frame, condition: &Expr) -> Option<Scalar> {
        if let ExprKind::Unary(crate::syntax::ast::UnaryOp::Not, inner) = &condition.kind
            && name_of(inner).is_some_and(|name| frame.find(name).is_some_and(Value::is_array))
        {
            let scalar = self.condition_or_presence(frame, inner)?;
            return self.unary(crate::syntax::ast::UnaryOp::Not, scalar, condition.span);
        }
        if let Some(name) = name_of(condition)
            && let Some(Value::Array { optional, present, .. }) = frame.find(name)
        {
            return match (optional, present) {
                (false, _) => Some(Scalar::literal(ExprKind::Bool(true), condition.span)),
                (true, Some(present)) => Some((**present).clone()),
                (true, None) => {
                    let message =
                        format!("whether `{name}` is there is not known when the model is loaded");
                    self.error(Code::NotConfiguration, condition.span, message);
                    None
                }
            };
        }
        self.condition(frame, condition)
    }

    fn match_cases<'e>(
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
            });
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

    /// Every word a value can be, where the manifest says so.
    fn words_of(&self, subject: &Scalar) -> Option<Vec<String>> {
        match &subject.expr.kind {
            ExprKind::Name(name) => match &self.config.get(name.as_str())?.ty {
                crate::manifest::ConfigType::Enum(words) => Some(words.clone()),
                _ => None,
            },
            ExprKind::Attr(_, key) if key.node == "kind" => {
                Some(self.manifest.layers.kinds.iter().map(|kind| kind.name.node.clone()).collect())
            }
            _ => None,
        }
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

    fn run_cases(
        &mut self,
        frame: &mut Frame,
        cases: Vec<Case<'_>>,
        refined: Option<&str>,
        span: Span,
        hint: Option<&str>,
        wanted: bool,
    ) -> Option<Value> {
        let before = frame.scopes.last().cloned().unwrap_or_default();
        let bound = frame.bound.clone();
        let tuple_names = std::mem::take(&mut frame.tuple_names);
        let mut done = Vec::new();
        let mut fine = true;
        for (at, case) in cases.iter().enumerate() {
            frame.open(Home::Bound);
            // Inside `if x`, an optional array `x` is there.
            if at == 0
                && let Some(name) = refined
                && let Some(value @ Value::Array { optional: true, .. }) = frame.find(name).cloned()
            {
                let inner = self.unwrapped(frame, &value, name, case.span);
                frame.set(name, inner);
            }
            let result = match case.body {
                Some(body) => self.body(frame, body, hint),
                None => Some(Value::None),
            };
            let (fields, statements) = frame.close();
            let scope = frame.scopes.last().cloned().unwrap_or_default();
            if let Some(last) = frame.scopes.last_mut() {
                last.clone_from(&before);
            }
            frame.bound.clone_from(&bound);
            match result {
                Some(result) => done.push(Done { fields, statements, result, scope }),
                None => fine = false,
            }
        }
        frame.tuple_names = tuple_names;
        if !fine {
            return None;
        }
        self.merge(frame, cases, done, &before, refined, span, hint, wanted)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one step of `run_cases`, kept apart for its length"
    )]
    fn merge(
        &mut self,
        frame: &mut Frame,
        cases: Vec<Case<'_>>,
        mut done: Vec<Done>,
        before: &HashMap<String, Value>,
        refined: Option<&str>,
        span: Span,
        hint: Option<&str>,
        wanted: bool,
    ) -> Option<Value> {
        // Names that some arm assigned, in a fixed order.
        let mut changed: Vec<String> = Vec::new();
        for arm in &done {
            for (name, value) in &arm.scope {
                let was = before.get(name);
                let everywhere =
                    was.is_some() || done.iter().all(|arm| arm.scope.contains_key(name));
                let unwrapped = refined == Some(name.as_str());
                if everywhere && !unwrapped && was != Some(value) && !changed.contains(name) {
                    changed.push(name.clone());
                }
            }
        }
        changed.sort();
        let results: Vec<Vec<Value>> = if wanted {
            done.iter().map(|arm| flatten(arm.result.clone())).collect()
        } else {
            vec![Vec::new(); done.len()]
        };
        let count = results.first().map_or(0, Vec::len);
        if results.iter().any(|values| values.len() != count) {
            self.error(Code::ArmsDisagree, span, "the arms yield different numbers of values");
            return None;
        }
        let mut merged: Vec<(Option<String>, Vec<Value>)> = Vec::new();
        for name in changed {
            let values =
                done.iter().map(|arm| arm.scope.get(&name).cloned().unwrap_or(Value::None));
            merged.push((Some(name.clone()), values.collect()));
        }
        for at in 0..count {
            let values = results.iter().filter_map(|values| values.get(at).cloned()).collect();
            merged.push((None, values));
        }
        let wanted_name = hint.unwrap_or("chosen").to_owned();
        let needs_enum = done.iter().any(|arm| !arm.statements.is_empty())
            || merged.iter().any(|(_, values)| values.iter().any(Value::is_array));
        let mut outputs: Vec<Value> = Vec::new();
        let mut vars: Vec<Variable> = Vec::new();
        let mut yields: Vec<Vec<Operand>> = vec![Vec::new(); done.len()];
        let tuple_names = std::mem::take(&mut frame.tuple_names);
        let mut tuple = tuple_names.iter();
        for (name, values) in &merged {
            if values.iter().all(|value| matches!(value, Value::Scalar(_)) || *value == Value::None)
                && values.iter().any(|value| matches!(value, Value::Scalar(_)))
            {
                let value = self.merged_scalar(&cases, values, span);
                match name {
                    Some(name) => frame.set(name, Value::Scalar(value)),
                    None => outputs.push(Value::Scalar(value)),
                }
                continue;
            }
            if values.iter().all(|value| *value == Value::None) {
                match name {
                    Some(name) => frame.set(name, Value::None),
                    None => outputs.push(Value::None),
                }
                continue;
            }
            let (shape, optional) = self.merged_shape(&cases, values, span)?;
            let present = self.presence_of(&cases, values, optional, span);
            for (arm, value) in yields.iter_mut().zip(values) {
                arm.push(match value {
                    Value::Array { operand, .. } => operand.clone(),
                    _ => Operand::None,
                });
            }
            let rust = match (name, tuple.next()) {
                (Some(name), _) => frame.variable(name),
                (None, Some(part)) if count > 1 => frame.variable(part),
                (None, _) if count == 1 => frame.result_name(hint, &wanted_name),
                (None, _) => frame.temporary(&wanted_name),
            };
            let variable = Variable { name: rust, shape, optional };
            let mut value = Value::of(&variable);
            if let Value::Array { present: slot, .. } = &mut value {
                *slot = present.map(Box::new);
            }
            vars.push(variable);
            match name {
                Some(name) => frame.set(name, value),
                None => outputs.push(value),
            }
        }
        if needs_enum && (!vars.is_empty() || done.iter().any(|arm| !arm.fields.is_empty())) {
            self.choice_statement(frame, &cases, &mut done, vars, yields, span, &wanted_name);
        }
        Some(match outputs.len() {
            0 => Value::None,
            1 => outputs.remove(0),
            _ => Value::Tuple(outputs),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `merge`, kept apart for its length")]
    fn choice_statement(
        &mut self,
        frame: &mut Frame,
        cases: &[Case<'_>],
        done: &mut Vec<Done>,
        vars: Vec<Variable>,
        yields: Vec<Vec<Operand>>,
        span: Span,
        wanted: &str,
    ) {
        let hint = vars.first().map_or(wanted, |var| var.name.as_str());
        let wanted = done
            .iter()
            .flat_map(|arm| &arm.fields)
            .find(|field| matches!(field.kind, FieldKind::Block { .. }))
            .map_or(hint, |field| field.name.as_str())
            .to_owned();
        let base = format!("{}{}", frame.owner, names::type_name(&wanted));
        let mut name = base.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{base}{number}");
            number += 1;
        }
        let mut arms = Vec::new();
        let mut bodies = Vec::new();
        let mut variants: Vec<String> = Vec::new();
        for ((case, arm), yields) in cases.iter().zip(done.drain(..)).zip(yields) {
            if let Some(condition) = &case.condition {
                self.note_uses(frame, &condition.expr);
            }
            let mut variant = case.variant.clone();
            while variants.contains(&variant) {
                variant.push('2');
            }
            variants.push(variant.clone());
            bodies.push(ArmBody {
                variant: variant.clone(),
                binds: arm.fields.iter().map(|field| field.name.clone()).collect(),
                body: arm.statements,
                yields,
            });
            arms.push(Arm { variant, condition: case.condition.clone(), fields: arm.fields });
        }
        let field = frame.field(&wanted, FieldKind::Choice { name: name.clone(), arms }, span);
        frame.push(Statement::Choice { field, name, vars, arms: bodies, span });
    }

    fn merged_scalar(&mut self, cases: &[Case<'_>], values: &[Value], span: Span) -> Scalar {
        let mut result: Option<Scalar> = None;
        for (case, value) in cases.iter().zip(values).rev() {
            let value = match value {
                Value::Scalar(scalar) => scalar.clone(),
                _ => Scalar::literal(ExprKind::None, span),
            };
            result = Some(match (result, &case.condition) {
                (Some(rest), Some(condition)) => {
                    let ty = super::scalar::join(&value.ty, &rest.ty);
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
        result.unwrap_or_else(|| Scalar::literal(ExprKind::None, span))
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
        let mut scalar = self.merged_scalar(cases, &parts?, span);
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

fn name_of(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        _ => None,
    }
}

fn pattern_text(pattern: &Expr) -> Option<&str> {
    match &pattern.kind {
        ExprKind::Name(word) | ExprKind::Str(word) => Some(word),
        _ => None,
    }
}

/// A variant's name for a condition that holds, or does not.
fn variant_of(condition: &Expr, holds: bool) -> String {
    let word = match &condition.kind {
        ExprKind::Name(name) => Some(names::type_name(name)),
        ExprKind::Attr(_, key) => Some(names::type_name(&key.node)),
        ExprKind::Call(call) if call.callee.node == "has" => Some("Present".to_owned()),
        ExprKind::Binary(BinaryOp::Ne, left, _) | ExprKind::Binary(BinaryOp::Else, left, _) => {
            return variant_of(left, holds);
        }
        ExprKind::Binary(BinaryOp::Eq, _, right) => match &right.kind {
            ExprKind::Str(word) => Some(names::type_name(word)),
            _ => None,
        },
        ExprKind::Unary(crate::syntax::ast::UnaryOp::Not, inner) => {
            return variant_of(inner, !holds);
        }
        _ => None,
    };
    match (word, holds) {
        (Some(word), true) => word,
        (Some(word), false) => format!("No{word}"),
        (None, true) => "Yes".to_owned(),
        (None, false) => "No".to_owned(),
    }
}
