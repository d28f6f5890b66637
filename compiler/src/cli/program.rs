//! Writing files of a project.

use std::path::{Component, Path, PathBuf};

use super::Failure;

/// The checkout that specc was built from, or the one named.
pub fn checkout(named: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = named.cloned().unwrap_or_else(built);
    let runtime = path.join("runtime").join("Cargo.toml");
    if !runtime.is_file() {
        return Err(Failure::Message(format!(
            "{} is no checkout of specc; name one with --specc PATH",
            path.display()
        )));
    }
    std::fs::canonicalize(&path)
        .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))
}

/// Where a crate in `folder` finds a part of the checkout: a relative path within the checkout, so
/// that both can move together, else an absolute one.
pub fn dependency(folder: &Path, checkout: &Path, part: &str) -> Result<PathBuf, Failure> {
    let told = |error: std::io::Error| Failure::Message(format!("{}: {error}", folder.display()));
    let folder = std::path::absolute(folder).map_err(told)?;
    // The folder itself may be yet to be made.
    let known = folder.ancestors().find(|above| above.exists()).unwrap_or(&folder);
    let rest = folder.strip_prefix(known).unwrap_or(Path::new(""));
    let whole = std::fs::canonicalize(known).map_err(told)?.join(rest);
    Ok(match whole.strip_prefix(checkout) {
        Ok(inside) if inside.components().all(|part| matches!(part, Component::Normal(_))) => {
            inside.components().map(|_| Component::ParentDir).collect::<PathBuf>().join(part)
        }
        _ => checkout.join(part),
    })
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let told = |error: std::io::Error| Failure::Message(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(told)?;
    }
    std::fs::write(path, text).map_err(told)
}

/// A path as a TOML string.
pub fn quoted(path: &Path) -> String {
    toml::Value::String(path.display().to_string()).to_string()
}
