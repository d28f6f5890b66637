//! Expressions: literals, names and lists; operators and calls have files of their own.

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Scalar, ScalarType, join};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Expr, ExprKind, UnaryOp};

impl Lowerer<'_> {
    /// The value of an expression; none once an error is noted. `hint` is the name the result will
    /// be assigned to.
    pub(super) fn expr(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        hint: Option<&str>,
    ) -> Option<Value> {
        let value = self.expr_as_written(frame, expr, hint)?;
        Some(match value {
            Value::Scalar(scalar) if self.manifest.pinned.is_some() => {
                let scalar = self.settled(scalar);
                if scalar.expr.kind == ExprKind::None { Value::None } else { Value::Scalar(scalar) }
            }
            other => other,
        })
    }

    fn expr_as_written(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        hint: Option<&str>,
    ) -> Option<Value> {
        match &expr.kind {
            ExprKind::None => Some(Value::None),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {
                Some(Value::Scalar(Scalar::literal(expr.kind.clone(), expr.span)))
            }
            ExprKind::Str(text) => {
                let text = self.interpolate(frame, text, expr.span)?;
                Some(Value::Scalar(Scalar::literal(ExprKind::Str(text), expr.span)))
            }
            ExprKind::Name(name) => self.name(frame, name, expr.span),
            ExprKind::Attr(base, key) => match &base.kind {
                ExprKind::Name(name) if name == "layer" => {
                    self.layer_value(frame, expr, &key.node).map(Value::Scalar)
                }
                _ => {
                    let message = format!("`.{}` is only known on `layer`", key.node);
                    self.error(Code::UnknownName, expr.span, message);
                    None
                }
            },
            ExprKind::Index(base, index) => self.index(frame, expr, base, index),
            ExprKind::List(items) => self.list(frame, items, expr.span),
            ExprKind::Tuple(items) => {
                let values: Vec<Option<Value>> =
                    items.iter().map(|item| self.expr(frame, item, None)).collect();
                values.into_iter().collect::<Option<Vec<_>>>().map(Value::Tuple)
            }
            ExprKind::Unary(op, inner) => match self.expr(frame, inner, None)? {
                Value::Array { operand, shape, optional: false, .. } if *op == UnaryOp::Neg => {
                    let var = frame.result_name(hint, "negated");
                    Some(self.emit_op(frame, var, "ops::neg", vec![operand], shape, expr.span))
                }
                Value::Scalar(scalar) => self.unary(*op, scalar, expr.span).map(Value::Scalar),
                Value::None if *op == UnaryOp::Not => {
                    Some(Value::Scalar(Scalar::literal(ExprKind::Bool(true), expr.span)))
                }
                other => self.wrong_operand(inner.span, &other),
            },
            ExprKind::Binary(op, left, right) => {
                self.operator(frame, *op, left, right, expr.span, hint)
            }
            ExprKind::Call(call) => self.call(frame, call, None, expr.span, hint),
            ExprKind::At(inner, path) => match &inner.kind {
                ExprKind::Call(call) => {
                    let text = self.interpolate(frame, &path.node, path.span)?;
                    let path = Spanned::new(text, path.span);
                    self.call(frame, call, Some(&path), expr.span, hint)
                }
                _ => {
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::WrongArguments,
                            expr.span,
                            "`@` puts a path before the weights of a call, and this is no call",
                        )
                        .help("write it right after the call: `mlp(h) @ \"mlp\"`"),
                    );
                    None
                }
            },
            ExprKind::If { .. } | ExprKind::Match { .. } => self.choice(frame, expr, hint, true),
        }
    }

    pub(super) fn wrong_operand(&mut self, span: Span, value: &Value) -> Option<Value> {
        let absent = matches!(value, Value::Array { optional: true, .. });
        let message = match value {
            _ if absent => "this array may be absent".to_owned(),
            Value::None => "this is none".to_owned(),
            other => format!("this is {}", other.describe()),
        };
        let error = Diagnostic::error(Code::WrongType, span, "the operator does not take this")
            .here(message);
        self.diagnostics.push(match absent {
            true => error.help(
                "an array that a loop hands on begins as one, such as `zeros_like(x)`; another is taken inside of `if name { ... }`",
            ),
            false => error,
        });
        None
    }

    pub(super) fn name(&mut self, frame: &mut Frame, name: &str, span: Span) -> Option<Value> {
        match frame.find(name) {
            Some(Value::Broken(why)) => {
                self.diagnostics.extend(why.iter().cloned());
                return None;
            }
            Some(value) => return Some(value.clone()),
            None => {}
        }
        if let Some(scalar) = self.named_scalar(frame, name, span) {
            return Some(Value::Scalar(scalar));
        }
        let vars = frame.scopes.last().map(|scope| scope.keys().cloned().collect::<Vec<_>>());
        let known: Vec<String> = vars
            .unwrap_or_default()
            .into_iter()
            .chain(self.config.keys().map(|key| (*key).to_owned()))
            .chain(frame.visible.iter().cloned())
            .collect();
        self.diagnostics.push(self.unknown_name(name, span, &known));
        None
    }

    /// What is said about a name that means nothing here.
    fn unknown_name(&self, name: &str, span: Span, known: &[String]) -> Diagnostic {
        if self.inside.axes.iter().any(|axis| axis == name) {
            let message = format!("`{name}` is an axis that is known only when the graph runs");
            return Diagnostic::error(Code::UnknownSize, span, message)
                .help("sizes of weights, conditions and numbers come from the config");
        }
        let error =
            Diagnostic::error(Code::UnknownName, span, format!("nothing is named `{name}`"));
        if self.blocks.contains_key(name) || self.externs.contains_key(name) {
            return error.help(format!("`{name}` is a block or op: call it as `{name}(...)`"));
        }
        if let Some(bound) = self.inside.bound.iter().find(|bound| bound.node == name) {
            return if bound.span.start > span.start {
                error.label(bound.span, "bound only here, further down")
            } else {
                error
                    .label(bound.span, "bound here, in an arm or a loop that may be passed by")
                    .help(format!("bind `{name}` in every arm, or before the choice"))
            };
        }
        error.did_you_mean(name, known.iter().map(String::as_str)).note(
            "names are variables of the block, its parameters, config keys of the manifest and loop indices",
        )
    }

    /// Whether a name stands for something here.
    pub(super) fn resolves(&self, frame: &Frame, name: &str) -> bool {
        frame.find(name).is_some()
            || self.config.contains_key(name)
            || name == "model_type"
            || frame.visible.iter().any(|index| index == name)
    }

    /// Replaces `{name}` in a path by a word that is known; a loop index stays for loading.
    fn interpolate(&mut self, frame: &mut Frame, text: &str, span: Span) -> Option<String> {
        if !text.contains('{') {
            return Some(text.to_owned());
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, after) = rest.split_at(open);
            out.push_str(before);
            let Some(close) = after.find('}') else {
                self.error(Code::UnexpectedText, span, "a `{` in a path has no `}`");
                return None;
            };
            let name = &after[1..close];
            out.push_str(&self.part_of_path(frame, name, span)?);
            rest = &after[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }

    /// What stands for `{name}`, or `{i // 2}`, in a path.
    fn part_of_path(&mut self, frame: &mut Frame, text: &str, span: Span) -> Option<String> {
        let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = if is_name {
            self.name(frame, text, span)?
        } else {
            let expr = self.path_expr(text, span)?;
            self.expr(frame, &expr, None)?
        };
        let Value::Scalar(scalar) = value else {
            let message = format!("`{{{text}}}` is {}", value.describe());
            self.error(Code::WrongType, span, message);
            return None;
        };
        match &scalar.expr.kind {
            ExprKind::Str(word) => return Some(word.clone()),
            ExprKind::Int(number) => return Some(number.to_string()),
            _ => {}
        }
        let mut indices_only = scalar.ty == ScalarType::Int;
        crate::syntax::visit::each(&scalar.expr, &mut |inner| {
            indices_only &= match &inner.kind {
                ExprKind::Name(name) => frame.is_index(name),
                ExprKind::Int(_) | ExprKind::Binary(..) | ExprKind::Unary(..) => true,
                _ => false,
            };
        });
        if indices_only {
            return Some(format!("{{{}}}", crate::syntax::print::expr(&scalar.expr)));
        }
        let message =
            format!("`{{{text}}}` in a path must be a loop index or a known word or number");
        self.diagnostics.push(Diagnostic::error(Code::WrongType, span, message).help(
            "a path names tensors: which ones there are is settled by the spec, not by a config",
        ));
        None
    }

    /// Arithmetic inside of a path; its places are the path's.
    fn path_expr(&mut self, text: &str, span: Span) -> Option<Expr> {
        let positions = crate::syntax::Positions::within(span, text.len());
        crate::syntax::parse_expr_at(&positions, text, &mut self.diagnostics)
    }

    fn index(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        base: &Expr,
        index: &Expr,
    ) -> Option<Value> {
        let base_value = self.expr(frame, base, None)?;
        let index_value = self.scalar(frame, index)?;
        match base_value {
            Value::Scalar(list) => {
                let ty = match list.ty.plain() {
                    ScalarType::List(inner) => (**inner).clone(),
                    ScalarType::Str => ScalarType::Str,
                    ScalarType::Json => ScalarType::Json,
                    other => {
                        let message = format!("{other} cannot be indexed");
                        self.error(Code::WrongType, base.span, message);
                        return None;
                    }
                };
                let kind = ExprKind::Index(Box::new(list.expr), Box::new(index_value.expr));
                Some(Value::Scalar(Scalar { expr: Expr { span: expr.span, kind }, ty }))
            }
            Value::Tuple(values) => match index_value.expr.kind {
                ExprKind::Int(at) if at >= 0 && (at as usize) < values.len() => {
                    values.into_iter().nth(at as usize)
                }
                _ => {
                    self.error(Code::WrongTuple, index.span, "the tuple has no such value");
                    None
                }
            },
            other => {
                self.diagnostics.push(
                    Diagnostic::error(
                        Code::WrongType,
                        base.span,
                        format!("{} cannot be indexed", other.describe()),
                    )
                    .help("take one entry of an axis with `entry(x, index, axis)`"),
                );
                None
            }
        }
    }

    pub(super) fn list(&mut self, frame: &mut Frame, items: &[Expr], span: Span) -> Option<Value> {
        let mut exprs = Vec::new();
        let mut ty = ScalarType::None;
        for item in items {
            let scalar = self.scalar(frame, item)?;
            ty = if exprs.is_empty() { scalar.ty.clone() } else { join(&ty, &scalar.ty) };
            exprs.push(scalar.expr);
        }
        let expr = Expr { span, kind: ExprKind::List(exprs) };
        Some(Value::Scalar(Scalar { expr, ty: ScalarType::List(Box::new(ty)) }))
    }
}
