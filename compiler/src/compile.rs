//! The pipeline: documents → manifest and graphs → IR → Rust.

use crate::diag::Diagnostic;
use crate::emit::{EmitError, emit};
use crate::expr::check_manifest;
use crate::ir::Program;
use crate::library::Library;
use crate::lower::lower;
use crate::manifest::Manifest;

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
    match lower(&manifest, &graphs, &library.modules()) {
        Ok(program) if found.is_empty() => Ok(Checked { manifest, program }),
        lowered => {
            // Both phases look at some expressions: what both find is said once.
            let errors = lowered.err().unwrap_or_default();
            found.extend(errors);
            let mut once: Vec<Diagnostic> = Vec::new();
            for diagnostic in found {
                let known = once.iter().any(|known| {
                    known.code == diagnostic.code && known.primary.span == diagnostic.primary.span
                });
                if !known {
                    once.push(diagnostic);
                }
            }
            Err(once)
        }
    }
}

/// The Rust module of a checked family.
///
/// # Errors
/// When what comes out is no Rust: a fault of the compiler.
pub fn generate(library: &Library, checked: &Checked) -> Result<String, EmitError> {
    emit(&checked.manifest, &checked.program, library)
}
