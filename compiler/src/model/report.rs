//! What `specc check --model` says.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use specc_checkpoint::config::{ConfigFile, Key};
use specc_checkpoint::map::{Plan, because, plan};
use specc_checkpoint::quant::{QuantError, Stored, module};

use super::Model;
use super::fits::fits;
use super::inventory::{Asked, Need, inventory};
use crate::diag::{Code, Diagnostic, grouped};
use crate::expr::{LayerValues, evaluate, evaluate_layers};
use crate::ir::Program;
use crate::library::Library;
use crate::manifest::{ConfigKey, LayerKind, Manifest};
use crate::source::Span;
use crate::syntax::ast::ExprKind;
use crate::weights::weight_map;

/// What was found about a model, when nothing is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The family's name.
    pub family: String,
    /// Layers by kind and storage.
    pub layers: Vec<(String, String, usize)>,
    /// Tensors that the graph loads.
    pub tensors: usize,
    /// Tensors that were dropped.
    pub dropped: usize,
    /// Bytes of all stored tensors.
    pub bytes: u64,
    /// How modules are stored, by description.
    pub modules: BTreeMap<String, usize>,
    /// What a base's defaults give where the config says nothing, switches that are off left out.
    pub inherited: Vec<String>,
}

/// Checks a family against a model folder. Warnings come with the report.
///
/// # Errors
/// Everything that keeps the model from being loaded by this family.
pub fn check(
    library: &Library,
    manifest: &Manifest,
    program: &Program,
    model: &Model,
) -> Result<(Report, Vec<Diagnostic>), Vec<Diagnostic>> {
    let config = evaluate(manifest, &model.config)?;
    let layers = evaluate_layers(manifest, &config)?;
    let map = weight_map(manifest, &config)?;
    let top = manifest.family.name.span;
    let plan = plan(&model.tensors, &map, &model.quant).map_err(|problems| {
        let report = |error: &_| {
            let text = format!("{error}");
            let place = manifest.weights.maps.iter().find(|map| text.contains(&map.shown()));
            Diagnostic::error(Code::WeightMapFailed, place.map_or(top, |map| map.span), text)
        };
        let told = problems.iter().map(report).chain(passed_over(model, top));
        told.collect::<Vec<_>>()
    })?;
    let has = |name: &str| plan.get(name).is_some();
    let needs = inventory(program, &config, &layers, &has)?;
    let mut diags = audit(&plan, &needs, manifest, model);
    let mut modules = BTreeMap::new();
    for (name, need) in &needs {
        match stored(&plan, model, name, need) {
            Ok(Some(how)) => *modules.entry(how).or_insert(0) += 1,
            Ok(None) => {}
            Err(message) => diags.push(Diagnostic::error(Code::TensorShape, need.span, message)),
        }
    }
    let mut diags = told_once(diags);
    let there = |kind: &LayerKind| layers.iter().any(|layer| layer.kind == kind.name.node);
    diags.extend(fits(library, manifest, program, &there));
    let failed = !diags.is_empty();
    diags.extend(passed_over(model, top));
    diags.extend(unread_warning(model, top));
    if failed {
        return Err(diags);
    }
    let report = Report {
        family: manifest.family.name.node.clone(),
        layers: by_kind(&layers),
        tensors: needs.len(),
        dropped: plan.dropped().len(),
        bytes: model.tensors.total_bytes(),
        modules,
        inherited: inherited(manifest, model),
    };
    Ok((report, diags))
}

fn audit(
    plan: &Plan,
    needs: &BTreeMap<String, Need>,
    manifest: &Manifest,
    model: &Model,
) -> Vec<Diagnostic> {
    let names = needs.keys().map(String::as_str);
    let (missing, unexplained) = plan.audit(names, []);
    let top = manifest.family.name.span;
    let mut places: BTreeMap<String, &Need> = BTreeMap::new();
    for (name, need) in needs {
        if plan.get(name).is_none() {
            places.entry(alike(name)).or_insert(need);
        }
    }
    let mut diags = Vec::new();
    for one in missing {
        let place = places.get(&alike(&one.names)).copied();
        let error = Diagnostic::error(
            Code::MissingTensor,
            place.map_or(top, |need| need.span),
            one.to_string(),
        )
        .counting(one.count);
        let error = match &one.nearest {
            Some(near) => error.help(format!(
                "where that one is meant: [[weights.map]] from = {:?}, to = {:?}",
                pattern(near),
                pattern(&one.names)
            )),
            None => error,
        };
        diags.push(match place {
            Some(need) => asked(error, need, manifest, &model.config),
            None => error,
        });
    }
    let all: Vec<String> = unexplained.iter().map(|one| one.names.clone()).collect();
    for one in unexplained {
        // The scales and biases of a quantised weight go without saying.
        let part = one.names.strip_suffix(".scales").or_else(|| one.names.strip_suffix(".biases"));
        if part.is_some_and(|module| all.contains(&format!("{module}.weight"))) {
            continue;
        }
        let error = Diagnostic::error(Code::UnexplainedTensor, top, one.to_string());
        diags.push(error.counting(one.count).help(format!(
            "use it in the graph, rename it under [[weights.map]], or drop it: drop = [\"...\", {:?}]",
            pattern(&one.names)
        )));
    }
    diags
}

/// Says under which condition a tensor is needed, and where the values come from that decide it.
fn asked(error: Diagnostic, need: &Need, manifest: &Manifest, config: &ConfigFile) -> Diagnostic {
    let mut error = error;
    let mut told: Vec<&str> = Vec::new();
    for Asked { condition, holds } in need.asked.iter() {
        let mut keys: Vec<&ConfigKey> = Vec::new();
        crate::syntax::visit::names(condition, &mut |name| {
            keys.extend(manifest.config.iter().find(|key| key.name.node == name.node));
        });
        if keys.is_empty() {
            continue;
        }
        let text = crate::syntax::print::expr(condition);
        error = error.note(because(&text, *holds));
        for key in keys {
            if !told.contains(&key.name.node.as_str()) {
                told.push(&key.name.node);
                error = error.note(origin(key, manifest, config));
            }
        }
    }
    error
}

/// `tie_word_embeddings` is false in config.json
fn origin(key: &ConfigKey, manifest: &Manifest, config: &ConfigFile) -> String {
    let name = &key.name.node;
    if let Some(value) = &key.value {
        return format!("`{name}` is computed: {}", crate::syntax::print::expr(value));
    }
    let roots: Vec<&str> = manifest.roots.iter().map(String::as_str).collect();
    let paths: Vec<&str> = key.from.iter().map(String::as_str).collect();
    let read = Key::new(name).paths(&paths);
    let told = config.under(&roots).told(read);
    match (config.under(&roots).peek(read), &key.default) {
        (None, Some(default)) => {
            format!("{told}, which is then {}", crate::syntax::print::expr(default))
        }
        _ => told,
    }
}

/// A pattern for names whose numbers are shown as ranges: `{0..3}` as `{i}`, then `{j}`.
fn pattern(names: &str) -> String {
    let mut out = String::new();
    let mut rest = names;
    for index in ["i", "j", "k", "l"] {
        let Some((before, after)) = rest.split_once('{') else { break };
        let Some((_, tail)) = after.split_once('}') else { break };
        out.push_str(before);
        out.push_str(&format!("{{{index}}}"));
        rest = tail;
    }
    out + rest
}

/// A name with its numbers (and ranges of them) made alike.
fn alike(name: &str) -> String {
    let mut out = String::new();
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '{' {
            while chars.next().is_some_and(|c| c != '}') {}
            out.push('#');
        } else if c.is_ascii_digit() {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            out.push('#');
        } else {
            out.push(c);
        }
    }
    out
}

/// How a module's weight is stored; none for other tensors. The error says what does not fit.
fn stored(plan: &Plan, model: &Model, name: &str, need: &Need) -> Result<Option<String>, String> {
    let Some(found) = plan.get(name) else { return Ok(None) };
    let path = name.strip_suffix(".weight").or_else(|| (name == "weight").then_some(""));
    if let (true, Some(path)) = (need.quantised, path) {
        return match module(plan, &model.quant, path, &need.shape) {
            Ok(Stored::Dense(dtype)) => Ok(Some(dtype.to_string())),
            Ok(Stored::Quantised(params)) => Ok(Some(params.to_string())),
            // Reported as missing already, when the weight itself is.
            Err(error @ QuantError::Missing { .. }) | Err(error @ QuantError::Wrong { .. }) => {
                Err(with_sources(plan, found, error.to_string()))
            }
        };
    }
    if found.node.shape != need.shape {
        let message = format!(
            "tensor {name:?}: the graph needs {:?}, the checkpoint holds {} {:?}",
            need.shape, found.node.dtype, found.node.shape
        );
        let message = with_sources(plan, found, message);
        return Err(match turned(&found.node.shape, &need.shape) {
            Some(axes) => {
                format!("{message}; its axes in another order: do = \"transpose({axes})\"")
            }
            None => message,
        });
    }
    Ok(None)
}

/// The order of axes that makes one shape the other, where it is the only one.
fn turned(from: &[usize], to: &[usize]) -> Option<String> {
    let mut axes = Vec::new();
    for size in to {
        let mut places = (0..from.len()).filter(|at| from.get(*at) == Some(size));
        let place = places.next().filter(|_| places.next().is_none())?;
        axes.push(place);
    }
    let other = axes.len() == from.len() && !axes.is_sorted();
    other.then(|| axes.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

fn with_sources(plan: &Plan, found: &specc_checkpoint::map::Derived, message: String) -> String {
    let sources = plan.sources(&found.node);
    match (found.rule, sources.first()) {
        (Some(_), Some(first)) => format!("{message} (made from {first})"),
        _ => message,
    }
}

/// Findings that differ in their numbers only, as one each.
fn told_once(diags: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let groups = grouped(diags, |one| (one.code, alike(&one.message)));
    groups
        .into_iter()
        .map(|(diagnostic, more)| match more {
            0 => diagnostic,
            _ => diagnostic.note(format!("and {more} more like this")),
        })
        .collect()
}

/// What of the folder's weights is not read: with it, what is missing may be there after all.
fn passed_over(model: &Model, top: Span) -> impl Iterator<Item = Diagnostic> {
    let notes = model.tensors.notes().iter();
    notes.map(move |note| Diagnostic::warning(Code::PassedOver, top, note.to_string()))
}

fn unread_warning(model: &Model, top: Span) -> Option<Diagnostic> {
    let keys: Vec<String> = model.config.unread().iter().map(ToString::to_string).collect();
    if keys.is_empty() {
        return None;
    }
    let (what, them) = if keys.len() == 1 { ("a key", "it") } else { ("keys", "them") };
    let message = format!("config.json holds {what} that nobody reads: {}", keys.join(", "));
    Some(
        Diagnostic::warning(Code::UnknownConfigKey, top, message)
            .help(format!("read {them} under [config] where that changes what is computed; otherwise say there `ignored = true`")),
    )
}

fn inherited(manifest: &Manifest, model: &Model) -> Vec<String> {
    let roots: Vec<&str> = manifest.roots.iter().map(String::as_str).collect();
    let reader = model.config.under(&roots);
    let mut found = Vec::new();
    for key in manifest.config.iter().filter(|key| !key.ignored && key.value.is_none()) {
        let Some(default) = key.default.as_ref().filter(|one| one.span.file != manifest.file)
        else {
            continue;
        };
        let stands = matches!(default.kind, ExprKind::Float(_) | ExprKind::Str(_))
            || matches!(default.kind, ExprKind::Int(value) if value != 0)
            || default.kind == ExprKind::Bool(true);
        let paths: Vec<&str> = key.from.iter().map(String::as_str).collect();
        let spelled = Key::new(&key.name.node);
        let spelled = if paths.is_empty() { spelled } else { spelled.paths(&paths) };
        if stands && reader.peek(spelled).is_none_or(serde_json::Value::is_null) {
            found.push(format!("{} = {}", key.name.node, crate::syntax::print::expr(default)));
        }
    }
    found
}

fn by_kind(layers: &[LayerValues]) -> Vec<(String, String, usize)> {
    let mut kinds: Vec<(String, String, usize)> = Vec::new();
    for layer in layers {
        let params: Vec<String> =
            layer.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let storage = match params.as_slice() {
            [] => layer.storage.clone(),
            _ => format!("{} ({})", layer.storage, params.join(", ")),
        };
        match kinds.iter_mut().find(|(kind, known, _)| *kind == layer.kind && *known == storage) {
            Some((.., count)) => *count += 1,
            None => kinds.push((layer.kind.clone(), storage, 1)),
        }
    }
    kinds
}

impl Report {
    /// As lines of text.
    pub fn text(&self) -> String {
        let mut out = format!("family    {}\n", self.family);
        let kinds: Vec<String> = self
            .layers
            .iter()
            .map(|(kind, storage, count)| {
                if kind == crate::manifest::ONLY_KIND {
                    format!("{count} with cache {storage}")
                } else {
                    format!("{count} {kind} with cache {storage}")
                }
            })
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "layers    {}", kinds.join(", "));
        let _ = writeln!(
            out,
            "tensors   {} used, {} dropped, {}",
            self.tensors,
            self.dropped,
            size(self.bytes)
        );
        for (how, count) in &self.modules {
            let _ = writeln!(out, "modules   {count} stored as {how}");
        }
        if !self.inherited.is_empty() {
            let values = self.inherited.join(", ");
            let _ = writeln!(out, "defaults  {values}: a base's, where config.json says nothing");
        }
        out
    }
}

fn size(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{:.1} kB", value / 1e3),
        10_000_000..=9_999_999_999 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.1} GB", value / 1e9),
    }
}
