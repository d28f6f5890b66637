//! Values known once the config is read: their types, and folding of what is known already.

use std::fmt;

use super::{Frame, Lowerer, Value, suggest};
use crate::diag::{Code, Diagnostic};
use crate::ir::{Scalar, ScalarType};
use crate::manifest::{ConfigKey, ConfigType, Manifest};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Call, Expr, ExprKind, UnaryOp};

impl Scalar {
    /// A literal.
    pub fn literal(kind: ExprKind, span: Span) -> Self {
        let ty = match &kind {
            ExprKind::Int(_) => ScalarType::Int,
            ExprKind::Float(_) => ScalarType::Float,
            ExprKind::Bool(_) => ScalarType::Bool,
            ExprKind::Str(_) => ScalarType::Str,
            _ => ScalarType::None,
        };
        Self { expr: Expr { span, kind }, ty }
    }

    /// Whether it is the same value, wherever the two were written.
    pub fn same(&self, other: &Scalar) -> bool {
        self.ty == other.ty
            && crate::syntax::print::expr(&self.expr) == crate::syntax::print::expr(&other.expr)
    }

    /// Whether it is a literal.
    pub fn is_literal(&self) -> bool {
        matches!(
            self.expr.kind,
            ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Bool(_)
                | ExprKind::Str(_)
                | ExprKind::None
        )
    }

    /// Whether it is a list of integers written out.
    pub fn is_ints(&self) -> bool {
        let int = |item: &Expr| matches!(item.kind, ExprKind::Int(_));
        matches!(&self.expr.kind, ExprKind::List(items) if !items.is_empty() && items.iter().all(int))
    }

    /// Whether it is a word, a description or a list rather than a number or a flag.
    pub fn is_text(&self) -> bool {
        !matches!(self.ty, ScalarType::Int | ScalarType::Float | ScalarType::Bool)
    }

    /// The truth it stands for, where that is known already.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.expr.kind {
            ExprKind::Bool(value) => Some(*value),
            ExprKind::Int(value) => Some(*value != 0),
            ExprKind::None => Some(false),
            ExprKind::Str(_) => Some(true),
            _ => None,
        }
    }
}

impl ScalarType {
    /// The type without `?`.
    pub fn plain(&self) -> &ScalarType {
        match self {
            ScalarType::Nullable(inner) => inner.plain(),
            other => other,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.plain(), ScalarType::Int | ScalarType::Float | ScalarType::Json)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarType::Int => f.write_str("int"),
            ScalarType::Float => f.write_str("float"),
            ScalarType::Bool => f.write_str("bool"),
            ScalarType::Str => f.write_str("str"),
            ScalarType::Rope => f.write_str("rope"),
            ScalarType::Json => f.write_str("json"),
            ScalarType::None => f.write_str("none"),
            ScalarType::List(inner) => write!(f, "list of {inner}"),
            ScalarType::Nullable(inner) => write!(f, "{inner}?"),
        }
    }
}

/// The type a config key has in expressions.
pub fn scalar_of_config(key: &ConfigKey) -> ScalarType {
    let ty = declared_scalar(key);
    if key.nullable && key.default.is_none() { ScalarType::Nullable(Box::new(ty)) } else { ty }
}

/// The type a config key declares, its `?` aside.
pub fn declared_scalar(key: &ConfigKey) -> ScalarType {
    let list = |inner| ScalarType::List(Box::new(inner));
    match &key.ty {
        ConfigType::Int => ScalarType::Int,
        ConfigType::Float => ScalarType::Float,
        ConfigType::Bool => ScalarType::Bool,
        ConfigType::Str | ConfigType::Enum(_) => ScalarType::Str,
        ConfigType::Ints => list(ScalarType::Int),
        ConfigType::Floats => list(ScalarType::Float),
        ConfigType::Strs => list(ScalarType::Str),
        ConfigType::Bools => list(ScalarType::Bool),
        ConfigType::Rope => ScalarType::Rope,
        ConfigType::Json => ScalarType::Json,
    }
}

/// What a manifest expression may name beside the config keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManifestScope<'a> {
    /// `i`, the layer's index.
    pub layer_index: bool,
    /// Captures of a weight pattern, and questions about the checkpoint.
    pub captures: Option<&'a [String]>,
}

/// Types a manifest expression, with names that are words of an enum made into strings.
///
/// # Errors
/// Unknown names and types that do not fit.
pub fn manifest_scalar(
    manifest: &Manifest,
    expr: &Expr,
    scope: ManifestScope<'_>,
) -> Result<Scalar, Vec<Diagnostic>> {
    let mut lowerer = Lowerer::new(manifest);
    let mut frame = Frame::new("", true);
    if scope.layer_index {
        frame.loops.push("i".to_owned());
        frame.visible.push("i".to_owned());
    }
    for name in scope.captures.unwrap_or(&[]) {
        frame.loops.push(name.clone());
        frame.visible.push(name.clone());
    }
    let scalar = lowerer.scalar(&mut frame, expr);
    match scalar {
        Some(scalar) if lowerer.diagnostics.is_empty() => Ok(scalar),
        _ => Err(lowerer.diagnostics),
    }
}

impl Lowerer<'_> {
    /// An expression that must be known once the config is read.
    pub(super) fn scalar(&mut self, frame: &mut Frame, expr: &Expr) -> Option<Scalar> {
        match self.expr(frame, expr, None)? {
            Value::Scalar(scalar) => Some(scalar),
            Value::None => Some(Scalar::literal(ExprKind::None, expr.span)),
            Value::Tuple(_) | Value::Broken(_) => {
                self.error(Code::WrongType, expr.span, "a tuple cannot be used here");
                None
            }
            Value::Array { shape, .. } => {
                let shape = crate::shapes::show(&shape);
                self.diagnostics.push(
                    Diagnostic::error(
                        Code::NotConfiguration,
                        expr.span,
                        "this must be known when the model is loaded, and it is an array",
                    )
                    .here(format!("an array {shape}"))
                    .help("only config keys, block parameters, `layer.*` and loop indices can be used here"),
                );
                None
            }
        }
    }

    /// A condition: a bool, a number that is not 0, or something that is not none.
    pub(super) fn condition(&mut self, frame: &mut Frame, expr: &Expr) -> Option<Scalar> {
        let scalar = self.scalar(frame, expr)?;
        Some(self.settled(truth(scalar)))
    }

    /// The scalar behind a name: a loop index or a config key.
    pub(super) fn named_scalar(
        &mut self,
        frame: &mut Frame,
        name: &str,
        span: Span,
    ) -> Option<Scalar> {
        let expr = Expr { span, kind: ExprKind::Name(name.to_owned()) };
        if frame.visible.iter().any(|index| index == name) {
            return Some(Scalar { expr, ty: ScalarType::Int });
        }
        if name == "model_type" {
            return Some(Scalar { expr, ty: ScalarType::Str });
        }
        let key = self.config.get(name)?;
        Some(Scalar { expr, ty: scalar_of_config(key) })
    }

    /// `layer.head_dim`, with the type of what the manifest gives for it.
    pub(super) fn layer_value(
        &mut self,
        frame: &mut Frame,
        expr: &Expr,
        key: &str,
    ) -> Option<Scalar> {
        if !frame.in_layers {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::LayerOutside,
                    expr.span,
                    format!("`layer.{key}` exists only inside `for i in layers`"),
                )
                .help("pass the value as a parameter, or move the line into a block that the layers call"),
            );
            return None;
        }
        frame.needs_layer |= !self.same_for_all_layers(key);
        let ty = match key {
            "index" => ScalarType::Int,
            "kind" => ScalarType::Str,
            "donor" => ScalarType::Bool,
            _ => self.layer_value_type(expr.span, key)?,
        };
        Some(Scalar { expr: expr.clone(), ty })
    }

    fn layer_value_type(&mut self, span: Span, key: &str) -> Option<ScalarType> {
        let manifest = self.manifest;
        let mut found: Option<ScalarType> = None;
        for kind in &manifest.layers.kinds {
            let Some((_, value)) = kind.values.iter().find(|(name, _)| name.node == key) else {
                continue;
            };
            let scope = ManifestScope { layer_index: true, captures: None };
            let Ok(scalar) = manifest_scalar(manifest, value, scope) else {
                // Reported where the manifest itself is checked.
                return None;
            };
            found = Some(match found {
                None => scalar.ty,
                Some(before) => join(&before, &scalar.ty),
            });
        }
        if found.is_none() {
            let known: Vec<&str> = manifest
                .layers
                .kinds
                .iter()
                .flat_map(|kind| kind.values.iter().map(|(name, _)| name.node.as_str()))
                .chain(["index", "kind", "donor"])
                .collect();
            let error = Diagnostic::error(
                Code::UnknownName,
                span,
                format!("no kind of layer declares `{key}`"),
            )
            .note("values of `layer` are declared under [layers] or [layers.KIND] of the manifest");
            self.diagnostics.push(suggest(error, key, known));
        }
        let missing = manifest
            .layers
            .kinds
            .iter()
            .any(|kind| !kind.values.iter().any(|(name, _)| name.node == key));
        found.map(|ty| match ty {
            ScalarType::Nullable(_) => ty,
            ty if missing => ScalarType::Nullable(Box::new(ty)),
            ty => ty,
        })
    }

    pub(super) fn unary(&mut self, op: UnaryOp, inner: Scalar, span: Span) -> Option<Scalar> {
        let folded = match (op, &inner.expr.kind) {
            (UnaryOp::Neg, ExprKind::Int(value)) => value.checked_neg().map(ExprKind::Int),
            (UnaryOp::Neg, ExprKind::Float(value)) => Some(ExprKind::Float(-value)),
            (UnaryOp::Not, _) => inner.as_bool().map(|value| ExprKind::Bool(!value)),
            _ => None,
        };
        if let Some(kind) = folded {
            return Some(Scalar::literal(kind, span));
        }
        let ty = match op {
            UnaryOp::Not => ScalarType::Bool,
            UnaryOp::Neg if inner.ty.is_number() => inner.ty.plain().clone(),
            UnaryOp::Neg => {
                let message = format!("`-` needs a number, and this is {}", inner.ty);
                self.error(Code::WrongType, inner.expr.span, message);
                return None;
            }
        };
        let inner = if op == UnaryOp::Not { truth(inner) } else { inner };
        Some(Scalar { expr: Expr { span, kind: ExprKind::Unary(op, Box::new(inner.expr)) }, ty })
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: Scalar,
        right: Scalar,
        span: Span,
    ) -> Option<Scalar> {
        let found = self.binary_as_written(op, left, right, span)?;
        Some(self.settled(found))
    }

    fn binary_as_written(
        &mut self,
        op: BinaryOp,
        left: Scalar,
        right: Scalar,
        span: Span,
    ) -> Option<Scalar> {
        if let Some(kind) = fold(op, &left, &right) {
            return Some(Scalar::literal(kind, span));
        }
        let (l, r) = (left.ty.plain().clone(), right.ty.plain().clone());
        let ty = match op {
            BinaryOp::And | BinaryOp::Or => {
                let decided = op == BinaryOp::Or;
                match (left.as_bool(), right.as_bool()) {
                    (Some(value), _) if value == decided => {
                        return Some(Scalar::literal(ExprKind::Bool(decided), span));
                    }
                    (Some(_), _) => return Some(truth(right)),
                    (_, Some(value)) if value != decided => return Some(truth(left)),
                    _ => {}
                }
                return Some(join_binary(op, truth(left), truth(right), span, ScalarType::Bool));
            }
            BinaryOp::Eq | BinaryOp::Ne => {
                let fits = l == r
                    || l == ScalarType::None
                    || r == ScalarType::None
                    || l == ScalarType::Json
                    || r == ScalarType::Json
                    || (l.is_number() && r.is_number());
                if !fits {
                    let message = format!("{} and {} are never equal", left.ty, right.ty);
                    self.error(Code::WrongType, span, message);
                    return None;
                }
                ScalarType::Bool
            }
            BinaryOp::In => match &r {
                ScalarType::List(_) | ScalarType::Str | ScalarType::Json => ScalarType::Bool,
                _ => {
                    let message = format!("`in` needs a list or a word, and this is {}", right.ty);
                    self.error(Code::WrongType, right.expr.span, message);
                    return None;
                }
            },
            BinaryOp::Else => {
                if left.ty == ScalarType::None {
                    return Some(right);
                }
                if !matches!(left.ty, ScalarType::Nullable(_) | ScalarType::Json) {
                    return Some(left);
                }
                let mut ty = join(&l, &right.ty);
                if l == ScalarType::Json {
                    ty = r.clone();
                }
                ty
            }
            _ => {
                for side in [&left, &right] {
                    if !side.ty.is_number() {
                        let (text, _) = crate::syntax::print::operator(op);
                        self.diagnostics.push(
                            Diagnostic::error(
                                Code::WrongType,
                                side.expr.span,
                                format!("`{text}` needs numbers"),
                            )
                            .here(format!("this is {}", side.ty)),
                        );
                        return None;
                    }
                }
                let float = matches!(l, ScalarType::Float) || matches!(r, ScalarType::Float);
                match op {
                    BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => ScalarType::Bool,
                    BinaryOp::Div => ScalarType::Float,
                    BinaryOp::Pow if !float => match right.expr.kind {
                        ExprKind::Int(power) if power >= 0 => ScalarType::Int,
                        _ => ScalarType::Float,
                    },
                    _ if float => ScalarType::Float,
                    _ => ScalarType::Int,
                }
            }
        };
        Some(join_binary(op, left, right, span, ty))
    }

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
            | "any" | "count" | "dtype" => (1, 1),
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
            "any" => ScalarType::Bool,
            "dtype" => ScalarType::Str,
            "min" | "max" => match &first {
                ScalarType::List(inner) => (**inner).clone(),
                _ if args.iter().any(|arg| *arg.ty.plain() == ScalarType::Float) => {
                    ScalarType::Float
                }
                _ => ScalarType::Int,
            },
            "abs" => first.clone(),
            _ => ScalarType::Float,
        };
        let list_ok = matches!(name, "len" | "min" | "max")
            && matches!(first, ScalarType::List(_) | ScalarType::Str | ScalarType::Json);
        let text_ok = matches!(name, "any" | "count" | "dim" | "dtype" | "int" | "float");
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

/// The scalar as a bool.
pub(super) fn truth(scalar: Scalar) -> Scalar {
    if let Some(value) = scalar.as_bool() {
        return Scalar::literal(ExprKind::Bool(value), scalar.expr.span);
    }
    let span = scalar.expr.span;
    let compare = |scalar: Scalar, with: ExprKind| Scalar {
        expr: Expr {
            span,
            kind: ExprKind::Binary(
                BinaryOp::Ne,
                Box::new(scalar.expr),
                Box::new(Expr { span, kind: with }),
            ),
        },
        ty: ScalarType::Bool,
    };
    match &scalar.ty {
        ScalarType::Bool => scalar,
        ScalarType::Int | ScalarType::Float => compare(scalar, ExprKind::Int(0)),
        ScalarType::Nullable(inner)
            if matches!(**inner, ScalarType::Int | ScalarType::Float | ScalarType::Bool) =>
        {
            // Null and zero (or false) both count as no.
            let zero =
                if **inner == ScalarType::Bool { ExprKind::Bool(false) } else { ExprKind::Int(0) };
            let ty = (**inner).clone();
            let filled = Expr {
                span,
                kind: ExprKind::Binary(
                    BinaryOp::Else,
                    Box::new(scalar.expr),
                    Box::new(Expr { span, kind: zero.clone() }),
                ),
            };
            let filled = Scalar { expr: filled, ty: ty.clone() };
            if ty == ScalarType::Bool { filled } else { compare(filled, ExprKind::Int(0)) }
        }
        _ => compare(scalar, ExprKind::None),
    }
}

fn join_binary(op: BinaryOp, left: Scalar, right: Scalar, span: Span, ty: ScalarType) -> Scalar {
    let kind = ExprKind::Binary(op, Box::new(left.expr), Box::new(right.expr));
    Scalar { expr: Expr { span, kind }, ty }
}

/// The type that holds values of both.
pub fn join(a: &ScalarType, b: &ScalarType) -> ScalarType {
    match (a, b) {
        _ if a == b => a.clone(),
        (ScalarType::None, ScalarType::Nullable(_)) => b.clone(),
        (ScalarType::Nullable(_), ScalarType::None) => a.clone(),
        (ScalarType::None, other) | (other, ScalarType::None) => {
            ScalarType::Nullable(Box::new(other.clone()))
        }
        (ScalarType::Nullable(a), b) | (b, ScalarType::Nullable(a)) => {
            ScalarType::Nullable(Box::new(join(a, b.plain())))
        }
        (ScalarType::Int, ScalarType::Float) | (ScalarType::Float, ScalarType::Int) => {
            ScalarType::Float
        }
        // Only these pairs reach here: a list without elements takes the other's element type.
        (ScalarType::List(inner), other) | (other, ScalarType::List(inner))
            if **inner == ScalarType::None =>
        {
            other.clone()
        }
        _ => ScalarType::Json,
    }
}

/// The value of an operation on literals; floats are left for the program that reads the config.
fn fold(op: BinaryOp, left: &Scalar, right: &Scalar) -> Option<ExprKind> {
    match (&left.expr.kind, &right.expr.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => match op {
            BinaryOp::Add => a.checked_add(*b).map(ExprKind::Int),
            BinaryOp::Sub => a.checked_sub(*b).map(ExprKind::Int),
            BinaryOp::Mul => a.checked_mul(*b).map(ExprKind::Int),
            BinaryOp::FloorDiv if *b > 0 => Some(ExprKind::Int(a.div_euclid(*b))),
            BinaryOp::Rem if *b > 0 => Some(ExprKind::Int(a.rem_euclid(*b))),
            BinaryOp::Eq => Some(ExprKind::Bool(a == b)),
            BinaryOp::Ne => Some(ExprKind::Bool(a != b)),
            BinaryOp::Lt => Some(ExprKind::Bool(a < b)),
            BinaryOp::Le => Some(ExprKind::Bool(a <= b)),
            BinaryOp::Gt => Some(ExprKind::Bool(a > b)),
            BinaryOp::Ge => Some(ExprKind::Bool(a >= b)),
            _ => None,
        },
        (ExprKind::Str(a), ExprKind::Str(b)) => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(a == b)),
            BinaryOp::Ne => Some(ExprKind::Bool(a != b)),
            _ => None,
        },
        (ExprKind::Bool(a), ExprKind::Bool(b)) => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(a == b)),
            BinaryOp::Ne => Some(ExprKind::Bool(a != b)),
            BinaryOp::And => Some(ExprKind::Bool(*a && *b)),
            BinaryOp::Or => Some(ExprKind::Bool(*a || *b)),
            _ => None,
        },
        (ExprKind::None, ExprKind::None) => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(true)),
            BinaryOp::Ne => Some(ExprKind::Bool(false)),
            _ => None,
        },
        (ExprKind::None, _) if right.is_literal() => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(false)),
            BinaryOp::Ne => Some(ExprKind::Bool(true)),
            _ => None,
        },
        (_, ExprKind::None) if left.is_literal() => match op {
            BinaryOp::Eq => Some(ExprKind::Bool(false)),
            BinaryOp::Ne => Some(ExprKind::Bool(true)),
            _ => None,
        },
        _ => None,
    }
}
