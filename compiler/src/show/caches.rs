//! What a family's layers remember.

use std::fmt::Write as _;

use super::{Numbers, value};
use crate::diag::Diagnostic;
use crate::ir::{ArmBody, Kept, Program, Statement};
use crate::library::Library;
use crate::manifest::cache::Growth;
use crate::manifest::{LayerKind, Manifest, ONLY_KIND};
use crate::model::{Buffer, kept};

/// Kinds with their storages and what mixers keep there; with a config at hand, how many layers of
/// each, and bytes for a token and for a row of the batch.
///
/// # Errors
/// A size or condition without a value for this config.
pub fn caches(
    library: &Library,
    manifest: &Manifest,
    program: &Program,
    numbers: Option<&Numbers<'_>>,
) -> Result<String, Vec<Diagnostic>> {
    match numbers {
        Some(numbers) => counted(library, manifest, program, numbers),
        None => Ok(symbols(library, manifest, program)),
    }
}

/// `full_attention: sliding (window = 512): keys and values of the last positions`
fn storage(library: &Library, kind: &LayerKind, params: &[(String, String)]) -> String {
    let storage = &kind.storage.node;
    let params: Vec<String> =
        params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let params =
        if params.is_empty() { String::new() } else { format!(" ({})", params.join(", ")) };
    let name = if kind.name.node == ONLY_KIND { "every layer" } else { &kind.name.node };
    let doc = library.caches().get(storage).map_or("", |layout| layout.doc.as_str());
    format!("{name}: {storage}{params}: {doc}")
}

fn symbols(library: &Library, manifest: &Manifest, program: &Program) -> String {
    let mut out = String::new();
    for kind in &manifest.layers.kinds {
        let params: Vec<(String, String)> = kind
            .params
            .iter()
            .map(|(name, value)| (name.node.clone(), crate::syntax::print::expr(value)))
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", storage(library, kind, &params));
    }
    let mut all: Vec<String> = Vec::new();
    for method in program.structs.iter().flat_map(|item| &item.methods) {
        each_kept(&method.body, &mut |state| {
            let sizes: Vec<String> = state
                .per_position
                .then(|| "S".to_owned())
                .into_iter()
                .chain(state.shape.iter().map(|size| value(&size.expr, None)))
                .collect();
            let float32 = if state.float32 { " in float32" } else { "" };
            let line = format!("keeps {} [{}]{float32}", state.name, sizes.join(", "));
            if !all.contains(&line) {
                all.push(line);
            }
        });
    }
    for line in all {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn each_kept(statements: &[Statement], found: &mut dyn FnMut(&Kept)) {
    for statement in statements {
        match statement {
            Statement::Let { keeps, .. } => keeps.iter().for_each(&mut *found),
            Statement::Choice { arms, .. } => {
                arms.iter().for_each(|ArmBody { body, .. }| each_kept(body, found));
            }
            Statement::Repeat { body, .. } => each_kept(body, found),
        }
    }
}

/// Layers of one kind that keep the same.
struct Group<'a> {
    kind: &'a LayerKind,
    params: Vec<(String, String)>,
    buffers: Vec<Buffer>,
    layers: u64,
}

fn counted(
    library: &Library,
    manifest: &Manifest,
    program: &Program,
    numbers: &Numbers<'_>,
) -> Result<String, Vec<Diagnostic>> {
    let buffers = kept(program, numbers.config, numbers.layers)?;
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut shared = 0;
    for (layer, buffers) in numbers.layers.iter().zip(buffers) {
        if !layer.donor {
            shared += 1;
            continue;
        }
        let kinds = &manifest.layers.kinds;
        let Some(kind) = kinds.iter().find(|kind| kind.name.node == layer.kind) else { continue };
        let params: Vec<(String, String)> =
            layer.params.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let same = |group: &&mut Group<'_>| {
            group.kind.name == kind.name && group.params == params && group.buffers == buffers
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.layers += 1,
            None => groups.push(Group { kind, params, buffers, layers: 1 }),
        }
    }
    let mut out = String::new();
    let (mut token, mut row) = (Some(0u64), Some(0u64));
    for group in &groups {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{} x {}", group.layers, storage(library, group.kind, &group.params));
        for buffer in &group.buffers {
            let sizes: Vec<String> = buffer
                .per_position
                .then(|| "S".to_owned())
                .into_iter()
                .chain(buffer.shape.iter().map(ToString::to_string))
                .collect();
            let bytes = buffer.bytes(numbers.width);
            let all = bytes.and_then(|bytes| bytes.checked_mul(group.layers));
            let total = if buffer.per_position { &mut token } else { &mut row };
            *total = total.and_then(|total| total.checked_add(all?));
            let each = if buffer.per_position { "a token" } else { "a row" };
            let _ = writeln!(
                out,
                "    {} [{}]: {} bytes {each} in each",
                buffer.name,
                sizes.join(", "),
                shown(bytes)
            );
        }
        if let Some(limit) = limit(library, group) {
            let _ = writeln!(out, "    at most {limit} positions are kept");
        }
    }
    if shared > 0 {
        let _ = writeln!(out, "{shared} layers read the cache of an earlier one");
    }
    let _ = writeln!(
        out,
        "together {} bytes a token and {} bytes a row, in {}",
        shown(token),
        shown(row),
        numbers.dtype
    );
    Ok(out)
}

fn shown(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "too many".to_owned(), |bytes| bytes.to_string())
}

/// How many positions a ring of this group holds.
fn limit(library: &Library, group: &Group<'_>) -> Option<i64> {
    let layout = library.caches().get(&group.kind.storage.node)?;
    let Growth::Ring { limit, .. } = &layout.growth else { return None };
    let given = group.params.iter().map(|(name, value)| (name.as_str(), value.parse().ok()));
    let default = layout.params.iter().map(|param| {
        let value = param.default.as_ref().and_then(toml::Value::as_integer);
        (param.name.node.as_str(), value)
    });
    let numbers = given.chain(default).filter_map(|(name, value)| Some((name, value?)));
    limit.length(&numbers.collect::<Vec<(&str, i64)>>())
}
