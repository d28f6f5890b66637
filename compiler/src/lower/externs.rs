//! Extern ops: arguments against their signature, then a call or a module field.

use std::collections::HashMap;

use super::{Frame, Lowerer, Value};
use crate::diag::{Code, Diagnostic};
use crate::ir::{FieldKind, FieldRef, Home, Op, Operand, PassUse, Scalar, ScalarType, Statement};
use crate::ir::{TensorDecl, Variable};
use crate::shapes::{Poly, Shape, show};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Call, Dim, Expr, ExprKind, Extern, Param, ParamType};

/// What the names of a signature's shapes stand for.
#[derive(Debug, Default, Clone)]
pub(super) struct Bound {
    /// Single axes.
    pub(super) sizes: HashMap<String, Poly>,
    /// `..S`
    rests: HashMap<String, Shape>,
}

impl Lowerer<'_> {
    pub(super) fn call_extern(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        call: &Call,
        span: Span,
        hint: Option<&str>,
    ) -> Option<Value> {
        let name = &ext.name.node;
        let args = self.match_args(name, ext.name.span, &ext.params, call, span)?;
        let tuple_names = std::mem::take(&mut frame.tuple_names);
        let given = self.given_args(frame, &ext.params, &args, hint);
        frame.tuple_names = tuple_names;
        let mut given = given?;
        self.unwrap_present(frame, &ext.params, &mut given, span);
        frame.scopes.push(given.clone());
        let result = self.extern_signature(frame, ext, call, span);
        let scope = frame.scopes.pop().unwrap_or_default();
        let (shapes, load) = result?;
        let results = match &ext.rule {
            Some(rule) => self.rule(rule, ext, &scope, span)?,
            None => shapes,
        };
        let pass = match (ext.class.mixer, ext.class.position) {
            (true, _) => PassUse::Writes,
            (false, true) => PassUse::Reads,
            (false, false) => PassUse::No,
        };
        frame.pass = frame.pass.max(pass);
        if ext.class.mixer {
            self.slot(frame, span)?;
        }
        let mut operands = Vec::new();
        for param in &ext.params {
            if let Some(operand) = self.extern_operand(frame, ext, param, &scope, span)? {
                operands.push(operand);
            }
        }
        let wanted = match &load {
            Some((_, path, _)) if !path.is_empty() => {
                path.rsplit('.').next().unwrap_or(name).to_owned()
            }
            _ => name.clone(),
        };
        let op = match load {
            Some((args, path, tensors)) => {
                let at = self.use_extern(ext);
                let field_name = if path.is_empty() { name } else { &path };
                let kind = FieldKind::Module { ext: at, args, path: path.clone(), tensors };
                let field = frame.field(field_name, kind, span);
                Op::Forward { field, pass, slot: ext.class.mixer, args: operands }
            }
            None => Op::Call {
                path: ext.path.node.clone(),
                pass,
                slot: ext.class.mixer,
                args: operands,
                many: ext.rule.as_ref().is_some_and(|rule| rule.node == "split"),
            },
        };
        let single =
            results.len() == 1 && ext.rule.as_ref().is_none_or(|rule| rule.node != "split");
        let wanted = vec![wanted.as_str(); results.len()];
        let names = frame.result_names(hint, &wanted);
        let vars: Vec<Variable> = results
            .into_iter()
            .zip(names)
            .map(|(shape, name)| Variable { name, shape, optional: false })
            .collect();
        let mut values: Vec<Value> = vars.iter().map(Value::of).collect();
        frame.push(Statement::Let { vars, op, span });
        Some(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    /// Arrays whose presence the config settles are taken out where an op needs one.
    fn unwrap_present(
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

    /// Shapes of the results, and for a module its load arguments, path and tensors. The arguments
    /// stand in the innermost scope; defaults are added to it.
    #[expect(clippy::type_complexity, reason = "read once, right where it is made")]
    fn extern_signature(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        call: &Call,
        span: Span,
    ) -> Option<(Vec<Shape>, Option<(Vec<Scalar>, String, Vec<TensorDecl>)>)> {
        let mut bound = Bound::default();
        let spans: HashMap<&str, Span> = ext
            .params
            .iter()
            .zip(0..)
            .filter_map(|(param, at): (&Param, usize)| {
                let named = call
                    .args
                    .iter()
                    .find(|arg| arg.name.as_ref().is_some_and(|name| name.node == param.name.node));
                let arg = named.or_else(|| call.args.get(at).filter(|arg| arg.name.is_none()))?;
                Some((param.name.node.as_str(), arg.value.span))
            })
            .collect();
        let mut fine = true;
        for param in &ext.params {
            let Some(ty) = &param.ty else { continue };
            let ParamType::Tensor(dims) = super::call::plain(&ty.node) else { continue };
            let Some(Value::Array { shape, .. }) = frame.find(&param.name.node).cloned() else {
                continue;
            };
            let at = spans.get(param.name.node.as_str()).copied().unwrap_or(span);
            fine &= self.unify(frame, dims, &shape, &mut bound, (at, &param.name.node)).is_some();
        }
        if !fine {
            return None;
        }
        for param in &ext.params {
            if frame.find(&param.name.node).is_some() {
                continue;
            }
            let value = match &param.default {
                None => Value::None,
                Some(default) => self.extern_default(frame, ext, param, default, &bound, span)?,
            };
            frame.set(&param.name.node, value);
        }
        let mut shapes = Vec::new();
        for result in &ext.result {
            shapes.push(self.build_shape(frame, &result.node, &bound, span)?);
        }
        if !ext.class.module {
            return Some((shapes, None));
        }
        let mut path = String::new();
        for param in &ext.params {
            if matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Path))
                && let Some(text) = frame.find(&param.name.node).and_then(super::text_of)
            {
                path = frame.full_path(text);
            }
        }
        let mut args = Vec::new();
        for arg in &ext.load_args {
            let scalar = self.load_arg(frame, ext, arg, (&bound, &path), span)?;
            self.note_uses(frame, &scalar.expr);
            args.push(scalar);
        }
        let mut tensors = Vec::new();
        for weight in &ext.weights {
            let mut shape = Vec::new();
            for dim in &weight.shape {
                let Dim::Expr(expr) = dim else { continue };
                let size = self.size(frame, expr, &bound, span)?;
                shape.push(self.known_size(&size, span)?);
            }
            let condition = match &weight.condition {
                None => None,
                Some(condition) => {
                    let scalar = self.condition(frame, condition)?;
                    self.note_uses(frame, &scalar.expr);
                    match scalar.as_bool() {
                        Some(false) => continue,
                        Some(true) => None,
                        None => Some(scalar),
                    }
                }
            };
            let parts = [path.as_str(), weight.name.node.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            tensors.push(TensorDecl {
                path: parts.join("."),
                shape,
                quantised: weight.quantised,
                condition,
            });
        }
        Some((shapes, Some((args, path, tensors))))
    }

    /// A default may name an axis of the arguments.
    fn extern_default(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        param: &Param,
        default: &Expr,
        bound: &Bound,
        span: Span,
    ) -> Option<Value> {
        if let ExprKind::Name(name) = &default.kind
            && let Some(size) = bound.sizes.get(name)
        {
            let size = size.clone();
            return self.known_size(&size, span).map(Value::Scalar);
        }
        if let ExprKind::Name(name) = &default.kind
            && !self.resolves(frame, name)
            && !matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Words(_)))
        {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::WrongArguments,
                    span,
                    format!("`{}` needs `{}`", ext.name.node, param.name.node),
                )
                .label(default.span, format!("its default is the config key `{name}`, which the manifest does not declare"))
                .help(format!("declare `{name}` under [config], or give `{} = ...`", param.name.node)),
            );
            return None;
        }
        self.argument(frame, param, default, None)
    }

    fn load_arg(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        arg: &Expr,
        (bound, path): (&Bound, &str),
        span: Span,
    ) -> Option<Scalar> {
        if let ExprKind::Name(name) = &arg.kind {
            if let Some(value) = frame.find(name) {
                let param = ext.params.iter().find(|param| param.name.node == *name);
                let ty = param.and_then(|param| param.ty.as_ref()).map(|ty| &ty.node);
                return match value {
                    Value::Scalar(scalar) if ty == Some(&ParamType::Path) => {
                        // A path argument is the path under the struct, `@` paths included.
                        let text = ExprKind::Str(path.to_owned());
                        Some(Scalar::literal(text, scalar.expr.span))
                    }
                    Value::Scalar(scalar) => Some(scalar.clone()),
                    _ => Some(Scalar::literal(ExprKind::None, span)),
                };
            }
            if let Some(size) = bound.sizes.get(name) {
                let size = size.clone();
                return self.known_size(&size, span);
            }
        }
        if matches!(&arg.kind, ExprKind::Binary(..)) {
            let size = self.size(frame, arg, bound, span)?;
            return self.known_size(&size, span);
        }
        self.scalar(frame, arg)
    }

    /// A size as an expression over the config.
    fn known_size(&mut self, size: &Poly, span: Span) -> Option<Scalar> {
        match self.facts.expr(size, span) {
            Some(expr) => {
                let ty = ScalarType::Int;
                Some(match size.as_int() {
                    Some(value) => Scalar::literal(ExprKind::Int(value), span),
                    None => Scalar { expr, ty },
                })
            }
            None => {
                let message = format!("the size `{size}` is not known when the model is loaded");
                self.error(Code::UnknownSize, span, message);
                None
            }
        }
    }

    /// What an op is given for a parameter; none for what only `load` is given.
    fn extern_operand(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        param: &Param,
        scope: &HashMap<String, Value>,
        span: Span,
    ) -> Option<Option<Operand>> {
        let value = scope.get(&param.name.node).cloned().unwrap_or(Value::None);
        let ty = param.ty.as_ref().map(|ty| super::call::plain(&ty.node));
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
                let literal =
                    (scalar.is_literal() || scalar.is_ints()) && scalar.ty != ScalarType::None;
                let operand = self.scalar_operand(frame, scalar, &param.name.node);
                if optional && (literal || !matches!(operand, Operand::Literal(_))) {
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
    fn slot(&mut self, frame: &mut Frame, span: Span) -> Option<FieldRef> {
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

    /// Sets a declared shape against an array's: binds its names, or says where the two differ.
    pub(super) fn unify(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        shape: &[Poly],
        bound: &mut Bound,
        (at, what): (Span, &str),
    ) -> Option<()> {
        let singles = dims.iter().filter(|dim| matches!(dim, Dim::Expr(_))).count();
        let has_rest = singles != dims.len();
        let declared = || super::call::show_type(&ParamType::Tensor(dims.to_vec()));
        if shape.len() < singles || (!has_rest && shape.len() != singles) {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::ShapeRank,
                    at,
                    format!("{what} must be {}, and has {} axes", declared(), shape.len()),
                )
                .here(format!("this is {}", show(shape))),
            );
            return None;
        }
        let mut axis = 0;
        for dim in dims {
            match dim {
                Dim::Rest(name) => {
                    let count = shape.len() - singles;
                    let part = shape.get(axis..axis + count).unwrap_or(&[]).to_vec();
                    axis += count;
                    match bound.rests.get(name) {
                        None => {
                            bound.rests.insert(name.clone(), part);
                        }
                        Some(before) => {
                            let agree = self.broadcast(before, &part).filter(|both| {
                                both.len() == before.len() || both.len() == part.len()
                            });
                            let Some(both) = agree else {
                                let before = before.clone();
                                self.mismatch(at, what, &show(&before), shape);
                                return None;
                            };
                            bound.rests.insert(name.clone(), both);
                        }
                    }
                }
                Dim::Expr(expr) => {
                    let size = shape.get(axis)?.clone();
                    axis += 1;
                    if let ExprKind::Name(name) = &expr.kind
                        && !bound.sizes.contains_key(name)
                        && !self.resolves(frame, name)
                    {
                        bound.sizes.insert(name.clone(), size);
                        continue;
                    }
                    let wanted = self.size(frame, expr, bound, at)?;
                    if !self.facts.same(&wanted, &size) {
                        self.diagnostics.push(
                            Diagnostic::error(Code::ShapeMismatch, at, "shapes do not agree")
                                .here(format!("this is {}", show(shape)))
                                .label(expr.span, format!("{what} has `{wanted}` here"))
                                .help(format!(
                                    "axis {} of {what} must be `{wanted}`, and it is `{size}`",
                                    axis - 1
                                )),
                        );
                        return None;
                    }
                }
            }
        }
        Some(())
    }

    fn mismatch(&mut self, at: Span, what: &str, wanted: &str, shape: &[Poly]) {
        self.diagnostics.push(
            Diagnostic::error(Code::ShapeMismatch, at, "shapes do not agree")
                .here(format!("this is {}", show(shape)))
                .help(format!("the leading axes of {what} must agree with {wanted}")),
        );
    }

    /// The shape a signature gives its result.
    fn build_shape(
        &mut self,
        frame: &mut Frame,
        dims: &[Dim],
        bound: &Bound,
        span: Span,
    ) -> Option<Shape> {
        let mut shape = Shape::new();
        for dim in dims {
            match dim {
                Dim::Rest(name) => shape.extend(bound.rests.get(name).cloned().unwrap_or_default()),
                Dim::Expr(expr) => shape.push(self.size(frame, expr, bound, span)?),
            }
        }
        Some(shape)
    }

    /// A size written with names of the signature, its parameters and the config.
    pub(super) fn size(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        bound: &Bound,
        span: Span,
    ) -> Option<Poly> {
        match &expr.kind {
            ExprKind::Name(name) => {
                if let Some(size) = bound.sizes.get(name) {
                    return Some(size.clone());
                }
            }
            ExprKind::Binary(op, left, right) => {
                let a = self.size(frame, left, bound, span)?;
                let b = self.size(frame, right, bound, span)?;
                let result = match op {
                    BinaryOp::Add => a.add(&b),
                    BinaryOp::Sub => a.sub(&b),
                    BinaryOp::Mul => a.mul(&b).map(|product| self.facts.cancel(&product)),
                    BinaryOp::FloorDiv => {
                        let origin = self.quotient_expr(&a, &b, expr.span);
                        Some(self.facts.quotient(&a, &b, &origin.unwrap_or_else(|| expr.clone())))
                    }
                    _ => None,
                };
                if result.is_none() {
                    self.error(Code::UnknownSize, span, "the size cannot be computed");
                }
                return result;
            }
            _ => {}
        }
        let mut scalar = self.scalar(frame, expr)?;
        if let ScalarType::Nullable(inner) = scalar.ty {
            scalar.ty = *inner;
        }
        Some(self.facts.poly(&scalar.expr))
    }

    fn quotient_expr(&self, a: &Poly, b: &Poly, span: Span) -> Option<Expr> {
        let (a, b) = (self.facts.expr(a, span)?, self.facts.expr(b, span)?);
        let kind = ExprKind::Binary(BinaryOp::FloorDiv, Box::new(a), Box::new(b));
        Some(Expr { span, kind })
    }
}

impl Frame {
    /// Rust names for the results of an operation: the names they are assigned to, where these fit.
    pub(super) fn result_names(&mut self, hint: Option<&str>, wanted: &[&str]) -> Vec<String> {
        if wanted.len() == 1 {
            let wanted = wanted.first().copied().unwrap_or("value");
            return vec![self.result_name(hint, wanted)];
        }
        let names = std::mem::take(&mut self.tuple_names);
        if names.len() == wanted.len() {
            return names.iter().map(|name| self.variable(name)).collect();
        }
        wanted.iter().map(|name| self.temporary(name)).collect()
    }
}
