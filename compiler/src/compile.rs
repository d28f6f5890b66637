//! The pipeline: documents → manifest and graphs → IR → Rust.

use specc_checkpoint::config::ConfigFile;

use crate::checks::check_manifest;
use crate::declare::declare;
use crate::diag::{Diagnostic, once};
use crate::emit::{EmitError, emit};
use crate::ir::Program;
use crate::library::Library;
use crate::lower::lower;
use crate::manifest::{LayerKind, Manifest};
use crate::model::fits;

/// One family after all checks that need no config.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What its document says, inheritance applied.
    pub manifest: Manifest,
    /// What it computes.
    pub program: Program,
}

/// Checks a family: syntax, names, types, shapes.
///
/// # Errors
/// Every problem found.
pub fn check(library: &Library, family: &str) -> Result<Checked, Vec<Diagnostic>> {
    let (manifest, graphs) = library.load_family(family)?;
    let mut found = check_manifest(&manifest);
    let lowered = lower(&manifest, &graphs, &library.modules());
    if let Ok(program) = &lowered {
        found.extend(declare(&manifest, program).1);
        // Of the kinds that a base declares, a family may have none.
        let own = |kind: &LayerKind| kind.storage.span.file == manifest.file;
        found.extend(fits(library, &manifest, program, &own));
    }
    match lowered {
        Ok(program) if found.is_empty() => Ok(Checked { manifest, program }),
        lowered => {
            found.extend(lowered.err().unwrap_or_default());
            Err(once(found))
        }
    }
}

/// Checks a family and settles it for one config.
///
/// # Errors
/// Every problem found, of the family or of the config.
pub fn specialise(
    library: &Library,
    family: &str,
    config: &ConfigFile,
) -> Result<Checked, Vec<Diagnostic>> {
    let (manifest, graphs) = library.load_family(family)?;
    let manifest = crate::specialise::specialise(&manifest, config)?;
    let program = lower(&manifest, &graphs, &library.modules())?;
    Ok(Checked { manifest, program })
}

/// The documents that a family's code was made from: name within a folder of specs, and text. Its
/// own and its bases', then the library's blocks.
pub fn documents(library: &Library, checked: &Checked) -> Vec<(String, String)> {
    let mut documents = library.documents(&checked.manifest.family.name.node);
    for file in checked.program.files() {
        let file = library.sources.file(file);
        let Some((_, name)) = file.name.rsplit_once("std/") else { continue };
        let name = format!("std/{name}");
        if !documents.iter().any(|(known, _)| *known == name) {
            documents.push((name, file.text.clone()));
        }
    }
    documents
}

/// The Rust module of a checked family.
///
/// # Errors
/// When what comes out is no Rust: a fault of the compiler.
pub fn generate(library: &Library, checked: &Checked) -> Result<String, EmitError> {
    emit(&checked.manifest, &checked.program, library)
}
