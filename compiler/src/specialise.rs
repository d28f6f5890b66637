//! A family for one config: values take the place of names before anything is lowered.
//!
//! What the config says is filled into the manifest's expressions, and [`crate::lower`] reads every
//! other name of a config key as its value. So choices over the config are decided by the rules that
//! decide choices over words of the spec, and the generated code has no trace of the others.

use specc_checkpoint::config::{ConfigFile, canonical_config, config_fingerprint};

use crate::diag::{Code, Diagnostic};
use crate::expr::{
    ConfigValues, Env, LayerValues, Scope, Value, evaluate, evaluate_layers, fold, literal, truth,
};
use crate::manifest::{LayerKind, LayerKindRule, Manifest};
use crate::source::Spanned;
use crate::syntax::ast::{Expr, ExprKind};

/// The config that a specialised graph is for.
#[derive(Debug, Clone)]
pub struct Pinned {
    /// The values of the manifest's keys.
    pub values: ConfigValues,
    /// Each layer.
    pub layers: Vec<LayerValues>,
    /// `model_type` of the config.
    pub model_type: String,
    /// [`config_fingerprint`]
    pub fingerprint: String,
    /// [`canonical_config`]
    pub canonical: String,
}

impl Pinned {
    /// The value of `layer.KEY`, where all layers have the same.
    pub fn layer(&self, key: &str) -> Option<Value> {
        let of = |layer: &LayerValues| {
            let scope = Scope { layer: Some(layer), ..Scope::new(&self.values) };
            Env::layer(&scope, key)
        };
        let mut layers = self.layers.iter();
        let first = of(layers.next()?)?;
        layers.all(|layer| of(layer).as_ref() == Some(&first)).then_some(first)
    }
}

impl Env for Pinned {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        self.values.name(name)
    }

    fn layer(&self, key: &str) -> Option<Value> {
        // The index differs from layer to layer even where there is but one.
        if key == "index" { None } else { Pinned::layer(self, key) }
    }
}

/// The manifest of a family for this config alone.
///
/// # Errors
/// The config is none of the family's: another model type, or what `check --model` would say of it.
pub fn specialise(manifest: &Manifest, config: &ConfigFile) -> Result<Manifest, Vec<Diagnostic>> {
    let family = &manifest.family;
    let model_type = config.model_type().unwrap_or_default().to_owned();
    let refused =
        |message: String| vec![Diagnostic::error(Code::NoFamily, family.name.span, message)];
    if !family.model_types.iter().any(|known| known.node == model_type) {
        let path = config.path().display();
        return Err(refused(format!(
            "{path}: model_type {model_type:?} is none of `{}`'s",
            family.name.node
        )));
    }
    let values = evaluate(manifest, config)?;
    let layers = evaluate_layers(manifest, &values)?;
    if let Some(condition) = &family.accepts
        && !truth(condition, &values).unwrap_or(false)
    {
        let message =
            format!("`{}` does not take this config: its `accepts` refuses it", family.name.node);
        return Err(refused(message));
    }
    let pinned = Pinned {
        values,
        layers,
        model_type,
        fingerprint: config_fingerprint(config),
        canonical: canonical_config(config),
    };
    let mut found = manifest.clone();
    fill(&mut found, &pinned);
    found.pinned = Some(Box::new(pinned));
    Ok(found)
}

fn fill(manifest: &mut Manifest, pinned: &Pinned) {
    manifest.family.accepts = None;
    // They hold for this config.
    manifest.checks.clear();
    let settle = |expr: &mut Expr| *expr = fold(expr, pinned);
    let holds = |when: &mut Option<Expr>| {
        let Some(condition) = when else { return true };
        settle(condition);
        match condition.kind {
            ExprKind::Bool(false) | ExprKind::Int(0) | ExprKind::None => false,
            ExprKind::Bool(true) | ExprKind::Int(_) => {
                *when = None;
                true
            }
            _ => true,
        }
    };
    manifest.weights.drops.retain_mut(|drop| holds(&mut drop.when));
    manifest.weights.maps.retain_mut(|map| holds(&mut map.when));
    for map in &mut manifest.weights.maps {
        map.steps.iter_mut().for_each(settle);
    }
    for section in &mut manifest.sections {
        section.exprs.iter_mut().for_each(|(_, expr)| settle(expr));
    }
    layers(manifest, pinned);
}

/// Kinds that no layer has go away; each value is a literal, or a list with one entry a layer.
fn layers(manifest: &mut Manifest, pinned: &Pinned) {
    let rules = &mut manifest.layers;
    rules.count = fold(&rules.count, pinned);
    rules.donor = rules.donor.as_ref().map(|donor| fold(donor, pinned));
    rules.kinds.retain(|kind| pinned.layers.iter().any(|layer| layer.kind == kind.name.node));
    for kind in &mut rules.kinds {
        let name = kind.name.node.clone();
        let of_kind = |layer: &&LayerValues| layer.kind == name;
        each_value(kind, pinned, &of_kind);
    }
    let at = rules.count.span;
    rules.kind = match rules.kinds.as_slice() {
        [] | [_] => None,
        _ => {
            let kinds: Vec<&str> = pinned.layers.iter().map(|layer| layer.kind.as_str()).collect();
            let word = |word: &&str| Spanned::new((*word).to_owned(), at);
            Some(LayerKindRule::Pattern(period(&kinds).iter().map(word).collect()))
        }
    };
}

fn each_value(kind: &mut LayerKind, pinned: &Pinned, own: &dyn Fn(&&LayerValues) -> bool) {
    let settle = |expr: &mut Expr, find: &dyn Fn(&LayerValues) -> Option<Value>| {
        let Some(first) = pinned.layers.iter().find(own).and_then(find) else { return };
        let same =
            pinned.layers.iter().filter(own).all(|layer| find(layer).as_ref() == Some(&first));
        if same {
            // A rope has no literal; its name stays.
            if let Some(kind) = literal(&first, expr) {
                expr.kind = kind;
            }
            return;
        }
        // The entries of layers of other kinds are never read.
        let entries = pinned.layers.iter().map(|layer| {
            let value = if own(&layer) { find(layer) } else { None };
            literal(&value.unwrap_or_else(|| first.clone()), expr)
        });
        let Some(entries) = entries.collect::<Option<Vec<_>>>() else { return };
        let span = expr.span;
        let item = |kind| Expr { span, kind };
        let list = ExprKind::List(entries.into_iter().map(item).collect());
        let index = ExprKind::Name("i".to_owned());
        expr.kind = ExprKind::Index(Box::new(item(list)), Box::new(item(index)));
    };
    for (name, expr) in &mut kind.values {
        let key = name.node.clone();
        let find = |layer: &LayerValues| {
            layer.values.iter().find(|(own, _)| *own == key).map(|(_, value)| value.clone())
        };
        settle(expr, &find);
    }
    for (name, expr) in &mut kind.params {
        let key = name.node.clone();
        let find = |layer: &LayerValues| {
            layer.params.iter().find(|(own, _)| *own == key).map(|(_, value)| value.clone())
        };
        settle(expr, &find);
    }
}

/// The shortest beginning that gives the whole by repetition.
fn period<'w, 'k>(words: &'w [&'k str]) -> &'w [&'k str] {
    let repeats = |length: &usize| {
        words.iter().enumerate().all(|(at, word)| words.get(at % length) == Some(word))
    };
    let length = (1..=words.len()).find(repeats).unwrap_or(words.len());
    words.get(..length).unwrap_or(words)
}
