//! Families with their inheritance, and what must hold among all of them.

use super::{Document, Graph, Library, top};
use crate::diag::{Code, Diagnostic, has_errors, nearest};
use crate::ir::ScalarType;
use crate::lower::{ManifestScope, manifest_scalar};
use crate::manifest::cache::{CacheLayout, Growth, MaxKv, ParamKind, StorageParam};
use crate::manifest::merge::{alone, merge};
use crate::manifest::tree::{Node, NodeKind, Table};
use crate::manifest::{Manifest, inherited, load};
use crate::source::{FileId, Spanned};
use crate::syntax::ast::{Expr, ExprKind, GraphFile};

/// A line of families longer than this is refused.
const MAX_LINE: usize = 16;

pub(super) fn load(
    library: &Library,
    name: &str,
) -> Result<(Manifest, Vec<GraphFile>), Vec<Diagnostic>> {
    let mut diags = Vec::new();
    let line = line(library, name, &mut diags);
    let Some((_, own)) = line.first() else { return Err(diags) };
    let file = own.file;
    // A document that is no TOML says nothing reliable.
    let texts: Vec<FileId> = line.iter().map(|(_, document)| document.file).collect();
    let broken = |found: &&Diagnostic| {
        found.code == Code::TomlSyntax && texts.contains(&found.primary.span.file)
    };
    let broken: Vec<Diagnostic> = library.diagnostics().iter().filter(broken).cloned().collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    check_name(name, own, &mut diags);
    // The base first: each document is laid over those before it.
    let mut merged: Option<Table> = None;
    let mut graphs: Vec<Spanned<String>> = Vec::new();
    for (name, document) in line.iter().rev() {
        let table = &known_sections(&document.table, &mut diags);
        graphs.extend(graph_file(library, name, document, &mut diags));
        merged = Some(match merged {
            None => alone(table, &mut diags),
            Some(base) => merge(&inherited(&base), table, &mut diags),
        });
    }
    let Some(mut table) = merged else { return Err(diags) };
    gguf(library, &mut table, &mut diags);
    let mut texts = texts;
    let mut files = Vec::new();
    for name in &graphs {
        let Some(Graph { file, graph, .. }) = library.graphs.get(&name.node) else { continue };
        if !texts.contains(file) {
            texts.push(*file);
            files.push(graph.clone());
        }
    }
    // What was found while reading these texts counts against the family too.
    let found = library.diagnostics().iter();
    diags.extend(found.filter(|found| texts.contains(&found.primary.span.file)).cloned());
    let manifest = load::manifest(file, &table, graphs.clone(), &mut diags);
    if let Some(manifest) = &manifest {
        check_caches(library, manifest, &mut diags);
    }
    match manifest {
        Some(manifest) if !has_errors(&diags) => Ok((manifest, files)),
        _ => Err(diags),
    }
}

/// A document without the sections that no reader answers to, which are reported.
fn known_sections(table: &Table, diags: &mut Vec<Diagnostic>) -> Table {
    let mut table = table.clone();
    table.entries.retain(|(key, _)| {
        let known = load::SECTIONS.contains(&key.name.node.as_str());
        if !known {
            diags.push(load::unknown_section(key));
        }
        known
    });
    table
}

/// The merged document, with what families do not inherit taken from the family's own.
pub(super) fn resolved(library: &Library, name: &str) -> Result<toml::Table, Vec<Diagnostic>> {
    let mut diags = Vec::new();
    let mut merged: Option<Table> = None;
    for (_, document) in line(library, name, &mut diags).iter().rev() {
        merged = Some(match merged {
            None => alone(&document.table, &mut diags),
            Some(base) => merge(&inherited(&base), &document.table, &mut diags),
        });
    }
    let Some(mut table) = merged.filter(|_| !has_errors(&diags)) else { return Err(diags) };
    gguf(library, &mut table, &mut diags);
    let entries = table.entries.iter();
    Ok(entries.map(|(key, node)| (key.name.node.clone(), node.to_toml())).collect())
}

/// A family and its bases, the family first.
fn line<'a>(
    library: &'a Library,
    name: &str,
    diags: &mut Vec<Diagnostic>,
) -> Vec<(String, &'a Document)> {
    let mut line: Vec<(String, &Document)> = Vec::new();
    let mut next = Some((name.to_owned(), None));
    while let Some((name, asked)) = next.take() {
        let Some(document) = library.families.get(&name) else {
            if let Some(span) = asked {
                let error = Diagnostic::error(
                    Code::UnknownBase,
                    span,
                    format!("no family is named `{name}`"),
                );
                diags.push(error.did_you_mean_or(&name, library.families(), || {
                    "`specc list` shows the families there are".to_owned()
                }));
            }
            return line;
        };
        if let (Some(span), Some(at)) = (asked, line.iter().position(|(known, _)| *known == name)) {
            let circle: Vec<&str> = line.iter().skip(at).map(|(name, _)| name.as_str()).collect();
            diags.push(
                Diagnostic::error(Code::ExtendsCycle, span, format!("`{name}` extends itself"))
                    .note(format!("by way of {} -> {name}", circle.join(" -> "))),
            );
            return Vec::new();
        }
        if line.len() == MAX_LINE {
            let span = asked.unwrap_or_else(|| top(document.file));
            diags.push(Diagnostic::error(
                Code::ExtendsCycle,
                span,
                format!("more than {MAX_LINE} families extend one another"),
            ));
            return Vec::new();
        }
        next = extends(&document.table);
        line.push((name, document));
    }
    line
}

fn extends(table: &Table) -> Option<(String, Option<crate::source::Span>)> {
    let node = table.get("family")?.as_table()?.get("extends")?;
    Some((node.as_str()?.to_owned(), Some(node.span)))
}

fn check_name(name: &str, document: &Document, diags: &mut Vec<Diagnostic>) {
    let family = document.table.get("family").and_then(Node::as_table);
    let Some(node) = family.and_then(|family| family.get("name")) else { return };
    if let Some(found) = node.as_str().filter(|found| *found != name) {
        diags.push(
            Diagnostic::error(
                Code::NameOfFile,
                node.span,
                format!("`{name}.toml` describes the family {found:?}"),
            )
            .help(format!("rename the file to {found}.toml, or write `name = \"{name}\"`")),
        );
    }
}

/// The graph file of one document: the one it names, or NAME.graph where that exists.
fn graph_file(
    library: &Library,
    name: &str,
    document: &Document,
    diags: &mut Vec<Diagnostic>,
) -> Option<Spanned<String>> {
    let family = document.table.get("family").and_then(Node::as_table);
    let Some(node) = family.and_then(|family| family.get("graph")) else {
        let file = format!("{name}.graph");
        // A folder's graph is no part of a built-in family of its name.
        let own = library.graphs.get(&file).is_some_and(|graph| graph.origin == document.origin);
        return own.then(|| Spanned::new(file, top(document.file)));
    };
    let Some(file) = node.as_str() else {
        let found = node.describe();
        diags.push(Diagnostic::error(
            Code::WrongValue,
            node.span,
            format!("`graph` must name a file, found {found}"),
        ));
        return None;
    };
    if library.graphs.contains_key(file) {
        return Some(Spanned::new(file.to_owned(), node.span));
    }
    let error = Diagnostic::error(
        Code::UnknownGraphFile,
        node.span,
        format!("no graph file is named `{file}`"),
    );
    diags.push(error.did_you_mean_or(file, library.graphs.keys().map(String::as_str), || {
        "graph files stand beside the manifests, as NAME.graph".to_owned()
    }));
    None
}

/// `[gguf] use = "acme"` takes a name map of the library; `use = ""` says the family has none.
fn gguf(library: &Library, table: &mut Table, diags: &mut Vec<Diagnostic>) {
    let Some(at) = table.entries.iter().position(|(key, _)| key.name.node == "gguf") else {
        return;
    };
    let Some((_, node)) = table.entries.get_mut(at) else { return };
    let NodeKind::Table(own) = &mut node.kind else { return };
    let Some(place) = own.entries.iter().position(|(key, _)| key.name.node == "use") else {
        return;
    };
    let (_, named) = own.entries.remove(place);
    let Some(name) = named.as_str() else { return };
    if name.is_empty() {
        table.entries.remove(at);
        return;
    }
    let Some(map) = name_map(library, name, 0, &named, diags) else { return };
    *own = merge(&map, own, diags);
}

fn name_map(
    library: &Library,
    name: &str,
    depth: usize,
    asked: &Node,
    diags: &mut Vec<Diagnostic>,
) -> Option<Table> {
    let Some(document) = library.gguf.get(name).filter(|_| depth < MAX_LINE) else {
        let error = Diagnostic::error(
            Code::UnknownBase,
            asked.span,
            format!("no GGUF name map is named `{name}`, or it extends itself"),
        );
        diags.push(error.did_you_mean_or(name, library.gguf.keys().map(String::as_str), || {
            "name maps stand under gguf/ beside the manifests".to_owned()
        }));
        return None;
    };
    let mut table = document.table.clone();
    let base = table.entries.iter().position(|(key, _)| key.name.node == "extends");
    let base = base.map(|at| table.entries.remove(at).1);
    Some(match base {
        Some(node) => {
            let base = name_map(library, node.as_str().unwrap_or(""), depth + 1, &node, diags)?;
            merge(&base, &table, diags)
        }
        None => alone(&table, diags),
    })
}

/// Storages and their parameters, as the layouts declare them.
fn check_caches(library: &Library, manifest: &Manifest, diags: &mut Vec<Diagnostic>) {
    for kind in &manifest.layers.kinds {
        let storage = &kind.storage;
        let Some(layout) = library.caches.get(&storage.node) else {
            let known = || library.caches.keys().map(String::as_str);
            let error = Diagnostic::error(
                Code::UnknownStorage,
                storage.span,
                format!("no storage is named `{}`", storage.node),
            );
            diags.push(error.did_you_mean_or(&storage.node, known(), || {
                format!("storages are {}", crate::diag::one_of(known()))
            }));
            continue;
        };
        bound(library, layout, diags);
        let names = || layout.params.iter().map(|param| param.name.node.as_str());
        for (name, value) in &kind.params {
            if let Some(param) = layout.params.iter().find(|param| param.name.node == name.node) {
                check_value(manifest, param, value, diags);
                continue;
            }
            let error = Diagnostic::error(
                Code::StorageParameter,
                name.span,
                format!("storage `{}` has no parameter `{}`", storage.node, name.node),
            );
            diags.push(error.did_you_mean_or(
                &name.node,
                names(),
                || match layout.params.is_empty() {
                    true => "it takes none".to_owned(),
                    false => format!("it takes {}", crate::diag::one_of(names())),
                },
            ));
        }
        for param in layout.params.iter().filter(|param| param.default.is_none()) {
            if !kind.params.iter().any(|(name, _)| name.node == param.name.node) {
                diags.push(
                    Diagnostic::error(
                        Code::StorageParameter,
                        storage.span,
                        format!(
                            "storage `{}` needs the parameter `{}`",
                            storage.node, param.name.node
                        ),
                    )
                    .help(format!(
                        "write `cache = {{ storage = \"{}\", {} = \"config_key\" }}`",
                        storage.node, param.name.node
                    ))
                    .note(param.doc.clone()),
                );
            }
        }
    }
}

/// A storage that another one takes the place of under a bound: it must be there, and need nothing
/// but the bound.
fn bound(library: &Library, layout: &CacheLayout, diags: &mut Vec<Diagnostic>) {
    let MaxKv::Becomes { storage, param } = &layout.max_kv else { return };
    let mut fault = |span, message: String, near: Option<&str>| {
        let error = Diagnostic::error(Code::CacheLayout, span, message);
        let error = match near {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        };
        if !diags.contains(&error) {
            diags.push(error);
        }
    };
    let Some(other) = library.caches.get(&storage.node) else {
        let near = nearest(&storage.node, library.caches.keys().map(String::as_str));
        fault(storage.span, format!("no storage is named `{}`", storage.node), near);
        return;
    };
    let names = || other.params.iter().map(|own| own.name.node.as_str());
    if !other.params.iter().any(|own| own.name.node == param.node && own.kind == ParamKind::Int) {
        let message =
            format!("storage `{}` has no length that is called `{}`", storage.node, param.node);
        fault(param.span, message, nearest(&param.node, names()));
    }
    for own in other.params.iter().filter(|own| own.default.is_none()) {
        if own.name.node != param.node {
            let message = format!(
                "storage `{}` needs `{}` as well, which a bound does not give",
                storage.node, own.name.node
            );
            fault(storage.span, message, None);
        }
    }
    if matches!(other.growth, Growth::Append { .. }) {
        fault(storage.span, format!("storage `{}` is not bounded itself", storage.node), None);
    }
}

/// A value for a parameter: of its type, and one of its words where it is known by now.
fn check_value(
    manifest: &Manifest,
    param: &StorageParam,
    value: &Expr,
    diags: &mut Vec<Diagnostic>,
) {
    let scope = ManifestScope { layer_index: true, captures: None };
    // What is wrong with the expression itself is reported where all of them are.
    let Ok(scalar) = manifest_scalar(manifest, value, scope) else { return };
    let (fits, expected) = match &param.kind {
        ParamKind::Int => (*scalar.ty.plain() == ScalarType::Int, "an integer".to_owned()),
        ParamKind::Bool => (*scalar.ty.plain() == ScalarType::Bool, "`true` or `false`".to_owned()),
        ParamKind::Words(words) => {
            let known = |text: &String| words.contains(text);
            let fits = match &value.kind {
                ExprKind::Str(text) => known(text),
                _ => *scalar.ty.plain() == ScalarType::Str,
            };
            (fits, crate::diag::one_of(words.iter().map(String::as_str)))
        }
    };
    if fits || matches!(scalar.ty.plain(), ScalarType::Json | ScalarType::None) {
        return;
    }
    let found = match &value.kind {
        ExprKind::Str(text) => format!("{text:?}"),
        _ => scalar.ty.to_string(),
    };
    diags.push(
        Diagnostic::error(
            Code::StorageParameter,
            value.span,
            format!("parameter `{}` must be {expected}, found {found}", param.name.node),
        )
        .note(param.doc.clone()),
    );
}
