//! Texts into the library.

use std::path::Path;

use super::{Document, Graph, Library, Origin, whole};
use crate::diag::{Code, Diagnostic};
use crate::manifest::{cache, tree};
use crate::syntax::parse_graph;

impl Library {
    /// Reads a folder of specs: manifests and graphs in it, and `std`, `cache`, `gguf` under it.
    pub(super) fn read_dir(&mut self, dir: &Path) {
        if !dir.is_dir() {
            let file = self.sources.add(shown(dir), "");
            self.diags.push(whole(
                Code::UnreadableFile,
                file,
                format!("`{}` is no folder", dir.display()),
            ));
            return;
        }
        for folder in ["", "std", "cache", "gguf"] {
            let path = if folder.is_empty() { dir.to_owned() } else { dir.join(folder) };
            if !path.is_dir() {
                continue;
            }
            match std::fs::read_dir(&path) {
                Ok(entries) => {
                    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
                    files.sort();
                    files.iter().for_each(|file| self.read_file(folder, file));
                }
                Err(error) => self.unreadable(&path, &error),
            }
        }
    }

    fn read_file(&mut self, folder: &str, path: &Path) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
        let wanted = path.extension().is_some_and(|end| end == "toml" || end == "graph");
        if !wanted || name == "Cargo.toml" || name.starts_with('.') || !path.is_file() {
            return;
        }
        match std::fs::read_to_string(path) {
            Ok(text) => {
                self.read.push(path.to_owned());
                let key =
                    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                self.add(Origin::Folder, &key, &shown(path), &text);
            }
            Err(error) => self.unreadable(path, &error),
        }
    }

    fn unreadable(&mut self, path: &Path, error: &std::io::Error) {
        let file = self.sources.add(shown(path), "");
        self.diags.push(whole(
            Code::UnreadableFile,
            file,
            format!("cannot read this file: {error}"),
        ));
    }

    /// Adds one text under its name within a folder of specs, such as `acme.toml` or `std/ops.graph`.
    pub fn add(&mut self, origin: Origin, key: &str, shown: &str, text: &str) {
        let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
        let Some((stem, kind)) = name.rsplit_once('.') else { return };
        if let Some(known) = self.same_name(folder, stem, kind) {
            // A copy of a built-in document says nothing new; anything else would be ambiguous.
            if self.sources.file(known).text == text {
                return;
            }
            let file = self.sources.add(shown, text);
            let shown = self.sources.file(known).name.clone();
            self.diags.push(
                whole(
                    Code::NameTaken,
                    file,
                    format!("`{name}` is the name of another document of the library"),
                )
                .note(format!("the other one is {shown}"))
                .help("choose another name; `extends` takes over what the other family says"),
            );
            return;
        }
        let file = self.sources.add(shown, text);
        let mut diags = Vec::new();
        match (folder, kind) {
            ("" | "gguf", "toml") => {
                let table = tree::parse(file, text, &mut diags);
                let document = Document { file, origin, table };
                let set = if folder.is_empty() { &mut self.families } else { &mut self.gguf };
                set.insert(stem.to_owned(), document);
            }
            ("cache", "toml") => {
                let table = tree::parse(file, text, &mut diags);
                if let Some(layout) = cache::layout(file, &table, &mut diags) {
                    self.add_layout(stem, layout, &mut diags);
                }
            }
            (_, "graph") => {
                let graph = parse_graph(file, text, &mut diags);
                let graph = Graph { origin, file, graph };
                match folder {
                    "std" => self.modules.insert(stem.to_owned(), graph),
                    _ => self.graphs.insert(name.to_owned(), graph),
                };
            }
            _ => {}
        }
        self.diags.extend(diags);
    }

    fn add_layout(&mut self, stem: &str, layout: cache::CacheLayout, diags: &mut Vec<Diagnostic>) {
        if layout.name.node != stem {
            diags.push(
                Diagnostic::error(
                    Code::NameOfFile,
                    layout.name.span,
                    format!("`{stem}.toml` describes the storage {:?}", layout.name.node),
                )
                .help(format!("rename the file, or write `name = \"{stem}\"`")),
            );
        }
        self.caches.insert(stem.to_owned(), layout);
    }

    fn same_name(&self, folder: &str, stem: &str, kind: &str) -> Option<crate::source::FileId> {
        let name = format!("{stem}.{kind}");
        let graph = |graph: &Graph| graph.file;
        match (folder, kind) {
            ("", "toml") => self.families.get(stem).map(|document| document.file),
            ("gguf", "toml") => self.gguf.get(stem).map(|document| document.file),
            ("cache", "toml") => self.caches.get(stem).map(|layout| layout.file),
            ("std", "graph") => self.modules.get(stem).map(graph),
            ("", "graph") => self.graphs.get(&name).map(graph),
            _ => None,
        }
    }
}

/// A path relative to where the command runs, where it lies below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    let path = relative.unwrap_or_else(|| path.to_owned());
    let text = path.display().to_string();
    text.strip_prefix("./").map(str::to_owned).unwrap_or(text)
}
