//! The layers of a model: kind, cache and values of each.

use super::config::{ConfigValues, no_value};
use super::eval::{Env, eval, truth};
use super::functions::Function;
use super::value::Value;
use crate::diag::{Code, Diagnostic, one_of};
use crate::manifest::{LayerKindRule, Manifest};
use crate::source::Span;

/// A model has at most this many layers.
const MAX_LAYERS: i64 = 1 << 14;

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerValues {
    /// Its place.
    pub index: i64,
    /// Its kind.
    pub kind: String,
    /// Owns its cache; the others read the last owner of their kind.
    pub donor: bool,
    /// The storage of its cache, `none` for nothing.
    pub storage: String,
    /// Parameters of the storage.
    pub params: Vec<(String, Value)>,
    /// `layer.*`
    pub values: Vec<(String, Value)>,
}

/// What names mean at one place of a model: the config, the layer, loop indices, the checkpoint.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The config.
    pub config: &'a ConfigValues,
    /// The layer around the place.
    pub layer: Option<&'a LayerValues>,
    /// Loop indices, innermost last.
    pub indices: &'a [(String, i64)],
    /// Whether the checkpoint holds a tensor of this name.
    pub has: Option<&'a dyn Fn(&str) -> bool>,
}

impl<'a> Scope<'a> {
    /// The config alone.
    pub fn new(config: &'a ConfigValues) -> Self {
        Self { config, layer: None, indices: &[], has: None }
    }
}

impl Env for Scope<'_> {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        let index = self.indices.iter().rev().find(|(known, _)| known == name);
        match index {
            Some((_, value)) => Some(Ok(Value::Int(*value))),
            None => self.config.name(name),
        }
    }

    fn layer(&self, key: &str) -> Option<Value> {
        let layer = self.layer?;
        Some(match key {
            "index" => Value::Int(layer.index),
            "kind" => Value::Str(layer.kind.clone()),
            "donor" => Value::Bool(layer.donor),
            _ => {
                let found = layer.values.iter().find(|(name, _)| name == key);
                found.map_or(Value::None, |(_, value)| value.clone())
            }
        })
    }

    fn ask(&self, question: Function, args: &[Value]) -> Option<Result<Value, String>> {
        match (question, args, self.has) {
            (Function::Has, [Value::Str(name)], Some(has)) => Some(Ok(Value::Bool(has(name)))),
            _ => None,
        }
    }
}

/// Every layer of a model.
///
/// # Errors
/// A count out of range, a kind that the manifest does not declare, an expression without a value.
pub fn evaluate_layers(
    manifest: &Manifest,
    config: &ConfigValues,
) -> Result<Vec<LayerValues>, Vec<Diagnostic>> {
    let rules = &manifest.layers;
    let span = rules.count.span;
    let count = eval(&rules.count, config).map_err(|error| vec![no_value(&error)])?;
    let count = match count {
        Value::Int(count) if (0..=MAX_LAYERS).contains(&count) => count,
        other => {
            let message =
                format!("the number of layers must lie within 0 and {MAX_LAYERS}, found {other}");
            return Err(vec![Diagnostic::error(Code::NoValue, span, message)]);
        }
    };
    let mut layers = Vec::new();
    for index in 0..count {
        match layer(manifest, config, index) {
            Ok(layer) => layers.push(layer),
            // The other layers would say the same.
            Err(problem) => return Err(vec![*problem]),
        }
    }
    Ok(layers)
}

fn layer(
    manifest: &Manifest,
    config: &ConfigValues,
    index: i64,
) -> Result<LayerValues, Box<Diagnostic>> {
    let rules = &manifest.layers;
    let indices = [("i".to_owned(), index)];
    let scope = Scope { indices: &indices, ..Scope::new(config) };
    let failed =
        |error: super::EvalError| Box::new(no_value(&error).note(format!("for layer {index}")));
    let kind = match &rules.kind {
        None => rules.kinds.first().map(|kind| kind.name.node.clone()).unwrap_or_default(),
        Some(LayerKindRule::Pattern(words)) => {
            let at = usize::try_from(index).unwrap_or(0) % words.len().max(1);
            words.get(at).map(|word| word.node.clone()).unwrap_or_default()
        }
        Some(LayerKindRule::Expr(expr)) => match eval(expr, &scope).map_err(failed)? {
            Value::Str(word) => word,
            other => return Err(bad_kind(expr.span, index, &other.to_string(), manifest)),
        },
    };
    let Some(declared) = rules.kinds.iter().find(|known| known.name.node == kind) else {
        let span = match &rules.kind {
            Some(LayerKindRule::Expr(expr)) => expr.span,
            _ => rules.count.span,
        };
        return Err(bad_kind(span, index, &format!("{kind:?}"), manifest));
    };
    let donor =
        rules.donor.as_ref().map_or(Ok(true), |donor| truth(donor, &scope)).map_err(failed)?;
    let mut found = LayerValues {
        index,
        kind,
        donor,
        storage: declared.storage.node.clone(),
        params: Vec::new(),
        values: Vec::new(),
    };
    for (name, value) in &declared.values {
        found.values.push((name.node.clone(), eval(value, &scope).map_err(failed)?));
    }
    for (name, value) in &declared.params {
        let given = eval(value, &scope).map_err(failed)?;
        if given == Value::None {
            let message = format!("`{}` of the layer's cache has no value", name.node);
            let error = Diagnostic::error(Code::NoValue, value.span, message);
            return Err(Box::new(
                error.note(format!("for layer {index}, of kind {:?}", found.kind)),
            ));
        }
        found.params.push((name.node.clone(), given));
    }
    Ok(found)
}

fn bad_kind(span: Span, index: i64, found: &str, manifest: &Manifest) -> Box<Diagnostic> {
    let known = manifest.layers.kinds.iter().map(|kind| kind.name.node.as_str());
    Box::new(
        Diagnostic::error(Code::UnknownKind, span, format!("layer {index} is of kind {found}"))
            .help(format!("the family knows {}", one_of(known))),
    )
}
