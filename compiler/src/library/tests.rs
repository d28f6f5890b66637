//! What the library holds, and how families inherit.

use super::*;
use crate::diag::render::{self, Style};

#[test]
fn every_family_of_the_library_loads() {
    let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");
    let library = Library::with_dir(specs);
    let (families, diags) = families::all(&library);
    assert_eq!(render::all(&library.sources, &diags, Style::Plain), "");
    assert_eq!(families.len(), library.families().count());
    assert_eq!(
        families::registry(&families.into_iter().map(|(name, (m, _))| (name, m)).collect()),
        []
    );
}
