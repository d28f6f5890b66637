//! Extern ops: arguments against their signature, then a call or a module field.

use super::Lowerer;
use super::frame::Frame;
use super::sizes::Bound;
use super::value::{Value, text_of};
use crate::diag::{Code, Diagnostic};
use crate::ir::{FieldKind, Kept, Op, PassUse, Scalar, Statement, TensorDecl, Variable};
use crate::shapes::Shape;
use crate::source::Span;
use crate::syntax::ast::{Call, Dim, Expr, ExprKind, Extern, ExternState, Param, ParamType};

/// The axis of rows in what a mixer keeps.
const ROWS: &str = "B";

/// The axis of stored positions there.
const POSITIONS: &str = "S";

/// What a call makes of an extern's signature.
struct Signature {
    results: Vec<Shape>,
    /// For a module.
    load: Option<Load>,
    keeps: Vec<Kept>,
}

/// What a module is loaded with.
struct Load {
    args: Vec<Scalar>,
    path: String,
    tensors: Vec<TensorDecl>,
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
        if ext.class.mixer {
            self.note_mixer(frame, ext, span);
        }
        let scope = frame.scopes.pop().unwrap_or_default();
        let Signature { results: shapes, load, keeps } = result?;
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
            Some(Load { path, .. }) if !path.is_empty() => {
                path.rsplit('.').next().unwrap_or(name).to_owned()
            }
            _ => name.clone(),
        };
        let op = match load {
            Some(Load { args, path, tensors }) => {
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
        frame.push(Statement::Let { vars, op, keeps, span });
        Some(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    /// What a call makes of the extern's signature. The arguments stand in the innermost scope;
    /// defaults are added to it.
    fn extern_signature(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        call: &Call,
        span: Span,
    ) -> Option<Signature> {
        let mut bound = Bound::default();
        let mut fine = true;
        for (at, param) in ext.params.iter().enumerate() {
            let Some(ty) = &param.ty else { continue };
            let ParamType::Tensor(dims) = ty.node.plain() else { continue };
            let Some(Value::Array { shape, .. }) = frame.find(&param.name.node).cloned() else {
                continue;
            };
            let at = given_at(call, param, at).unwrap_or(span);
            let what = format!("`{}` of `{}`", param.name.node, ext.name.node);
            fine &= self.unify(frame, dims, &shape, &mut bound, (at, &what)).is_some();
        }
        if !fine {
            return None;
        }
        if (ext.class.mixer || ext.class.position) && bound.sizes.contains_key("L") {
            self.axes_besides_tokens(&bound, span)?;
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
        let mut results = Vec::new();
        for result in &ext.result {
            results.push(self.build_shape(frame, &result.node, &bound, span)?);
        }
        let mut keeps = Vec::new();
        for state in &ext.keeps {
            keeps.push(self.kept(frame, state, &bound, span)?);
        }
        let load = match ext.class.module {
            true => Some(self.extern_load(frame, ext, &bound, span)?),
            false => None,
        };
        Some(Signature { results, load, keeps })
    }

    /// What knows positions takes rows and tokens where it says, so that its other axes have known sizes.
    fn axes_besides_tokens(&mut self, bound: &Bound, span: Span) -> Option<()> {
        let mut others: Vec<_> =
            bound.sizes.iter().filter(|(name, _)| !matches!(name.as_str(), "B" | "L")).collect();
        others.sort_by_key(|(name, _)| name.as_str());
        others.into_iter().try_for_each(|(_, size)| self.known_size(size, span).map(drop))
    }

    /// What a module is loaded with.
    fn extern_load(
        &mut self,
        frame: &mut Frame,
        ext: &Extern,
        bound: &Bound,
        span: Span,
    ) -> Option<Load> {
        let mut path = String::new();
        for param in &ext.params {
            if matches!(param.ty.as_ref().map(|ty| &ty.node), Some(ParamType::Path))
                && let Some(text) = frame.find(&param.name.node).and_then(text_of)
            {
                path = frame.full_path(text);
            }
        }
        let mut args = Vec::new();
        for arg in &ext.load_args {
            let scalar = self.load_arg(frame, ext, arg, (bound, &path), span)?;
            self.note_uses(frame, &scalar.expr);
            args.push(scalar);
        }
        let mut tensors = Vec::new();
        for weight in &ext.weights {
            let shape = self.known_sizes(frame, &weight.shape, bound, span)?;
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
        Some(Load { args, path, tensors })
    }

    /// What a mixer stores: sizes that the config knows, for each row.
    fn kept(
        &mut self,
        frame: &mut Frame,
        state: &ExternState,
        bound: &Bound,
        span: Span,
    ) -> Option<Kept> {
        let named = |dim: &Dim, name: &str| matches!(dim, Dim::Expr(Expr { kind: ExprKind::Name(own), .. }) if own == name);
        let sizes: Vec<Dim> = state
            .shape
            .iter()
            .filter(|dim| !named(dim, ROWS) && !named(dim, POSITIONS))
            .cloned()
            .collect();
        Some(Kept {
            name: state.name.node.clone(),
            shape: self.known_sizes(frame, &sizes, bound, span)?,
            per_position: state.shape.iter().any(|dim| named(dim, POSITIONS)),
            float32: state.float32,
        })
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
}

/// Where the argument for a parameter stands.
fn given_at(call: &Call, param: &Param, at: usize) -> Option<Span> {
    let named = call
        .args
        .iter()
        .find(|arg| arg.name.as_ref().is_some_and(|name| name.node == param.name.node));
    let arg = named.or_else(|| call.args.get(at).filter(|arg| arg.name.is_none()))?;
    Some(arg.value.span)
}
