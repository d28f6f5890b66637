//! Functions on values of the config: `sqrt(x)`, `len(list)` and their like.

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::diag::Code;
use crate::ir::{Scalar, ScalarType};
use crate::source::Span;
use crate::syntax::ast::{Call, Expr, ExprKind};

impl Lowerer<'_> {
    /// `sqrt(x)` and the other functions of numbers; none when the name is none of them.
    pub(super) fn scalar_call(
        &mut self,
        frame: &mut Frame,
        call: &Call,
        span: Span,
    ) -> Option<Option<Scalar>> {
        let name = call.callee.node.as_str();
        let (least, most) = match name {
            "sqrt" | "log" | "floor" | "ceil" | "len" | "int" | "float" | "bf16" | "abs"
            | "any" | "count" | "dtype" | "is_list" => (1, 1),
            "dim" => (2, 2),
            "min" | "max" => (1, 16),
            _ => return None,
        };
        // An op of the same name takes arrays; a first argument that is an array settles it.
        if self.externs.contains_key(name)
            && let Some(first) = call.args.first()
        {
            let mut probe = frame.clone();
            let kept = self.diagnostics.len();
            let value = self.expr(&mut probe, &first.value, None);
            self.diagnostics.truncate(kept);
            if !matches!(value, Some(Value::Scalar(_))) {
                return None;
            }
        }
        if call.args.len() < least || call.args.len() > most {
            let message = format!("`{name}` takes {least} argument(s), {} given", call.args.len());
            self.error(Code::WrongArguments, span, message);
            return Some(None);
        }
        let mut args = Vec::new();
        for arg in &call.args {
            match self.scalar(frame, &arg.value) {
                Some(scalar) => args.push(scalar),
                None => return Some(None),
            }
        }
        let first = args.first().map(|arg| arg.ty.plain().clone()).unwrap_or(ScalarType::None);
        let ty = match name {
            "floor" | "ceil" | "len" | "int" | "count" | "dim" => ScalarType::Int,
            "any" | "is_list" => ScalarType::Bool,
            "dtype" => ScalarType::Str,
            "min" | "max" => match &first {
                ScalarType::List(inner) => (**inner).clone(),
                ScalarType::Json if args.len() == 1 => ScalarType::Float,
                _ if args.iter().any(|arg| *arg.ty.plain() == ScalarType::Float) => {
                    ScalarType::Float
                }
                _ => ScalarType::Int,
            },
            "abs" => first.clone(),
            _ => ScalarType::Float,
        };
        if name == "len"
            && !matches!(first, ScalarType::List(_) | ScalarType::Str | ScalarType::Json)
            && let Some(wrong) = args.first()
        {
            let message = format!("`len` needs a list or a word, and this is {}", wrong.ty);
            self.error(Code::WrongType, wrong.expr.span, message);
            return Some(None);
        }
        let list_ok = matches!(name, "len" | "min" | "max")
            && matches!(first, ScalarType::List(_) | ScalarType::Str | ScalarType::Json);
        let text_ok =
            matches!(name, "any" | "count" | "dim" | "dtype" | "int" | "float" | "is_list");
        if let Some(wrong) = args.iter().find(|arg| !arg.ty.is_number())
            && !list_ok
            && !text_ok
        {
            let message = format!("`{name}` needs a number, and this is {}", wrong.ty);
            self.error(Code::WrongType, wrong.expr.span, message);
            return Some(None);
        }
        let call = Call {
            callee: call.callee.clone(),
            args: args
                .into_iter()
                .map(|arg| crate::syntax::ast::Arg { name: None, value: arg.expr })
                .collect(),
        };
        Some(Some(Scalar { expr: Expr { span, kind: ExprKind::Call(call) }, ty }))
    }
}
