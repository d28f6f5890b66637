//! All checks of specs: each family, and the set of them.

mod manifest;
mod registry;

use std::collections::{BTreeMap, HashSet};

use crate::compile::{self, Checked};
use crate::diag::{Diagnostic, once};
use crate::library::Library;
use crate::manifest::Manifest;

pub use manifest::check_manifest;
pub use registry::check_registry;

/// What came of checking families.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// Those without errors.
    pub families: BTreeMap<String, Checked>,
    /// Every finding once, whichever family shows it.
    pub diagnostics: Vec<Diagnostic>,
}

/// The manifests of a library that can be read, and what is wrong with the others.
pub fn manifests(library: &Library) -> (BTreeMap<String, Manifest>, Vec<Diagnostic>) {
    let mut manifests = BTreeMap::new();
    let mut broken = Vec::new();
    for name in library.families() {
        match library.load_family(name) {
            Ok((manifest, _)) => {
                manifests.insert(name.to_owned(), manifest);
            }
            Err(found) => broken.extend(found),
        }
    }
    (manifests, broken)
}

/// Checks families of a library and what must hold among all of them.
pub fn check_families(library: &Library, names: &[String]) -> Checks {
    check_among(library, names, &manifests(library).0)
}

/// The same, where the manifests of the library are at hand.
pub fn check_among(
    library: &Library,
    names: &[String],
    manifests: &BTreeMap<String, Manifest>,
) -> Checks {
    let mut families = BTreeMap::new();
    let mut found = library.diagnostics().to_vec();
    for name in names {
        match compile::check(library, name) {
            Ok(checked) => {
                found.extend(checked.program.warnings.iter().cloned());
                families.insert(name.clone(), checked);
            }
            Err(problems) => found.extend(problems),
        }
    }
    // Of the whole set, what concerns the families asked for.
    let files: HashSet<_> = names.iter().filter_map(|name| library.family_file(name)).collect();
    found.extend(check_registry(manifests).into_iter().filter(|finding| {
        let labels = finding.labels.iter().chain([&finding.primary]);
        labels.into_iter().any(|label| files.contains(&label.span.file))
    }));
    Checks { families, diagnostics: once(found) }
}
