//! From the IR to Rust text.
//!
//! One module for a family: its config, a struct for each block, the weight map, and the record
//! that the runtime finds it by. The text is parsed and laid out by prettyplease, so that it is
//! the same on every machine.

mod asked;
mod config;
mod family;
mod forward;
mod method;
mod pinned;
mod profile;
mod scalar;
mod sections;
mod storage;
mod structs;
mod tidy;
mod weights;

use std::collections::HashMap;

use crate::ir::{Program, ScalarType, join};
use crate::library::Library;
use crate::lower::{ManifestScope, manifest_scalar};
use crate::manifest::Manifest;
use crate::manifest::cache::MaxKv;
use crate::source::{Sources, Span};

pub use storage::storages;

use scalar::Scalars;

/// Why no Rust came out; always a fault of the compiler, never of a spec.
#[derive(Debug, thiserror::Error)]
#[error("the generated code for `{family}` does not parse: {error}\n{text}")]
pub struct EmitError {
    /// The family.
    pub family: String,
    /// What the parser says.
    pub error: String,
    /// The text.
    pub text: String,
}

struct Emitter<'a> {
    manifest: &'a Manifest,
    program: &'a Program,
    sources: &'a Sources,
    library: &'a Library,
    scalars: Scalars<'a>,
}

/// The module of one family.
///
/// # Errors
/// When the text does not parse as Rust.
pub fn emit(
    manifest: &Manifest,
    program: &Program,
    library: &Library,
) -> Result<String, EmitError> {
    let scalars = Scalars::new(manifest, layer_types(manifest));
    let emitter = Emitter { manifest, program, sources: &library.sources, library, scalars };
    laid_out(&manifest.family.name.node, emitter.module(), manifest.pinned.is_some())
}

/// The text of a module as prettyplease lays it out.
///
/// `pinned` for a graph that is for one config alone.
fn laid_out(name: &str, text: String, pinned: bool) -> Result<String, EmitError> {
    match syn::parse_file(&text) {
        Ok(mut file) => {
            tidy::tidy(&mut file, pinned);
            Ok(tidy::spaced(&prettyplease::unparse(&file)))
        }
        Err(error) => Err(EmitError { family: name.to_owned(), error: error.to_string(), text }),
    }
}

/// Types of the values that `layer` has, over all kinds.
fn layer_types(manifest: &Manifest) -> HashMap<String, ScalarType> {
    let mut types: HashMap<String, ScalarType> = HashMap::new();
    let scope = ManifestScope { layer_index: true, captures: None };
    for kind in &manifest.layers.kinds {
        for (name, value) in &kind.values {
            if let Ok(scalar) = manifest_scalar(manifest, value, scope) {
                let ty = match types.get(&name.node) {
                    Some(before) => join(before, &scalar.ty),
                    None => scalar.ty,
                };
                types.insert(name.node.clone(), ty);
            }
        }
    }
    for (name, ty) in &mut types {
        let everywhere = manifest
            .layers
            .kinds
            .iter()
            .all(|kind| kind.values.iter().any(|(own, _)| own.node == *name));
        if !everywhere && !matches!(ty, ScalarType::Nullable(_)) {
            *ty = ScalarType::Nullable(Box::new(ty.clone()));
        }
    }
    types
}

impl Emitter<'_> {
    /// The storages of this family that the runtime does not have.
    fn own_storages(&self) -> String {
        let mut wanted: Vec<&str> = Vec::new();
        let mut next: Vec<&str> =
            self.manifest.layers.kinds.iter().map(|kind| kind.storage.node.as_str()).collect();
        while let Some(name) = next.pop() {
            let own = !self.library.is_builtin_storage(name) && !wanted.contains(&name);
            let Some(layout) = self.library.caches().get(name).filter(|_| own) else { continue };
            wanted.push(name);
            if let MaxKv::Becomes { storage, .. } = &layout.max_kv {
                next.push(&storage.node);
            }
        }
        wanted.sort_unstable();
        let layouts = wanted.iter().filter_map(|name| self.library.caches().get(*name));
        layouts.map(|layout| storage::storage(self.library, layout)).collect()
    }

    fn module(&self) -> String {
        let mut graph = String::new();
        for item in &self.program.structs {
            graph.push_str(&self.structure(item));
        }
        graph.push_str(&self.weight_map());
        graph.push_str(&self.family());
        let mut out = self.header();
        out.push_str("use specc_runtime::codegen::*;\n");
        out.push_str(&self.own_storages());
        match &self.manifest.pinned {
            Some(pinned) => out.push_str(&self.pinned_config(pinned, &graph)),
            None => out.push_str(&self.config()),
        }
        out.push_str(&graph);
        out
    }

    fn header(&self) -> String {
        let name = &self.manifest.family.name.node;
        let mut files = vec![self.sources.file(self.manifest.file).name.clone()];
        for item in &self.program.structs {
            let file = self.sources.file(item.span.file).name.clone();
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let only = match &self.manifest.pinned {
            Some(pinned) => format!(", specialised to the config {}", pinned.fingerprint),
            None => String::new(),
        };
        format!(
            "//! The family `{name}`{only}.\n//!\n//! @generated by specc from {}. Do not edit.\n\n#![allow(clippy::nonminimal_bool, reason = \"conditions stand as the spec has them\")]\n#![allow(clippy::let_and_return, reason = \"results carry the names that the spec gives them\")]\n\n",
            files.join(", ")
        )
    }

    /// `specs/acme.graph:14`
    fn place(&self, span: Span) -> String {
        let (line, _) = self.sources.line_column(span);
        format!("{}:{line}", self.sources.file(span.file).name)
    }

    /// Doc lines: what the author says, then the place.
    fn doc(&self, text: &str, span: Span) -> String {
        let mut out = String::new();
        for line in text.trim().lines() {
            out.push_str("/// ");
            out.push_str(line.trim());
            out.push('\n');
        }
        if !out.is_empty() {
            out.push_str("///\n");
        }
        out.push_str(&format!("/// {}\n", self.place(span)));
        out
    }
}

/// What the code that reads a config binds beside its keys, and what it calls on a layer.
const BOUND: [&str; 10] =
    ["r", "source", "layers", "caches", "layer", "index", "kind", "slot", "slots", "donor"];

/// A config name as a Rust identifier that means nothing else where a config is read.
fn ident(name: &str) -> String {
    let mut out = crate::ir::names::variable(name);
    if BOUND.contains(&out.as_str()) || crate::ir::names::is_called(&out) {
        out.push('_');
    }
    out
}
