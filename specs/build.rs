//! Compiles the specs beside this file: one module for each family whose feature is on.

use std::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut families = Vec::new();
    for entry in fs::read_dir(".")? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let manifest = path.extension().is_some_and(|end| end == "toml") && name != "Cargo";
        let feature = format!("CARGO_FEATURE_{}", name.to_uppercase());
        if manifest && env::var_os(feature).is_some() {
            families.push(name.to_owned());
        }
    }
    families.sort();
    specc::Build::new().specs(".").families(families).compile()?;
    Ok(())
}
