//! Whether a layer's cache can hold what its mixers store, kind by kind and without a config.

use super::kept::{find, with};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Env, Value, fold};
use crate::ir::{Arm, Field, FieldKind, FieldRef, Kept, Op, Over, PassUse, Program, Statement};
use crate::library::Library;
use crate::manifest::cache::{CacheLayout, Growth};
use crate::manifest::{LayerKind, Manifest};
use crate::source::{FileId, Span};
use crate::syntax::ast::{Expr, ExprKind};

/// What is stored where it cannot be, in the kinds of layer that count. Only what a kind reaches
/// whatever the config says.
pub fn fits(
    library: &Library,
    manifest: &Manifest,
    program: &Program,
    counts: &dyn Fn(&LayerKind) -> bool,
) -> Vec<Diagnostic> {
    let Some(model) = program.structs.last() else { return Vec::new() };
    let Some(method) = model.methods.iter().find(|method| method.pass == PassUse::Writes) else {
        return Vec::new();
    };
    let mut diags = Vec::new();
    for kind in manifest.layers.kinds.iter().filter(|kind| counts(kind)) {
        let Some(layout) = library.caches().get(&kind.storage.node) else { continue };
        let mut walk = Walk { program, kind, layout, own: manifest.file, found: None };
        walk.statements(&method.body, &[&model.fields], false);
        diags.extend(walk.found);
    }
    diags
}

/// Knows a layer's kind, and nothing else.
struct OfKind<'a>(&'a str);

impl Env for OfKind<'_> {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        Some(Err(format!("{name} is not known yet")))
    }

    fn layer(&self, key: &str) -> Option<Value> {
        (key == "kind").then(|| Value::Str(self.0.to_owned()))
    }
}

struct Walk<'a> {
    program: &'a Program,
    kind: &'a LayerKind,
    layout: &'a CacheLayout,
    own: FileId,
    /// The first that does not fit; what follows says the same.
    found: Option<Diagnostic>,
}

impl<'a> Walk<'a> {
    fn statements(&mut self, statements: &'a [Statement], homes: &[&'a [Field]], layers: bool) {
        for statement in statements {
            match statement {
                Statement::Let { op, keeps, span, .. } => {
                    if layers {
                        self.keeps(keeps, *span);
                    }
                    if let Op::Forward { field, .. } = op {
                        self.forward(field, homes, layers);
                    }
                }
                Statement::Choice { field, arms: bodies, .. } => {
                    let Some(FieldKind::Choice { arms, .. }) = find(field, homes) else { continue };
                    let taken = self.taken(arms);
                    if let Some((arm, body)) = taken.and_then(|at| arms.get(at).zip(bodies.get(at)))
                    {
                        self.statements(&body.body, &with(homes, &arm.fields), layers);
                    }
                }
                Statement::Repeat { field, body, .. } => {
                    let Some(FieldKind::Repeat { over, fields, .. }) = find(field, homes) else {
                        continue;
                    };
                    self.statements(body, &with(homes, fields), layers || *over == Over::Layers);
                }
            }
        }
    }

    fn forward(&mut self, field: &FieldRef, homes: &[&'a [Field]], layers: bool) {
        let Some(FieldKind::Block { id, .. }) = find(field, homes) else { return };
        let Some(item) = self.program.structs.get(*id) else { return };
        let Some(method) = item.methods.first() else { return };
        self.statements(&method.body, &[&item.fields], layers);
    }

    /// The arm that layers of the kind take for certain.
    fn taken(&self, arms: &[Arm]) -> Option<usize> {
        for (at, arm) in arms.iter().enumerate() {
            let Some(condition) = &arm.condition else { return Some(at) };
            match decided(&fold(&condition.expr, &OfKind(&self.kind.name.node))) {
                Some(true) => return Some(at),
                Some(false) => {}
                None => return None,
            }
        }
        None
    }

    fn keeps(&mut self, keeps: &[Kept], span: Span) {
        if keeps.is_empty() || self.found.is_some() {
            return;
        }
        let grows = keeps.iter().all(|kept| kept.per_position);
        let fixed = keeps.iter().all(|kept| !kept.per_position);
        let fits = match self.layout.growth {
            Growth::Nothing => false,
            Growth::Replace => fixed,
            Growth::Append { .. } | Growth::Ring { .. } => grows && self.alike(keeps),
        };
        if fits {
            return;
        }
        let (kind, storage) = (&self.kind.name.node, &self.kind.storage);
        let here = match (grows, fixed) {
            (true, _) => format!("this stores {} at each position", names(keeps)),
            (_, true) => format!("this keeps one {} for all positions", names(keeps)),
            _ => format!("this keeps {}", names(keeps)),
        };
        let message =
            format!("layers of kind `{kind}` cannot keep this in a cache of `{}`", storage.node);
        let help = match (fixed, keeps.iter().any(|kept| kept.shape.len() == 1)) {
            (true, _) => {
                "states belong in `cache = \"recurrent\"`; a layer that keeps both a state and positions is two layers"
            }
            (_, true) => "latents belong in `cache = \"latent\"`",
            _ => "keys and values belong in `cache = \"full\"`, or a \"sliding\" one",
        };
        let holds = format!("`{}` holds {}", storage.node, self.layout.doc);
        // The family's own words are shown first.
        let error = if storage.span.file == self.own {
            Diagnostic::error(Code::CacheMisfit, storage.span, message)
                .here(holds)
                .label(span, here)
        } else {
            Diagnostic::error(Code::CacheMisfit, span, message)
                .here(here)
                .label(storage.span, holds)
        };
        self.found = Some(error.help(help));
    }

    /// Whether the buffers are those of the storage, by their number and axes.
    fn alike(&self, keeps: &[Kept]) -> bool {
        let states = &self.layout.states;
        let least = states.iter().filter(|state| !state.optional).count();
        (least..=states.len()).contains(&keeps.len())
            && keeps
                .iter()
                .zip(states)
                // A buffer's axes are those beside rows and positions.
                .all(|(kept, state)| kept.shape.len() + 2 == state.axes.len())
    }
}

fn names(keeps: &[Kept]) -> String {
    keeps.iter().map(|kept| format!("`{}`", kept.name)).collect::<Vec<_>>().join(" and ")
}

fn decided(expr: &Expr) -> Option<bool> {
    match &expr.kind {
        ExprKind::Bool(value) => Some(*value),
        _ => None,
    }
}
