//! Functions on values of the config: `sqrt(x)`, `len(list)` and their like.

use super::Lowerer;
use super::frame::Frame;
use super::value::Value;
use crate::diag::Code;
use crate::expr::Function;
use crate::ir::{Scalar, ScalarType, integer_or_float};
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
        // Of an array, a block asks with `has` itself.
        let function = Function::of(name).filter(|function| *function != Function::Has)?;
        let (least, most) = function.arguments().into_inner();
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
        let Some(ty) = self.function_type(function, &args) else { return Some(None) };
        let call = Call {
            callee: call.callee.clone(),
            args: args
                .into_iter()
                .map(|arg| crate::syntax::ast::Arg { name: None, value: arg.expr })
                .collect(),
        };
        Some(Some(Scalar { expr: Expr { span, kind: ExprKind::Call(call) }, ty }))
    }
    /// The type of a call; none when an argument does not fit, which is reported.
    fn function_type(&mut self, function: Function, args: &[Scalar]) -> Option<ScalarType> {
        let name = function.name();
        let first = args.first().map_or(ScalarType::None, |arg| arg.ty.plain().clone());
        let wrong = |arg: &Scalar| match function {
            Function::Len => {
                !matches!(arg.ty.plain(), ScalarType::List(_) | ScalarType::Str | ScalarType::Json)
            }
            Function::Int | Function::Float => {
                !arg.ty.is_number() && *arg.ty.plain() != ScalarType::Bool
            }
            Function::Min | Function::Max => match (arg.ty.plain(), args) {
                (ScalarType::List(item), [_]) => {
                    !matches!(**item, ScalarType::Int | ScalarType::Float | ScalarType::None)
                }
                _ => !arg.ty.is_number(),
            },
            Function::Sqrt
            | Function::Log
            | Function::Floor
            | Function::Ceil
            | Function::Abs
            | Function::Bf16 => !arg.ty.is_number(),
            Function::IsList
            | Function::Has
            | Function::Any
            | Function::Count
            | Function::Dim
            | Function::Dtype => false,
        };
        if let Some(arg) = args.iter().find(|arg| wrong(arg)) {
            let needed = if function == Function::Len { "a list or a word" } else { "a number" };
            let message = format!("`{name}` needs {needed}, and this is {}", arg.ty);
            self.error(Code::WrongType, arg.expr.span, message);
            return None;
        }
        Some(match function {
            Function::Floor
            | Function::Ceil
            | Function::Len
            | Function::Int
            | Function::Count
            | Function::Dim => ScalarType::Int,
            Function::Sqrt | Function::Log | Function::Float | Function::Bf16 => ScalarType::Float,
            Function::IsList | Function::Has | Function::Any => ScalarType::Bool,
            Function::Dtype => ScalarType::Str,
            Function::Abs => integer_or_float(&first),
            Function::Min | Function::Max => match &first {
                ScalarType::List(item) => integer_or_float(item),
                ScalarType::Json if args.len() == 1 => ScalarType::Float,
                _ if args.iter().any(|arg| *arg.ty.plain() == ScalarType::Float) => {
                    ScalarType::Float
                }
                _ => ScalarType::Int,
            },
        })
    }
}
