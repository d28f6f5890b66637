//! Values known once the config is read: expressions that must be such, and what their names mean.

use super::Lowerer;
use super::arithmetic::truth;
use super::frame::Frame;
use super::value::Value;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Scalar, ScalarType, join, scalar_of_config};
use crate::manifest::Manifest;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind};

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
    // `layer` is a word of graphs; a manifest says what its values are.
    let mut frame = Frame::new("", false);
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
                .help("pass the value as a parameter, or move the line into a block that the layers call; in [layers], `i` is the layer's index"),
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
            self.diagnostics.push(error.did_you_mean(key, known));
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
}
