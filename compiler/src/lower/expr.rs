//! Expressions: literals, names, operators, and calls by what they call.

use super::{Frame, Lowerer, Value, suggest};
use crate::diag::{Code, Diagnostic};
use crate::ir::Variable;
use crate::ir::{FieldKind, Op, Operand, PassUse, Scalar, ScalarType, Statement, TensorDecl};
use crate::shapes::{Poly, Shape};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{BinaryOp, Call, Expr, ExprKind, UnaryOp};

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

    fn wrong_operand(&mut self, span: Span, value: &Value) -> Option<Value> {
        let message = match value {
            Value::Array { optional: true, .. } => "this array may be absent".to_owned(),
            Value::None => "this is none".to_owned(),
            other => format!("this is {}", other.describe()),
        };
        self.diagnostics.push(
            Diagnostic::error(Code::WrongType, span, "the operator does not take this")
                .here(message),
        );
        None
    }

    fn name(&mut self, frame: &mut Frame, name: &str, span: Span) -> Option<Value> {
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
        let mut error =
            Diagnostic::error(Code::UnknownName, span, format!("nothing is named `{name}`"));
        if self.blocks.contains_key(name) || self.externs.contains_key(name) {
            error = error.help(format!("`{name}` is a block or op: call it as `{name}(...)`"));
        } else {
            error = suggest(error, name, known.iter().map(String::as_str));
            error = error.note(
                "names are variables of the block, its parameters, config keys of the manifest and loop indices",
            );
        }
        self.diagnostics.push(error);
        None
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
            match self.name(frame, name, span)? {
                Value::Scalar(scalar) => match &scalar.expr.kind {
                    ExprKind::Str(word) => out.push_str(word),
                    ExprKind::Int(number) => out.push_str(&number.to_string()),
                    ExprKind::Name(index) if frame.is_index(index) => {
                        out.push_str(&format!("{{{index}}}"));
                    }
                    _ => {
                        let message = format!(
                            "`{{{name}}}` in a path must be a loop index or a known word or number"
                        );
                        self.error(Code::WrongType, span, message);
                        return None;
                    }
                },
                other => {
                    let message = format!("`{{{name}}}` is {}", other.describe());
                    self.error(Code::WrongType, span, message);
                    return None;
                }
            }
            rest = &after[close + 1..];
        }
        out.push_str(rest);
        Some(out)
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
                    .help("take one entry of an axis with `pick(x, index, axis)`"),
                );
                None
            }
        }
    }

    fn list(&mut self, frame: &mut Frame, items: &[Expr], span: Span) -> Option<Value> {
        let mut exprs = Vec::new();
        let mut ty = ScalarType::None;
        for item in items {
            let scalar = self.scalar(frame, item)?;
            ty = if exprs.is_empty() {
                scalar.ty.clone()
            } else {
                super::scalar::join(&ty, &scalar.ty)
            };
            exprs.push(scalar.expr);
        }
        let expr = Expr { span, kind: ExprKind::List(exprs) };
        Some(Value::Scalar(Scalar { expr, ty: ScalarType::List(Box::new(ty)) }))
    }

    fn operator(
        &mut self,
        frame: &mut Frame,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne)
            && let Some(found) = self.word_comparison(frame, op, left, right, span)
        {
            return found.map(Value::Scalar);
        }
        // `and` and `or` stop early, so that names in the part that cannot matter may be absent.
        let first = self.expr(frame, left, None);
        if let Some(Value::Scalar(scalar)) = &first
            && let Some(value) = scalar.as_bool()
        {
            match op {
                BinaryOp::And if !value => {
                    return Some(Value::Scalar(Scalar::literal(ExprKind::Bool(false), span)));
                }
                BinaryOp::Or if value => {
                    return Some(Value::Scalar(Scalar::literal(ExprKind::Bool(true), span)));
                }
                _ => {}
            }
        }
        let second = self.expr(frame, right, None);
        let (first, second) = (first?, second?);
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or | BinaryOp::Else)
            && (first.is_array()
                || second.is_array()
                || first == Value::None
                || second == Value::None)
        {
            return self.presence(op, first, second, span);
        }
        match (first, second) {
            (Value::Scalar(a), Value::Scalar(b)) => self.binary(op, a, b, span).map(Value::Scalar),
            (first, second) => {
                let name = match op {
                    BinaryOp::Add => "add",
                    BinaryOp::Sub => "sub",
                    BinaryOp::Mul => "mul",
                    BinaryOp::Div => "div",
                    BinaryOp::Pow => "pow",
                    _ => {
                        let (text, _) = crate::syntax::print::operator(op);
                        self.error(
                            Code::NotConfiguration,
                            span,
                            format!("`{text}` compares values of the configuration, not arrays"),
                        );
                        return None;
                    }
                };
                self.array_operator(
                    frame,
                    name,
                    (first, left.span),
                    (second, right.span),
                    span,
                    hint,
                )
            }
        }
    }

    /// Comparisons with none, and `??`, where arrays or `none` take part.
    fn presence(&mut self, op: BinaryOp, first: Value, second: Value, span: Span) -> Option<Value> {
        let known = |value: &Value| match value {
            Value::None => Some(false),
            Value::Array { optional: false, .. } | Value::Tuple(_) | Value::Broken(_) => Some(true),
            Value::Array { .. } => None,
            Value::Scalar(scalar) => match scalar.ty {
                ScalarType::Nullable(_) | ScalarType::Json => None,
                ScalarType::None => Some(false),
                _ => Some(true),
            },
        };
        let literal = |value| Some(Value::Scalar(Scalar::literal(ExprKind::Bool(value), span)));
        match (op, known(&first), known(&second)) {
            (BinaryOp::Else, Some(true), _) => Some(first),
            (BinaryOp::Else, Some(false), _) => Some(second),
            (BinaryOp::Eq, Some(a), Some(b)) if !(a && b) => literal(a == b),
            (BinaryOp::Ne, Some(a), Some(b)) if !(a && b) => literal(a != b),
            (BinaryOp::And, Some(false), _) => literal(false),
            (BinaryOp::Or, Some(true), _) => literal(true),
            (BinaryOp::And | BinaryOp::Or, _, _) => {
                let as_scalar = |value: &Value| match (known(value), value) {
                    (_, Value::Scalar(scalar)) => Some(scalar.clone()),
                    (Some(value), _) => Some(Scalar::literal(ExprKind::Bool(value), span)),
                    _ => None,
                };
                let (a, b) = (as_scalar(&first)?, as_scalar(&second)?);
                self.binary(op, a, b, span).map(Value::Scalar)
            }
            _ => match (first, second) {
                (Value::Scalar(a), Value::None) | (Value::None, Value::Scalar(a)) => {
                    let none = Scalar::literal(ExprKind::None, span);
                    self.binary(op, a, none, span).map(Value::Scalar)
                }
                (Value::Scalar(a), Value::Scalar(b)) => {
                    self.binary(op, a, b, span).map(Value::Scalar)
                }
                _ => {
                    self.error(
                        Code::NotConfiguration,
                        span,
                        "whether this array is there is not known when the model is loaded",
                    );
                    None
                }
            },
        }
    }

    /// `qk_norm == head`: one side is a word when the other is a word and nothing has its name.
    fn word_comparison(
        &mut self,
        frame: &mut Frame,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Option<Option<Scalar>> {
        let none = "none".to_owned();
        let (subject, word, at) = match (&left.kind, &right.kind) {
            (_, ExprKind::Name(word)) if !self.resolves(frame, word) => (left, word, right.span),
            (ExprKind::Name(word), _) if !self.resolves(frame, word) => (right, word, left.span),
            // `none` is itself a word where the other side is one of a list of words.
            (ExprKind::Name(name), ExprKind::None) if self.is_word(frame, name) => {
                (left, &none, right.span)
            }
            _ => return None,
        };
        let kept = self.diagnostics.len();
        let Some(scalar) = self.scalar(frame, subject) else { return Some(None) };
        if *scalar.ty.plain() != ScalarType::Str {
            self.diagnostics.truncate(kept);
            return None;
        }
        let word = Scalar::literal(ExprKind::Str(word.clone()), at);
        Some(self.binary(op, scalar, word, span))
    }

    /// Whether a name stands for a word of a parameter's list.
    fn is_word(&self, frame: &Frame, name: &str) -> bool {
        matches!(frame.find(name), Some(Value::Scalar(scalar)) if scalar.ty == ScalarType::Str)
    }

    /// Whether a name stands for something here.
    pub(super) fn resolves(&self, frame: &Frame, name: &str) -> bool {
        frame.find(name).is_some()
            || self.config.contains_key(name)
            || name == "model_type"
            || frame.visible.iter().any(|index| index == name)
    }

    fn array_operator(
        &mut self,
        frame: &mut Frame,
        name: &str,
        (first, first_span): (Value, Span),
        (second, second_span): (Value, Span),
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        let wanted = match name {
            "add" => "sum",
            "sub" => "difference",
            "mul" => "product",
            "div" => "quotient",
            _ => "power",
        };
        match (first, second) {
            (
                Value::Array { operand: a, shape: left, optional: false, .. },
                Value::Array { operand: b, shape: right, optional: false, .. },
            ) => {
                let Some(shape) = self.broadcast(&left, &right) else {
                    self.diagnostics.push(
                        Diagnostic::error(Code::ShapeMismatch, span, "shapes do not agree")
                            .label(first_span, format!("this is {}", crate::shapes::show(&left)))
                            .label(second_span, format!("this is {}", crate::shapes::show(&right))),
                    );
                    return None;
                };
                let var = frame.result_name(hint, wanted);
                Some(self.emit_op(frame, var, &format!("ops::{name}"), vec![a, b], shape, span))
            }
            (Value::Array { operand, shape, optional: false, .. }, Value::Scalar(scalar)) => {
                let scalar = self.float_operand(frame, scalar, second_span, wanted)?;
                let var = frame.result_name(hint, wanted);
                let path = format!("ops::{name}_scalar");
                Some(self.emit_op(frame, var, &path, vec![operand, scalar], shape, span))
            }
            (Value::Scalar(scalar), Value::Array { operand, shape, optional: false, .. }) => {
                let scalar = self.float_operand(frame, scalar, first_span, wanted)?;
                let var = frame.result_name(hint, wanted);
                let (path, args) = match name {
                    "add" | "mul" => (format!("ops::{name}_scalar"), vec![operand, scalar]),
                    _ => (format!("ops::scalar_{name}"), vec![scalar, operand]),
                };
                Some(self.emit_op(frame, var, &path, args, shape, span))
            }
            (first, second) => {
                let (span, value) = match first {
                    Value::Array { optional: false, .. } | Value::Scalar(_) => {
                        (second_span, second)
                    }
                    first => (first_span, first),
                };
                self.wrong_operand(span, &value)
            }
        }
    }

    fn float_operand(
        &mut self,
        frame: &mut Frame,
        scalar: Scalar,
        span: Span,
        wanted: &str,
    ) -> Option<Operand> {
        match scalar.ty.plain() {
            ScalarType::Int | ScalarType::Float | ScalarType::Json => {
                let scalar = Scalar { expr: scalar.expr, ty: ScalarType::Float };
                Some(self.scalar_operand(frame, scalar, wanted))
            }
            other => {
                let message = format!("an array cannot be combined with {other}");
                self.error(Code::WrongType, span, message);
                None
            }
        }
    }

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
        frame.push(Statement::Let { vars: vec![variable], op, span });
        value
    }

    /// The shape two arrays have together, or none where some axis cannot agree.
    pub(super) fn broadcast(&self, a: &[Poly], b: &[Poly]) -> Option<Shape> {
        let rank = a.len().max(b.len());
        let one = Poly::int(1);
        let at = |shape: &[Poly], axis: usize| {
            (axis + shape.len()).checked_sub(rank).and_then(|axis| shape.get(axis).cloned())
        };
        (0..rank)
            .map(|axis| match (at(a, axis), at(b, axis)) {
                (Some(a), Some(b)) if self.facts.same(&a, &b) => Some(a),
                (Some(a), Some(b)) if a == one => Some(b),
                (Some(a), Some(b)) if b == one => Some(a),
                (Some(_), Some(_)) => None,
                (Some(size), None) | (None, Some(size)) => Some(size),
                (None, None) => None,
            })
            .collect()
    }

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
        let Some(path_text) = super::text_of(&path_value).map(str::to_owned) else {
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
        Some(Value::Array {
            operand,
            shape: polys,
            optional: false,
            present: None,
            id: super::new_id(),
        })
    }

    /// `has("layer_scalar")`: whether the checkpoint holds a tensor here.
    pub(super) fn has(&mut self, frame: &mut Frame, call: &Call, span: Span) -> Option<Value> {
        let [path] = call.args.as_slice() else {
            self.error(Code::WrongArguments, span, "`has` takes the path of a weight");
            return None;
        };
        let value = self.expr(frame, &path.value, None)?;
        let Some(text) = super::text_of(&value) else {
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

impl Value {
    /// A variable as a value.
    pub(super) fn of(variable: &Variable) -> Self {
        let Variable { name, shape, optional } = variable.clone();
        let operand = Operand::Variable { name, borrowed: false, optional };
        Value::Array { operand, shape, optional, present: None, id: super::new_id() }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self, Value::Array { .. })
    }
}
