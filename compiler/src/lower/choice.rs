//! `if` and `match`: decided now where everything is known, else an enum settled at load.

use std::collections::HashMap;

use super::Lowerer;
use super::frame::Frame;
use super::merge::{Wanted, changed};
use super::value::Value;
use crate::diag::Code;
use crate::ir::{
    Arm, ArmBody, Field, FieldKind, Home, Operand, Scalar, Statement, Variable, names,
};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Body, Expr, ExprKind};

/// One arm with its condition; the last may have none.
pub(super) struct Case<'e> {
    pub(super) condition: Option<Scalar>,
    pub(super) body: Option<&'e Body>,
    pub(super) variant: String,
    pub(super) span: Span,
}

/// What an arm left behind.
pub(super) struct Done {
    pub(super) fields: Vec<Field>,
    pub(super) statements: Vec<Statement>,
    pub(super) result: Value,
    pub(super) scope: HashMap<String, Value>,
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

    pub(super) fn run_cases(
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
        let changed = changed(&done, &before, refined);
        self.merge(frame, &cases, done, changed, Wanted { span, hint, value: wanted })
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `merge`, kept apart for its length")]
    pub(super) fn choice_statement(
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
}

fn name_of(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
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
