//! For build scripts: specs to Rust in `OUT_DIR`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::checks::{Checks, check_among, manifests};
use crate::compile::{Checked, generate};
use crate::diag::{has_errors, render};
use crate::emit::EmitError;
use crate::library::Library;

/// Compiles the specs of a crate, in the manner of prost-build.
///
/// ```no_run
/// // build.rs
/// fn main() -> Result<(), specc::BuildError> {
///     specc::Build::new().specs("specs").compile()
/// }
/// ```
///
/// and in the crate: `include!(concat!(env!("OUT_DIR"), "/families.rs"));`, which brings one module
/// for each family and `families()`.
#[derive(Debug, Clone, Default)]
pub struct Build {
    specs: Vec<PathBuf>,
    families: Option<Vec<String>>,
    builtin: bool,
    out: Option<PathBuf>,
}

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Problems of the specs, rendered.
    #[error("{0}")]
    Specs(String),
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// `OUT_DIR` is not set and no folder was given.
    #[error("OUT_DIR is not set: call this from a build script, or name a folder with `out_dir`")]
    NoOutDir,
    /// A fault of the compiler.
    #[error(transparent)]
    Emit(#[from] EmitError),
}

impl Build {
    /// Nothing to compile yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder of specs.
    #[must_use]
    pub fn specs(mut self, folder: impl AsRef<Path>) -> Self {
        self.specs.push(folder.as_ref().to_owned());
        self
    }

    /// Compiles these families only; otherwise all of the folders.
    #[must_use]
    pub fn families<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.families = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Compiles the built-in families too.
    #[must_use]
    pub fn builtin(mut self, yes: bool) -> Self {
        self.builtin = yes;
        self
    }

    /// Writes here instead of `OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.out = Some(folder.as_ref().to_owned());
        self
    }

    /// Compiles, writes what changed, and tells cargo which files to watch and what to warn of.
    ///
    /// # Errors
    /// Problems of the specs, all of them, with their places; and files that cannot be written.
    pub fn compile(self) -> Result<(), BuildError> {
        let library = Library::with_dirs(&self.specs);
        for folder in &self.specs {
            for part in ["", "std", "cache", "gguf"] {
                let path = folder.join(part);
                if path.is_dir() {
                    println!("cargo::rerun-if-changed={}", path.display());
                }
            }
        }
        for file in library.files_read() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        let names = match &self.families {
            Some(names) => names.clone(),
            None => library
                .families()
                .filter(|name| self.builtin || library.is_local(name))
                .map(str::to_owned)
                .collect(),
        };
        let out = match self.out {
            Some(out) => out,
            None => PathBuf::from(env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?),
        };
        let (families, warnings) = checked(&library, &names)?;
        let mut made: Vec<_> = families.into_iter().collect();
        for warning in warnings {
            println!("cargo::warning={warning}");
        }
        // Targeted families are tried first, of these one's own before the built-in ones.
        made.sort_by_key(|(name, checked)| {
            let family = &checked.manifest.family;
            (family.generic, !library.is_local(name), family.accepts.is_none())
        });
        let mut index = String::new();
        for (name, checked) in &made {
            let module = crate::ir::names::variable(name);
            let path = out.join(format!("{module}.rs"));
            write_changed(&path, &generate(&library, checked)?)?;
            let shown = path.display().to_string();
            // Writing to a String cannot fail.
            let _ = writeln!(
                index,
                "#[path = {shown:?}]\n#[allow(dead_code, reason = \"a program may look at less than a family offers\")]\npub mod {module};"
            );
        }
        let records: Vec<String> = made
            .iter()
            .map(|(name, _)| format!("&{}::FAMILY", crate::ir::names::variable(name)))
            .collect();
        let _ = write!(
            index,
            "\n/// The families of this crate, in the order they are tried.\npub fn families() -> &'static [&'static specc_runtime::Family] {{\n    static FAMILIES: &[&specc_runtime::Family] = &[{}];\n    FAMILIES\n}}\n",
            records.join(", ")
        );
        write_changed(&out.join("families.rs"), &index)
    }
}

/// The families by name, and what is to be warned of, a line each.
fn checked(
    library: &Library,
    names: &[String],
) -> Result<(BTreeMap<String, Checked>, Vec<String>), BuildError> {
    // What must hold among families concerns those of this crate.
    let mut manifests = manifests(library).0;
    manifests.retain(|name, _| names.contains(name));
    let Checks { families, diagnostics } = check_among(library, names, &manifests);
    if has_errors(&diagnostics) {
        let text = render::all(&library.sources, &diagnostics, render::Style::Plain);
        return Err(BuildError::Specs(text));
    }
    let warnings = render::sorted(&diagnostics).into_iter();
    let warnings = warnings.map(|warning| render::line(&library.sources, warning)).collect();
    Ok((families, warnings))
}

fn write_changed(path: &Path, text: &str) -> Result<(), BuildError> {
    if fs::read_to_string(path).ok().as_deref() == Some(text) {
        return Ok(());
    }
    fs::write(path, text)
        .map_err(|error| BuildError::File { path: path.display().to_string(), error })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails says where")]

    use super::*;

    fn family(folder: &Path, name: &str, more: &str) {
        let text = format!(
            "[family]\nname = {name:?}\nmodel_types = [\"acme\"]\nextends = \"llama\"\nlabel = {name:?}\n{more}"
        );
        fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }

    fn library(folder: &Path) -> (Library, Vec<String>) {
        let library = Library::with_dir(folder);
        let local = library.families().filter(|name| library.is_local(name));
        let names = local.map(str::to_owned).collect();
        (library, names)
    }

    #[test]
    fn two_families_of_a_crate_for_one_model_type_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        family(folder.path(), "one", "");
        family(folder.path(), "two", "");
        let out = tempfile::tempdir().unwrap();
        let told = Build::new().specs(folder.path()).out_dir(out.path()).compile();
        let told = told.unwrap_err().to_string();
        assert!(told.contains("two families answer to the model type `acme`"), "{told}");
        // One of them alone is no trouble.
        let one = Build::new().specs(folder.path()).families(["one"]).out_dir(out.path());
        one.compile().unwrap();
        assert!(out.path().join("one.rs").is_file());
    }

    #[test]
    fn warnings_are_lines() {
        let folder = tempfile::tempdir().unwrap();
        family(folder.path(), "one", "");
        let graph = "block unused(x: [B, L, hidden_size]) -> [B, L, hidden_size] { silu(x) }\n";
        fs::write(folder.path().join("one.graph"), graph).unwrap();
        let (library, names) = library(folder.path());
        let (families, warnings) = checked(&library, &names).unwrap();
        assert_eq!(families.len(), 1);
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert!(warning.contains("one.graph:1:7: ") && warning.contains("`unused`"), "{warning}");
        assert!(!warning.contains('\n'), "{warning}");
    }
}
