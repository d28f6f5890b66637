//! Embeds the library of specs, so that `extends = "llama"` works anywhere, and the table of what was
//! measured of its families.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let specs = PathBuf::from(var("CARGO_MANIFEST_DIR")?).join("../specs");
    let mut files = Vec::new();
    for folder in ["", "std", "cache", "gguf"] {
        collect(&specs, folder, &mut files)?;
    }
    files.sort();
    let mut code = String::from("pub(super) const FILES: &[(&str, &str)] = &[\n");
    for (name, path) in &files {
        // Writing to a String cannot fail.
        let _ = writeln!(code, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    // What the tests measured of the families, where the table lies beside the compiler.
    let table = specs.join("../docs/families.md");
    println!("cargo::rerun-if-changed={}", table.display());
    let text = match fs::canonicalize(&table) {
        Ok(path) => format!("include_str!({:?})", path.display().to_string()),
        Err(_) => "\"\"".to_owned(),
    };
    let _ = writeln!(code, "pub(crate) const MEASURED: &str = {text};");
    let out = PathBuf::from(var("OUT_DIR")?).join("embedded.rs");
    if fs::read_to_string(&out).ok().as_deref() != Some(code.as_str()) {
        fs::write(out, code)?;
    }
    Ok(())
}

fn var(name: &str) -> io::Result<String> {
    env::var(name).map_err(|_| io::Error::other(format!("cargo sets {name}")))
}

fn collect(specs: &Path, folder: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let path = specs.join(folder);
    println!("cargo::rerun-if-changed={}", path.display());
    if !path.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&path)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let kind = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        if name == "Cargo.toml" || name.starts_with('.') || !matches!(kind, "toml" | "graph") {
            continue;
        }
        let key = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        files.push((key, fs::canonicalize(path)?));
    }
    Ok(())
}
