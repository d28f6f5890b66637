//! Makes Rust bindings of mlx-c's headers with bindgen.
//!
//! bindgen takes longer to compile than the rest of the set-up, and is wanted once per machine: so it is not a
//! dependency, but that of a small program which is compiled in the cache when bindings are made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::native::{HALF, compiler, failed};
use crate::progress::Progress;
use crate::project::cargo;
use crate::tools::run;

pub(crate) const PROGRAM: &str = include_str!("../native/bindings.rs");
/// The bindgen that mlx-sys 0.7.0 uses.
pub(crate) const BINDGEN: &str = "0.72.1";

/// Compiles the program that makes bindings into `out/bindings`.
pub(crate) fn compile(out: &Path, progress: &Progress) -> Result<(), Error> {
    let step = progress.start("compiling bindgen", None);
    let project = out.join("project");
    let src = project.join("src");
    fs::create_dir_all(&src).map_err(Error::io(&src, "create"))?;
    let manifest = format!(
        "[workspace]\n[package]\nname = \"bindings\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [dependencies]\n\
         bindgen = {{ version = \"={BINDGEN}\", default-features = false, features = [\"runtime\"] }}\n\
         [profile.dev]\ndebug = false\n"
    );
    for (path, text) in
        [(project.join("Cargo.toml"), manifest.as_str()), (src.join("main.rs"), PROGRAM)]
    {
        fs::write(&path, text).map_err(Error::io(&path, "write"))?;
    }
    let target = project.join("target");
    let mut build = cargo();
    build.args(["build", "--target-dir"]).arg(&target).current_dir(&project);
    // Flags and profiles of the caller are for the caller's project.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.ends_with("RUSTFLAGS")
            || text.starts_with("CARGO_PROFILE")
            || text == "CARGO_BUILD_TARGET"
        {
            build.env_remove(&name);
        }
    }
    run(&mut build)?;
    let program = out.join("bindings");
    fs::copy(target.join("debug/bindings"), &program).map_err(Error::io(&program, "copy to"))?;
    fs::remove_dir_all(&project).map_err(Error::io(&project, "remove"))?;
    step.done();
    Ok(())
}

/// Writes `out/bindings.rs` for mlx-c's headers; `program` is what `compile` made, `libclang` a folder or a file.
pub(crate) fn write(
    program: &Path,
    libclang: &Path,
    mlx_c: &Path,
    host: &str,
    out: &Path,
) -> Result<(), Error> {
    let half = out.join("half_linux.h");
    fs::write(&half, HALF).map_err(Error::io(&half, "write"))?;
    let mut command = Command::new(program);
    command.env("LIBCLANG_PATH", libclang).arg(mlx_c).arg(out.join("bindings.rs"));
    command.arg("-include").arg(&half);
    // A libclang from a wheel brings no stddef.h; the C compiler's own serves.
    let c = compiler(host, false).map_err(|e| failed("cc", e))?;
    if let Ok(dir) = run(c.to_command().arg("-print-file-name=include")) {
        command.args(["-isystem", dir.trim()]);
    }
    run(&mut command)?;
    Ok(())
}

/// A libclang on this system that knows `_Float16` on every machine: version 15 or later.
pub(crate) fn system_libclang() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        return Some(path.into());
    }
    newest_llvm(Path::new("/usr/lib"))
}

/// The library folder of the newest `llvm-N` in `root` with N >= 15 that holds a libclang.
fn newest_llvm(root: &Path) -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version: u32 = name.strip_prefix("llvm-")?.parse().ok()?;
            let lib = entry.path().join("lib");
            let holds = ["libclang.so", "libclang.so.1"].iter().any(|n| lib.join(n).exists());
            (version >= 15 && holds).then_some((version, lib))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, lib)| lib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_llvm_with_a_libclang_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(newest_llvm(root), None);
        for (version, file) in [("14", "libclang.so"), ("9", "libclang.so"), ("20", "libLLVM.so")] {
            let lib = root.join(format!("llvm-{version}/lib"));
            fs::create_dir_all(&lib).unwrap();
            fs::write(lib.join(file), "").unwrap();
        }
        assert_eq!(newest_llvm(root), None, "too old, or without libclang");
        for version in ["15", "18"] {
            let lib = root.join(format!("llvm-{version}/lib"));
            fs::create_dir_all(&lib).unwrap();
            fs::write(lib.join("libclang.so.1"), "").unwrap();
        }
        assert_eq!(newest_llvm(root), Some(root.join("llvm-18/lib")));
    }
}
