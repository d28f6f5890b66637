//! The set of documents a compilation works on: families, graph files, the library of blocks and
//! ops, cache layouts, GGUF name maps.

mod embedded;
mod families;
mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::diag::{Code, Diagnostic};
use crate::manifest::Manifest;
use crate::manifest::cache::CacheLayout;
use crate::manifest::tree::Table;
use crate::source::{FileId, Sources, Span};
use crate::syntax::ast::GraphFile;

pub(crate) use embedded::MEASURED;

/// Where a document came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Embedded in the compiler.
    BuiltIn,
    /// Read from a folder.
    Folder,
}

/// A TOML document as read, before inheritance.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub file: FileId,
    pub origin: Origin,
    pub table: Table,
}

/// A graph file as read.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    pub origin: Origin,
    pub file: FileId,
    pub graph: GraphFile,
}

/// Everything a compilation may refer to.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// Every text read.
    pub sources: Sources,
    pub(crate) families: BTreeMap<String, Document>,
    pub(crate) graphs: BTreeMap<String, Graph>,
    pub(crate) modules: BTreeMap<String, Graph>,
    pub(crate) caches: BTreeMap<String, CacheLayout>,
    pub(crate) gguf: BTreeMap<String, Document>,
    /// What was found wrong while reading; syntax errors mostly.
    diags: Vec<Diagnostic>,
    /// Files read from folders, for `rerun-if-changed`.
    read: Vec<PathBuf>,
}

impl Library {
    /// The documents embedded in the compiler.
    pub fn builtin() -> Self {
        let mut library = Library::default();
        for (name, text) in embedded::FILES {
            library.add(Origin::BuiltIn, name, &format!("built-in/{name}"), text);
        }
        library
    }

    /// The embedded documents and those of a folder. A folder that holds `std/ops.graph` is a library
    /// of its own and stands alone.
    pub fn with_dir(dir: impl AsRef<Path>) -> Self {
        Self::with_dirs(&[dir.as_ref()])
    }

    /// As [`Library::with_dir`], for several folders.
    pub fn with_dirs<P: AsRef<Path>>(dirs: &[P]) -> Self {
        let whole = dirs.iter().any(|dir| dir.as_ref().join("std").join("ops.graph").is_file());
        let mut library = if whole { Library::default() } else { Library::builtin() };
        for dir in dirs {
            library.read_dir(dir.as_ref());
        }
        library
    }

    /// What was found wrong while reading the texts.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diags
    }

    /// Files read from folders.
    pub fn files_read(&self) -> &[PathBuf] {
        &self.read
    }

    /// Names of the families, in order.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    /// Whether a family came from a folder rather than from the compiler.
    pub fn is_local(&self, family: &str) -> bool {
        self.families.get(family).is_some_and(|document| document.origin == Origin::Folder)
    }

    /// The library of blocks and ops: module name and content, `ops*` included.
    pub fn modules(&self) -> Vec<(String, GraphFile)> {
        self.modules.iter().map(|(name, module)| (name.clone(), module.graph.clone())).collect()
    }

    /// Cache layouts by storage name.
    pub fn caches(&self) -> &BTreeMap<String, CacheLayout> {
        &self.caches
    }

    /// Whether a storage is one that the runtime has: its document is the one embedded here.
    pub fn is_builtin_storage(&self, name: &str) -> bool {
        let document = format!("cache/{name}.toml");
        let embedded = embedded::FILES.iter().find(|(own, _)| *own == document);
        embedded.is_some_and(|(_, text)| {
            self.caches.get(name).is_some_and(|own| self.sources.file(own.file).text == *text)
        })
    }

    /// The text a family was read from.
    pub fn family_file(&self, family: &str) -> Option<FileId> {
        self.families.get(family).map(|document| document.file)
    }

    /// The base of a family as its document says, without resolving it.
    pub fn base_of(&self, family: &str) -> Option<&str> {
        let table = &self.families.get(family)?.table;
        table.get("family")?.as_table()?.get("extends")?.as_str()
    }

    /// The generic family, which new ones start from.
    pub fn generic(&self) -> Option<&str> {
        let tier = |document: &Document| {
            let family = document.table.get("family")?.as_table()?;
            Some(family.get("tier")?.as_str()? == "generic")
        };
        let found = self.families.iter().find(|(_, document)| tier(document) == Some(true));
        found.map(|(name, _)| name.as_str())
    }

    /// Reads a family with everything it inherits.
    ///
    /// # Errors
    /// Every problem found in its documents and graph files; warnings alone are no error.
    pub fn load_family(&self, name: &str) -> Result<(Manifest, Vec<GraphFile>), Vec<Diagnostic>> {
        families::load(self, name)
    }

    /// Lines of a family's own documents, blank and comment lines not counted.
    pub fn spec_lines(&self, family: &str) -> usize {
        let manifest = self.families.get(family).map(|document| document.file);
        let graph = self.graphs.get(&format!("{family}.graph")).map(|graph| graph.file);
        let files = manifest.into_iter().chain(graph);
        let told =
            |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("///");
        files
            .map(|file| self.sources.file(file).text.lines().map(str::trim).filter(told).count())
            .sum()
    }

    /// The documents of a family and its bases: name within a folder of specs, and text; the
    /// family's own first.
    pub fn documents(&self, family: &str) -> Vec<(String, String)> {
        let mut documents = Vec::new();
        let mut next = Some(family.to_owned());
        while let Some(name) = next.take() {
            let graph = format!("{name}.graph");
            let files = [
                (format!("{name}.toml"), self.families.get(&name).map(|document| document.file)),
                (graph.clone(), self.graphs.get(&graph).map(|graph| graph.file)),
            ];
            for (shown, file) in files {
                let Some(file) = file else { continue };
                if documents.iter().any(|(known, _)| *known == shown) {
                    return documents;
                }
                documents.push((shown, self.sources.file(file).text.clone()));
            }
            next = self.base_of(&name).map(str::to_owned);
        }
        documents
    }

    /// A family's manifest with its inheritance applied, as a document of its own.
    ///
    /// # Errors
    /// What keeps the inheritance from being applied.
    pub fn resolved(&self, family: &str) -> Result<toml::Table, Vec<Diagnostic>> {
        families::resolved(self, family)
    }
}

fn top(file: FileId) -> Span {
    Span { file, start: 0, end: 0 }
}

/// A document's error that concerns it as a whole.
fn whole(code: Code, file: FileId, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, top(file), message)
}

#[cfg(test)]
mod tests;
