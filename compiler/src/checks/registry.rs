//! What must hold among all families of a library.

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic};
use crate::manifest::{ConfigType, Manifest};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};

/// What must hold among the families: at most one generic one, and no two that answer to one type.
pub fn check_registry(manifests: &BTreeMap<String, Manifest>) -> Vec<Diagnostic> {
    let mut diags = Vec::new();
    let mut generic: Option<&Manifest> = None;
    let mut answers: BTreeMap<&str, Vec<(&Manifest, &Spanned<String>)>> = BTreeMap::new();
    for manifest in manifests.values() {
        let family = &manifest.family;
        if family.generic {
            if let Some(known) = generic {
                // The one that starts from another family is the newcomer.
                let (first, second) = if known.family.extends.is_some() {
                    (manifest, known)
                } else {
                    (known, manifest)
                };
                diags.push(
                    Diagnostic::error(
                        Code::WrongTier,
                        second.family.name.span,
                        "a second generic family",
                    )
                    .label(first.family.name.span, "the first one")
                    .help("leave out `tier`, and give it a label"),
                );
            }
            generic = Some(manifest);
            continue;
        }
        for word in &family.model_types {
            answers.entry(&word.node).or_default().push((manifest, word));
        }
    }
    for (word, families) in answers {
        let mut families = families;
        // The one that starts from another one of them is the newcomer.
        let names: Vec<String> =
            families.iter().map(|(one, _)| one.family.name.node.clone()).collect();
        families.sort_by_key(|(one, _)| {
            !one.family.extends.as_ref().is_some_and(|base| names.contains(&base.node))
        });
        let open: Vec<_> =
            families.iter().filter(|(manifest, _)| manifest.family.accepts.is_none()).collect();
        if let [(first, at), (second, _), ..] = open.as_slice() {
            let other = families.iter().find(|(other, _)| other.family.name == second.family.name);
            let mut error = Diagnostic::error(
                Code::ModelTypeTaken,
                at.span,
                format!("two families answer to the model type `{word}`"),
            )
            .here(format!("`{}` takes every config of this type", first.family.name.node))
            .help("say in `accepts` which configs are meant: accepts = \"num_experts > 0\"");
            if let Some((other, at)) = other {
                error = error.label(at.span, format!("so does `{}`", other.family.name.node));
            }
            diags.push(error);
        }
        overlaps(word, &families, &mut diags);
    }
    names(manifests, &mut diags);
    diags
}

/// Conditions of families for one model type of which one surely takes what another does. What
/// cannot be told from the conditions alone is told when a config is there.
fn overlaps(word: &str, families: &[(&Manifest, &Spanned<String>)], diags: &mut Vec<Diagnostic>) {
    let conditions: Vec<_> = families
        .iter()
        .filter_map(|(manifest, at)| Some((*manifest, *at, manifest.family.accepts.as_ref()?)))
        .collect();
    for (at, (one, place, condition)) in conditions.iter().enumerate() {
        for (other, other_place, other_condition) in conditions.iter().skip(at + 1) {
            let (one_asks, other_asks) = (conjuncts(condition), conjuncts(other_condition));
            let within = |few: &[String], many: &[String]| few.iter().all(|ask| many.contains(ask));
            let nested = within(&one_asks, &other_asks) || within(&other_asks, &one_asks);
            if !nested || !alike(one, other, [condition, other_condition]) {
                continue;
            }
            let (one, other) = (&one.family.name.node, &other.family.name.node);
            diags.push(
                Diagnostic::error(
                    Code::ModelTypeTaken,
                    place.span,
                    format!("two families take the same configs of the model type `{word}`"),
                )
                .here(format!("`{one}` where {}", crate::syntax::print::expr(condition)))
                .label(
                    other_place.span,
                    format!("`{other}` where {}", crate::syntax::print::expr(other_condition)),
                )
                .help("say in both `accepts` what keeps the one from what the other takes"),
            );
        }
    }
}

/// The parts of a condition that must all hold, as texts.
fn conjuncts(condition: &Expr) -> Vec<String> {
    match &condition.kind {
        ExprKind::Binary(BinaryOp::And, left, right) => {
            let mut parts = conjuncts(left);
            parts.extend(conjuncts(right));
            parts
        }
        ExprKind::Bool(true) => Vec::new(),
        _ => vec![crate::syntax::print::expr(condition)],
    }
}

/// Whether the keys that conditions name are read alike by two families.
fn alike(one: &Manifest, other: &Manifest, conditions: [&Expr; 2]) -> bool {
    let mut alike = one.roots == other.roots;
    for condition in conditions {
        crate::syntax::visit::names(condition, &mut |name| {
            let (one, other) = (told(one, &name.node), told(other, &name.node));
            alike &= one.is_some() && one == other;
        });
    }
    alike
}

/// What a key is read from; none where its value depends on other keys.
fn told<'m>(manifest: &'m Manifest, name: &str) -> Option<(&'m ConfigType, &'m [String], String)> {
    let key = manifest.config.iter().find(|key| key.name.node == name)?;
    let default = key.default.as_ref().map(crate::syntax::print::expr);
    match &key.value {
        Some(_) => None,
        None => Some((&key.ty, key.from.as_slice(), default.unwrap_or_default())),
    }
}

/// Names that belong to one family each.
fn names(manifests: &BTreeMap<String, Manifest>, diags: &mut Vec<Diagnostic>) {
    let mut seen: BTreeMap<(&str, String), (&Manifest, Span)> = BTreeMap::new();
    for manifest in manifests.values() {
        let names = manifest.profile_names();
        for (what, name, span) in names {
            let Some((known, other)) = seen.insert((what, name.clone()), (manifest, span)) else {
                continue;
            };
            // Names that follow from the graph's are told with it.
            if what != "the graph" && known.graph_name() == manifest.graph_name() {
                continue;
            }
            let (one, two) = (&known.family.name.node, &manifest.family.name.node);
            let help = match what {
                "the artifact" | "the fingerprint" => "take it out of one of them",
                _ => "[profile] gives a family other names",
            };
            diags.push(
                Diagnostic::error(
                    Code::ProfileTaken,
                    span,
                    format!("{what} `{name}` belongs to one family, and two have it"),
                )
                .here(format!("of `{two}`"))
                .label(other, format!("of `{one}`"))
                .help(help),
            );
        }
    }
}
