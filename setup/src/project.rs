//! What a cargo project says about itself: its root, its mlx-sys, the host it is built for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::Error;
use crate::cache::{self, Cache};
use crate::tools::run;

/// The mlx-sys that is prepared where a project does not name one yet.
pub const MLX_SYS: &str = "0.7.0";

/// The mlx-sys that a project is built with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MlxSys {
    pub(crate) version: String,
    origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// Not in the project's lock file: the version above.
    Assumed,
    /// From a registry.
    Registry,
    /// From a path or a git repository; its sources may change under one version.
    Local,
}

/// The root of the workspace around the current folder.
pub(crate) fn workspace_root() -> Result<PathBuf, Error> {
    let here = std::env::current_dir().map_err(Error::io(".", "find"))?;
    match locate(&here) {
        Some(root) => Ok(root),
        None => Err(Error::NoProject { dir: here }),
    }
}

fn locate(dir: &Path) -> Option<PathBuf> {
    let args = ["locate-project", "--workspace", "--message-format", "plain"];
    let manifest = run(cargo().args(args).current_dir(dir)).ok()?;
    Path::new(manifest.trim()).parent().map(Path::to_owned)
}

pub(crate) fn cargo() -> Command {
    // Within `cargo run` this is the cargo that runs us.
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The host triple, as rustc names it.
pub(crate) fn host(dir: &Path) -> Result<String, Error> {
    let text = run(Command::new("rustc").arg("-vV").current_dir(dir))?;
    text.lines().find_map(|l| l.strip_prefix("host: ")).map(str::to_owned).ok_or_else(|| {
        Error::Content {
            path: "rustc -vV".into(),
            expected: "a line `host: ...`".into(),
            found: text.lines().next().unwrap_or_default().to_owned(),
        }
    })
}

/// Finds the mlx-sys of the project in `dir` in its lock file; an unlocked project gets the assumed one.
pub(crate) fn mlx_sys(dir: &Path) -> Result<MlxSys, Error> {
    let root = locate(dir).unwrap_or_else(|| dir.to_owned());
    let path = root.join("Cargo.lock");
    let assumed = MlxSys { version: MLX_SYS.to_owned(), origin: Origin::Assumed };
    if !path.is_file() {
        return Ok(assumed);
    }
    let text = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    Ok(in_lock(&path, &text)?.unwrap_or(assumed))
}

fn in_lock(path: &Path, text: &str) -> Result<Option<MlxSys>, Error> {
    let wrong = |expected: &str, found: String| Error::Content {
        path: path.to_owned(),
        expected: expected.to_owned(),
        found,
    };
    let lock: toml_edit::DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| wrong("TOML", e.message().to_owned()))?;
    let Some(packages) = lock.get("package").and_then(|p| p.as_array_of_tables()) else {
        return Ok(None);
    };
    let text_of = |table: &toml_edit::Table, key: &str| {
        table.get(key).and_then(|v| v.as_str()).map(str::to_owned)
    };
    let Some(package) = packages.iter().find(|p| text_of(p, "name").as_deref() == Some("mlx-sys"))
    else {
        return Ok(None);
    };
    let version = text_of(package, "version")
        .ok_or_else(|| wrong("a version of mlx-sys", "none".to_owned()))?;
    // The version becomes part of folder names.
    if version.is_empty()
        || !version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
    {
        return Err(wrong("a version of mlx-sys", format!("`{version}`")));
    }
    let origin = match text_of(package, "source") {
        Some(source) if source.starts_with("registry+") || source.starts_with("sparse+") => {
            Origin::Registry
        }
        _ => Origin::Local,
    };
    Ok(Some(MlxSys { version, origin }))
}

impl MlxSys {
    /// A name for this mlx-sys in the cache: its version, and a sum of its sources where they may change under it.
    pub(crate) fn key(&self, dir: &Path) -> Result<String, Error> {
        if self.origin != Origin::Local {
            return Ok(self.version.clone());
        }
        let sources = self.mlx_c(dir, None)?;
        let mut hash = Sha256::new();
        for file in cache::files_below(&sources.join("mlx"))? {
            hash.update(file.as_os_str().as_encoded_bytes());
            hash.update(cache::sha256(&sources.join("mlx").join(&file))?.0);
        }
        let sum = cache::hex(&hash.finalize());
        Ok(format!("{}-{}", self.version, &sum[..8]))
    }

    /// The folder of the mlx-c sources within mlx-sys's package; fetches the package where needed. A project that
    /// does not depend on mlx-sys yet has it fetched for a project of our own in the cache.
    pub(crate) fn mlx_c(&self, dir: &Path, cache: Option<&Cache>) -> Result<PathBuf, Error> {
        let manifest = match (&self.origin, cache) {
            (Origin::Assumed, Some(cache)) => {
                let scratch = cache.entry("fetch");
                let src = scratch.join("src");
                fs::create_dir_all(&src).map_err(Error::io(&src, "create"))?;
                let lib = src.join("lib.rs");
                fs::write(&lib, "").map_err(Error::io(&lib, "write"))?;
                let manifest = scratch.join("Cargo.toml");
                let text = format!(
                    "[workspace]\n[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                     [dependencies]\nmlx-sys = {{ version = \"={}\", default-features = false }}\n",
                    self.version
                );
                fs::write(&manifest, text).map_err(Error::io(&manifest, "write"))?;
                manifest
            }
            _ => dir.join("Cargo.toml"),
        };
        let folder = manifest.parent().unwrap_or(dir).to_owned();
        let text = run(cargo()
            .args(["metadata", "--format-version", "1", "--manifest-path"])
            .arg(&manifest)
            .current_dir(folder))?;
        let mlx_c =
            package_folder(&text).map(|p| p.join("src/mlx-c")).ok_or_else(|| Error::Content {
                path: manifest.clone(),
                expected: "mlx-sys among the packages of `cargo metadata`".into(),
                found: "none".into(),
            })?;
        if !mlx_c.join("mlx/c/mlx.h").is_file() {
            return Err(Error::Content {
                path: mlx_c,
                expected: "the mlx-c sources".into(),
                found: "no mlx/c/mlx.h".into(),
            });
        }
        Ok(mlx_c)
    }
}

fn package_folder(metadata: &str) -> Option<PathBuf> {
    let json: serde_json::Value = serde_json::from_str(metadata).ok()?;
    let packages = json.get("packages")?.as_array()?;
    let package = packages.iter().find(|p| p.get("name").is_some_and(|n| n == "mlx-sys"))?;
    Path::new(package.get("manifest_path")?.as_str()?).parent().map(Path::to_owned)
}

/// The MLX version that mlx-c's build file pins.
pub(crate) fn pinned_mlx(mlx_c: &Path) -> Result<String, Error> {
    let path = mlx_c.join("CMakeLists.txt");
    let text = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    let version = text.lines().find_map(|line| {
        let tag = line.trim().strip_prefix("GIT_TAG v")?;
        Some(tag.trim_end_matches(')').trim())
    });
    match version {
        Some(v) if !v.is_empty() && v.chars().all(|c| c.is_ascii_digit() || c == '.') => {
            Ok(v.to_owned())
        }
        found => Err(Error::Content {
            path,
            expected: "a line `GIT_TAG vX.Y.Z`".into(),
            found: found.unwrap_or("none").to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(package: &str) -> Result<Option<MlxSys>, String> {
        in_lock(Path::new("Cargo.lock"), package).map_err(|e| e.to_string())
    }

    #[test]
    fn mlx_sys_is_found_in_a_lock_file() {
        let other = "version = 4\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";
        assert_eq!(lock(other), Ok(None));
        assert_eq!(lock("version = 4\n"), Ok(None));
        let with = |version: &str, source: &str| {
            format!("{other}[[package]]\nname = \"mlx-sys\"\nversion = \"{version}\"\n{source}")
        };
        let found = |version: &str, origin| Ok(Some(MlxSys { version: version.into(), origin }));
        let registry = "source = \"registry+https://example.org/index\"\n";
        assert_eq!(lock(&with("0.7.0", registry)), found("0.7.0", Origin::Registry));
        assert_eq!(lock(&with("0.8.0-rc.1", "")), found("0.8.0-rc.1", Origin::Local));
        let git = "source = \"git+https://example.org/mlx-rs#12ab\"\n";
        assert_eq!(lock(&with("0.7.0", git)), found("0.7.0", Origin::Local));
    }

    #[test]
    fn a_broken_lock_file_is_refused() {
        insta::assert_snapshot!(lock("version = ").unwrap_err(), @"Cargo.lock: expected TOML, found string values must be quoted, expected literal string");
        let path = "[[package]]\nname = \"mlx-sys\"\nversion = \"../../etc\"\n";
        insta::assert_snapshot!(lock(path).unwrap_err(), @"Cargo.lock: expected a version of mlx-sys, found `../../etc`");
        insta::assert_snapshot!(lock("[[package]]\nname = \"mlx-sys\"\n").unwrap_err(), @"Cargo.lock: expected a version of mlx-sys, found none");
    }

    #[test]
    fn the_pinned_mlx_is_read_from_the_build_file() {
        let dir = tempfile::tempdir().unwrap();
        let pinned = |text: &str| {
            fs::write(dir.path().join("CMakeLists.txt"), text).unwrap();
            pinned_mlx(dir.path())
                .map_err(|e| e.to_string().replace(dir.path().to_str().unwrap(), ""))
        };
        assert_eq!(pinned("x\n    GIT_TAG v0.32.2)\n").as_deref(), Ok("0.32.2"));
        assert_eq!(pinned("GIT_TAG v1.0.0\n").as_deref(), Ok("1.0.0"));
        insta::assert_snapshot!(pinned("GIT_TAG main)\n").unwrap_err(), @"/CMakeLists.txt: expected a line `GIT_TAG vX.Y.Z`, found none");
        insta::assert_snapshot!(pinned("GIT_TAG v../1)\n").unwrap_err(), @"/CMakeLists.txt: expected a line `GIT_TAG vX.Y.Z`, found ../1");
    }

    #[test]
    fn the_package_is_found_in_cargo_metadata() {
        let json = r#"{"packages": [{"name": "a", "manifest_path": "/a/Cargo.toml"},
            {"name": "mlx-sys", "manifest_path": "/b/mlx-sys-0.7.0/Cargo.toml"}]}"#;
        assert_eq!(package_folder(json).as_deref(), Some(Path::new("/b/mlx-sys-0.7.0")));
        assert_eq!(package_folder(r#"{"packages": []}"#), None);
        assert_eq!(package_folder("[]"), None);
    }
}
