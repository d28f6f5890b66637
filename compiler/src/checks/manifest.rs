//! What can be said about a manifest's expressions before any config is read: names, types, cycles.

use std::collections::HashSet;

use specc_checkpoint::map::Pattern;

use crate::diag::{Code, Diagnostic};
use crate::ir::{Scalar, ScalarType, declared_scalar};
use crate::lower::{ManifestScope, manifest_scalar};
use crate::manifest::{ConfigKey, LayerKindRule, Manifest};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{Expr, ExprKind};
use crate::weights;

/// Checks every expression of a manifest but those that blocks get from `[graph]`.
pub fn check_manifest(manifest: &Manifest) -> Vec<Diagnostic> {
    let mut checker = Checker { manifest, diags: Vec::new() };
    checker.config();
    let plain = ManifestScope::default();
    for check in &manifest.checks {
        checker.scalar(&check.condition, plain);
    }
    if let Some(accepts) = &manifest.family.accepts {
        checker.scalar(accepts, plain);
    }
    checker.layers();
    checker.weights();
    if let Some(method) = &manifest.denoising {
        let (expr, key) = (&method.canvas_length, method.canvas_length_key);
        checker.fits(expr, &ScalarType::Int, false, "`canvas_length`", key);
    }
    for section in &manifest.sections {
        for (_, expr) in &section.exprs {
            checker.scalar(expr, plain);
        }
    }
    checker.diags
}

struct Checker<'a> {
    manifest: &'a Manifest,
    diags: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn scalar(&mut self, expr: &Expr, scope: ManifestScope<'_>) -> Option<Scalar> {
        match manifest_scalar(self.manifest, expr, scope) {
            Ok(scalar) => Some(scalar),
            Err(found) => {
                for mut diagnostic in found {
                    if diagnostic.code == Code::UnknownName {
                        diagnostic.notes = vec![names_of(scope)];
                    }
                    if !self.diags.contains(&diagnostic) {
                        self.diags.push(diagnostic);
                    }
                }
                None
            }
        }
    }

    fn config(&mut self) {
        let manifest = self.manifest;
        for key in &manifest.config {
            let label = |word: &str| format!("the {word} of `{}`", key.name.node);
            if let Some(default) = &key.default {
                self.fits(
                    default,
                    &declared_scalar(key),
                    key.nullable,
                    &label("default"),
                    key.name.span,
                );
            }
            if let Some(value) = &key.value {
                self.fits(
                    value,
                    &declared_scalar(key),
                    key.nullable,
                    &label("value"),
                    key.name.span,
                );
            }
            if let Some(rope) = &key.rope {
                let parts = [
                    ("theta", &rope.theta, ScalarType::Float),
                    ("partial", &rope.partial, ScalarType::Float),
                    ("max_positions", &rope.max_positions, ScalarType::Int),
                    ("original", &rope.original, ScalarType::Int),
                ];
                for (word, expr, ty) in parts {
                    if let Some(expr) = expr {
                        self.fits(expr, &ty, true, &label(word), key.name.span);
                    }
                }
            }
        }
        self.cycles();
    }

    /// Whether an expression can be of a type; json may turn out to be anything.
    fn fits(&mut self, expr: &Expr, wanted: &ScalarType, nullable: bool, what: &str, key: Span) {
        let before = self.diags.len();
        let Some(scalar) = self.scalar(expr, ManifestScope::default()) else {
            if let (ScalarType::Str, ExprKind::Name(word), Some(last)) =
                (wanted, &expr.kind, self.diags.get_mut(before..).and_then(<[_]>::last_mut))
            {
                last.help =
                    vec![format!("a word stands in quotes within the expression: '\"{word}\"'")];
            }
            return;
        };
        let found = &scalar.ty;
        let plain = found.plain();
        let same = match (wanted, plain) {
            (ScalarType::Json, _) | (_, ScalarType::Json) => true,
            (_, ScalarType::None) => nullable,
            (ScalarType::Float, ScalarType::Int) => true,
            (ScalarType::List(_), ScalarType::List(inner)) if **inner == ScalarType::None => true,
            (ScalarType::List(want), ScalarType::List(inner)) => {
                want == inner || (**want == ScalarType::Float && **inner == ScalarType::Int)
            }
            (want, found) => want == found,
        };
        if !same {
            let mut error = Diagnostic::error(
                Code::ConfigType,
                expr.span,
                format!("{what} must be {wanted}, found {found}"),
            )
            .label(key, "the key");
            if *wanted == ScalarType::Int && *plain == ScalarType::Float {
                error = error.help("`//` divides integers; `int(..)` cuts a fraction off");
            }
            self.diags.push(error);
        }
    }

    fn cycles(&mut self) {
        let mut done = HashSet::new();
        for at in 0..self.manifest.config.len() {
            self.visit(at, &mut Vec::new(), &mut done);
        }
    }

    /// Follows what a key needs; a manifest has a bounded number of keys, so the depth is bounded.
    fn visit(&mut self, at: usize, path: &mut Vec<usize>, done: &mut HashSet<usize>) {
        let manifest = self.manifest;
        let Some(key) = manifest.config.get(at).filter(|_| !done.contains(&at)) else { return };
        let name = |at: &usize| manifest.config.get(*at).map_or("", |key| key.name.node.as_str());
        if let Some(start) = path.iter().position(|known| *known == at) {
            let circle: Vec<&str> = path.iter().skip(start).chain([&at]).map(name).collect();
            self.diags.push(
                Diagnostic::error(
                    Code::ConfigCycle,
                    key.name.span,
                    format!("`{}` needs itself", key.name.node),
                )
                .note(format!("by way of {}", circle.join(" -> "))),
            );
            done.insert(at);
            return;
        }
        path.push(at);
        for needed in needs(key) {
            if let Some(next) = manifest.config.iter().position(|key| key.name.node == needed) {
                self.visit(next, path, done);
            }
        }
        path.pop();
        done.insert(at);
    }

    fn layers(&mut self) {
        let rules = &self.manifest.layers;
        let each = ManifestScope { layer_index: true, captures: None };
        if let Some(scalar) = self.scalar(&rules.count, ManifestScope::default())
            && !matches!(scalar.ty.plain(), ScalarType::Int | ScalarType::Json)
        {
            let message = format!("the number of layers must be int, found {}", scalar.ty);
            self.diags.push(Diagnostic::error(Code::ConfigType, rules.count.span, message));
        }
        if let Some(LayerKindRule::Expr(kind)) = &rules.kind
            && let Some(scalar) = self.scalar(kind, each)
            && !matches!(scalar.ty.plain(), ScalarType::Str | ScalarType::Json)
        {
            self.diags.push(
                Diagnostic::error(
                    Code::ConfigType,
                    kind.span,
                    format!("`kind` must be a word, found {}", scalar.ty),
                )
                .help("words stand in quotes within the expression: kind = '\"full_attention\"'"),
            );
        }
        if let Some(donor) = &rules.donor {
            self.scalar(donor, each);
        }
        for kind in &rules.kinds {
            for (_, value) in kind.values.iter().chain(&kind.params) {
                self.scalar(value, each);
            }
        }
    }

    fn weights(&mut self) {
        let weights = &self.manifest.weights;
        for drop in &weights.drops {
            let captures = self.pattern(&drop.pattern);
            if let Some(when) = &drop.when {
                self.scalar(when, ManifestScope { layer_index: false, captures: Some(&captures) });
            }
        }
        for map in &weights.maps {
            let captures: Vec<String> =
                map.from.first().map(|from| self.pattern(from)).unwrap_or_default();
            map.from.iter().skip(1).for_each(|from| {
                self.pattern(from);
            });
            if let Some(when) = &map.when {
                self.scalar(when, ManifestScope { layer_index: false, captures: Some(&captures) });
            }
            let (steps, found) = weights::lower(map);
            self.diags.extend(found);
            for number in steps.iter().flat_map(weights::Step::numbers) {
                self.scalar(number, ManifestScope::default());
            }
        }
    }

    /// The captures of a pattern; one that cannot be read is reported.
    fn pattern(&mut self, text: &Spanned<String>) -> Vec<String> {
        match Pattern::parse(&text.node) {
            Ok(pattern) => {
                // Layers of what `{i}` takes: a capture of digits is a number in conditions.
                pattern
                    .captures()
                    .filter(|name| pattern.is_digits(name))
                    .map(str::to_owned)
                    .collect()
            }
            Err(error) => {
                self.diags.push(Diagnostic::error(
                    Code::WeightPattern,
                    text.span,
                    error.to_string(),
                ));
                Vec::new()
            }
        }
    }
}

fn names_of(scope: ManifestScope<'_>) -> String {
    let more = match scope {
        ManifestScope { captures: Some(_), .. } => ", and the captures of digits of the pattern",
        ManifestScope { layer_index: true, .. } => ", and `i`, the layer's index",
        _ => "",
    };
    format!("names here are the keys of [config], `model_type`{more}")
}

/// The names a key's expressions read.
fn needs(key: &ConfigKey) -> Vec<String> {
    let mut names = Vec::new();
    for expr in key.expressions() {
        crate::syntax::visit::names(expr, &mut |name| names.push(name.node.clone()));
    }
    names
}
