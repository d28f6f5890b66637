//! Bodies: statements in their order, and the values that a block ends in.

use super::Lowerer;
use super::frame::Frame;
use super::sizes::Bound;
use super::value::{Value, flatten};
use crate::diag::{Code, Diagnostic};
use crate::ir::Operand;
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Block, Body, Expr, ParamType, Statement as Written};

impl Lowerer<'_> {
    /// The statements of a body and its value.
    pub(super) fn body(
        &mut self,
        frame: &mut Frame,
        body: &Body,
        hint: Option<&str>,
    ) -> Option<Value> {
        let mut fine = true;
        let outer_names = std::mem::take(&mut frame.tuple_names);
        for statement in &body.statements {
            fine &= self.statement(frame, statement).is_some();
        }
        frame.tuple_names = outer_names;
        let value = match &body.result {
            Some(result) => self.expr(frame, result, hint),
            None => Some(Value::None),
        };
        value.filter(|_| fine)
    }

    pub(super) fn statement(&mut self, frame: &mut Frame, statement: &Written) -> Option<()> {
        match statement {
            Written::Assign { targets, value, span } => self.assign(frame, targets, value, *span),
            Written::Choice(choice) => self.choice(frame, choice, None, false).map(|_| ()),
            Written::For { index, over, body, span } => {
                self.repeat(frame, index, over, body, *span)
            }
        }
    }

    fn assign(
        &mut self,
        frame: &mut Frame,
        targets: &[Spanned<String>],
        value: &Expr,
        span: Span,
    ) -> Option<()> {
        for target in targets {
            let index = frame.visible.contains(&target.node);
            // The library's variables hide keys that its author cannot know.
            let hides = self.own == Some(target.span.file)
                && self.config.contains_key(target.node.as_str());
            if hides || index {
                self.diagnostics.push(
                    Diagnostic::error(
                        Code::DefinedTwice,
                        target.span,
                        format!("`{}` is a config key or a loop index already", target.node),
                    )
                    .help("give the variable another name"),
                );
                return None;
            }
        }
        if let [target] = targets {
            let found = self.expr(frame, value, Some(&target.node));
            let done = found.is_some();
            // A name whose value failed stays quiet: the failure is noted already.
            frame.set(&target.node, found.unwrap_or_else(|| Value::Broken(Vec::new())));
            return done.then_some(());
        }
        frame.tuple_names = targets.iter().map(|target| target.node.clone()).collect();
        let found = self.expr(frame, value, None);
        frame.tuple_names.clear();
        let Some(found) = found else {
            for target in targets {
                frame.set(&target.node, Value::Broken(Vec::new()));
            }
            return None;
        };
        match found {
            Value::Tuple(values) if values.len() == targets.len() => {
                for (target, value) in targets.iter().zip(values) {
                    if target.node != "_" {
                        frame.set(&target.node, value);
                    }
                }
                Some(())
            }
            other => {
                for target in targets {
                    frame.set(&target.node, Value::Broken(Vec::new()));
                }
                let count = match &other {
                    Value::Tuple(values) => values.len(),
                    _ => 1,
                };
                let message = format!("{} names for {count} value(s)", targets.len());
                self.diagnostics.push(
                    Diagnostic::error(Code::WrongTuple, span, message)
                        .label(value.span, format!("this yields {count} value(s)")),
                );
                None
            }
        }
    }

    pub(super) fn block_result(&mut self, block: &Block, value: Value) -> Option<Value> {
        let fine = match &value {
            Value::Tuple(values) => !values.is_empty(),
            Value::None | Value::Broken(_) => false,
            Value::Array { .. } | Value::Scalar(_) => true,
        };
        if fine {
            return Some(value);
        }
        self.diagnostics.push(
            Diagnostic::error(
                Code::WrongTuple,
                block.body.span,
                format!("`{}` ends without a value", block.name.node),
            )
            .help("the last line of a block is what it computes: end it with an expression"),
        );
        None
    }

    pub(super) fn check_result(
        &mut self,
        frame: &mut Frame,
        block: &Block,
        value: &Value,
        shapes: &mut Bound,
    ) -> Option<()> {
        let Some(declared) = &block.result else { return Some(()) };
        // Names of the parameters' shapes stand for the same sizes in the result.
        for param in &block.params {
            let Some(ty) = &param.ty else { continue };
            if let ParamType::Tensor(dims) = ty.node.plain()
                && let Some(Value::Array { shape, .. }) =
                    frame.scopes.last().and_then(|s| s.get(&param.name.node)).cloned()
            {
                let kept = self.diagnostics.len();
                self.unify(frame, dims, &shape, shapes, (ty.span, &param.name.node));
                self.diagnostics.truncate(kept);
            }
        }
        let values = flatten(value.clone());
        if declared.len() != values.len() {
            let at = declared.first().map_or(block.name.span, |shape| shape.span);
            self.diagnostics.push(Diagnostic::error(
                Code::WrongTuple,
                at,
                format!(
                    "`{}` declares {} value(s) and computes {}",
                    block.name.node,
                    declared.len(),
                    values.len()
                ),
            ));
            return None;
        }
        let mut fine = true;
        for (shape_declared, value) in declared.iter().zip(values) {
            let Value::Array { shape, .. } = &value else { continue };
            let written =
                block.body.result.as_ref().map_or(shape_declared.span, |result| result.span);
            let at = (written, "the result");
            fine &= self.unify(frame, &shape_declared.node, shape, shapes, at).is_some();
        }
        fine.then_some(())
    }

    /// Operands of a block's values.
    pub(super) fn operands(&mut self, value: Value, span: Span) -> Option<Vec<Operand>> {
        flatten(value)
            .into_iter()
            .map(|value| match value {
                Value::Array { operand, .. } => Some(operand),
                _ => {
                    self.error(
                        Code::WrongType,
                        span,
                        "a block under a path, and a graph, compute arrays only",
                    );
                    None
                }
            })
            .collect()
    }
}
