//! What an operation of the IR is given, and operations added one by one.

use std::collections::HashMap;

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::diag::{Code, Diagnostic};
use crate::ir::{
    FieldKind, FieldRef, Home, Op, Operand, PassUse, Scalar, ScalarType, Statement, Variable,
};
use crate::shapes::Shape;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Extern, Param, ParamType};

impl Lowerer<'_> {
    /// A literal, or a field that holds the value.
    pub(super) fn scalar_operand(
        &mut self,
        frame: &mut Frame,
        scalar: Scalar,
        wanted: &str,
    ) -> Operand {
        if scalar.is_literal() || scalar.is_ints() {
            return Operand::Literal(scalar);
        }
        if let ExprKind::Name(name) = &scalar.expr.kind
            && scalar.ty == ScalarType::Int
            && frame.loops.last().is_some_and(|index| index == name)
        {
            return Operand::Index(name.clone());
        }
        let name = match &scalar.expr.kind {
            ExprKind::Name(name) => name.clone(),
            ExprKind::Attr(_, key) => key.node.clone(),
            _ => wanted.to_owned(),
        };
        let span = scalar.expr.span;
        self.note_uses(frame, &scalar.expr);
        Operand::Field(frame.field(&name, FieldKind::Scalar(scalar), span))
    }

    /// Remembers what an expression needs when loading: the layer, and loop indices of callers.
    pub(super) fn note_uses(&mut self, frame: &mut Frame, expr: &Expr) {
        crate::syntax::visit::each(expr, &mut |inner| match &inner.kind {
            ExprKind::Attr(base, _) if base.kind == ExprKind::Name("layer".to_owned()) => {
                frame.needs_layer = true;
            }
            ExprKind::Name(name)
                if frame.outer.contains(name)
                    && !frame.loops.contains(name)
                    && !frame.indices.contains(name) =>
            {
                frame.indices.push(name.clone());
            }
            _ => {}
        });
    }

    /// Adds `let var = path(args)?;`
    pub(super) fn emit_op(
        &mut self,
        frame: &mut Frame,
        var: String,
        path: &str,
        args: Vec<Operand>,
        shape: Shape,
        span: Span,
    ) -> Value {
        let op =
            Op::Call { path: path.to_owned(), pass: PassUse::No, slot: false, args, many: false };
        let variable = Variable { name: var, shape, optional: false };
        let value = Value::of(&variable);
        frame.push(Statement::Let { vars: vec![variable], op, keeps: Vec::new(), span });
        value
    }

    /// Arrays whose presence the config settles are taken out where an op needs one.
    pub(super) fn unwrap_present(
        &mut self,
        frame: &mut Frame,
        params: &[Param],
        given: &mut HashMap<String, Value>,
        span: Span,
    ) {
        for param in params {
            let optional =
                matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Optional(_)));
            let Some(value) = given.get_mut(&param.name.node) else { continue };
            if let Value::Array { optional: true, present: Some(_), .. } = value
                && !optional
            {
                *value = self.unwrapped(frame, value, &param.name.node, span);
            }
        }
    }

    /// `present(x)?`: the array, or an error at run time that names it.
    pub(super) fn unwrapped(
        &mut self,
        frame: &mut Frame,
        value: &Value,
        wanted: &str,
        span: Span,
    ) -> Value {
        let Value::Array { operand, shape, .. } = value else { return value.clone() };
        let wanted = match operand {
            Operand::Variable { name, .. } => name.clone(),
            _ => wanted.to_owned(),
        };
        let name = frame.temporary(&wanted);
        self.emit_op(frame, name, "ops::present", vec![operand.clone()], shape.clone(), span)
    }

    /// What an op is given for a parameter; none for what only `load` is given.
    pub(super) fn extern_operand(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        param: &Param,
        scope: &HashMap<String, Value>,
        span: Span,
    ) -> Option<Option<Operand>> {
        let value = scope.get(&param.name.node).cloned().unwrap_or(Value::None);
        let ty = param.ty.as_ref().map(|ty| ty.node.plain());
        let is_array = matches!(ty, None | Some(ParamType::Tensor(_) | ParamType::AnyTensor));
        if ext.class.module && !is_array {
            return Some(None);
        }
        let may_be_none =
            matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Optional(_)));
        Some(Some(match value {
            Value::Array { operand, optional: false, .. } if may_be_none => {
                Operand::Some(Box::new(operand))
            }
            Value::Array { operand, .. } => operand,
            Value::None => Operand::None,
            Value::Scalar(scalar) if is_array => {
                let message = format!("`{}` takes an array", param.name.node);
                self.error(Code::WrongType, scalar.expr.span, message);
                return None;
            }
            Value::Scalar(mut scalar) => {
                if ty == Some(&ParamType::Float) {
                    scalar.ty = match &scalar.ty {
                        ScalarType::Nullable(_) => {
                            ScalarType::Nullable(Box::new(ScalarType::Float))
                        }
                        ScalarType::None => ScalarType::None,
                        _ => ScalarType::Float,
                    };
                }
                let optional =
                    matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Optional(_)));
                if !optional && let ScalarType::Nullable(inner) = scalar.ty {
                    scalar.ty = *inner;
                }
                let given = !matches!(scalar.ty, ScalarType::Nullable(_));
                let literal =
                    (scalar.is_literal() || scalar.is_ints()) && scalar.ty != ScalarType::None;
                let operand = self.scalar_operand(frame, scalar, &param.name.node);
                if optional && given && (literal || !matches!(operand, Operand::Literal(_))) {
                    Operand::Some(Box::new(operand))
                } else {
                    operand
                }
            }
            Value::Tuple(_) | Value::Broken(_) => {
                self.error(Code::WrongType, span, "an op takes single values");
                return None;
            }
        }))
    }

    /// The layer's place in the caches, held by the struct or round that stands for the layer.
    pub(super) fn slot(&mut self, frame: &mut Frame, span: Span) -> Option<FieldRef> {
        if !frame.in_layers {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::CacheOutside,
                    span,
                    "this op uses a layer's cache, and no layer is around it",
                )
                .help(
                    "call it inside `for i in layers { ... }`, or in a block that is called there",
                ),
            );
            return None;
        }
        frame.needs_layer = true;
        let at = frame
            .homes
            .iter()
            .rposition(|home| matches!(home.home, Home::Item(_)) && frame.layer_loop)
            .unwrap_or(0);
        let home = frame.homes.get_mut(at)?;
        if !home.fields.iter().any(|field| matches!(field.kind, FieldKind::Slot)) {
            home.fields.push(crate::ir::Field {
                name: "slot".to_owned(),
                kind: FieldKind::Slot,
                span,
            });
        }
        Some(FieldRef { name: "slot".to_owned(), home: home.home.clone(), copy: true })
    }
}
