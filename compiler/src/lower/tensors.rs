//! Tensors that blocks name themselves: `weight(..)` and `has(..)`.

use super::Lowerer;
use super::frame::Frame;
use super::value::{Value, new_id, text_of};
use crate::diag::{Code, Diagnostic};
use crate::ir::{FieldKind, Operand, Scalar, ScalarType, TensorDecl};
use crate::source::Span;
use crate::syntax::ast::{Call, Expr, ExprKind};

impl Lowerer<'_> {
    /// `weight("A_log", [value_heads])`
    pub(super) fn weight(&mut self, frame: &mut Frame, call: &Call, span: Span) -> Option<Value> {
        let [path, shape] = call.args.as_slice() else {
            self.diagnostics.push(
                Diagnostic::error(Code::WrongArguments, span, "`weight` takes a path and a shape")
                    .help("for example `weight(\"A_log\", [num_heads])`"),
            );
            return None;
        };
        let path_value = self.expr(frame, &path.value, None)?;
        let Some(path_text) = text_of(&path_value).map(str::to_owned) else {
            self.error(Code::WrongType, path.value.span, "the path of a weight is a text");
            return None;
        };
        let ExprKind::List(sizes) = &shape.value.kind else {
            self.error(
                Code::WrongType,
                shape.value.span,
                "the shape of a weight is a list of sizes",
            );
            return None;
        };
        let mut scalars = Vec::new();
        let mut polys = Vec::new();
        for size in sizes {
            let scalar = self.scalar(frame, size)?;
            if !matches!(scalar.ty.plain(), ScalarType::Int | ScalarType::Json) {
                let message = format!("a size is an int, and this is {}", scalar.ty);
                self.error(Code::WrongType, size.span, message);
                return None;
            }
            self.note_uses(frame, &scalar.expr);
            polys.push(self.facts.poly(&scalar.expr));
            scalars.push(scalar);
        }
        let decl = TensorDecl {
            path: frame.full_path(&path_text),
            shape: scalars,
            quantised: false,
            condition: None,
        };
        let short = path_text.trim_end_matches(".weight").to_owned();
        let field = frame.field(&short, FieldKind::Tensor(decl), span);
        let operand = Operand::Field(field);
        Some(Value::Array { operand, shape: polys, optional: false, present: None, id: new_id() })
    }

    /// `has("layer_scalar")`: whether the checkpoint holds a tensor here.
    pub(super) fn has(&mut self, frame: &mut Frame, call: &Call, span: Span) -> Option<Value> {
        let [path] = call.args.as_slice() else {
            self.error(Code::WrongArguments, span, "`has` takes the path of a weight");
            return None;
        };
        let value = self.expr(frame, &path.value, None)?;
        let Some(text) = text_of(&value) else {
            self.error(Code::WrongType, path.value.span, "the path of a weight is a text");
            return None;
        };
        let text = frame.full_path(text);
        let arg = Expr { span: path.value.span, kind: ExprKind::Str(text) };
        let call = Call {
            callee: call.callee.clone(),
            args: vec![crate::syntax::ast::Arg { name: None, value: arg }],
        };
        let expr = Expr { span, kind: ExprKind::Call(call) };
        Some(Value::Scalar(Scalar { expr, ty: ScalarType::Bool }))
    }
}
