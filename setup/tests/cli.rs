//! The command, on systems that lack something and on broken projects. No network and no MLX.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A project, an empty cache, and a PATH that holds cargo, rustc and what the test adds.
struct System {
    dir: tempfile::TempDir,
}

impl System {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("project/src")).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        let manifest =
            "[workspace]\n[package]\nname = \"p\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
        fs::write(dir.path().join("project/Cargo.toml"), manifest).unwrap();
        fs::write(dir.path().join("project/src/lib.rs"), "").unwrap();
        Self { dir }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the set-up for `dir`; its exit code, and what it said on standard error.
    fn run(&self, dir: &Path) -> (Option<i32>, String) {
        let cargo = PathBuf::from(env!("CARGO"));
        let toolchain = cargo.parent().unwrap();
        let path = std::env::join_paths([&self.path("bin"), toolchain]).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_specc-setup"))
            .arg("--no-install")
            .arg(dir)
            .env("PATH", path)
            .env("CARGO", &cargo)
            .env("SPECC_CACHE", self.path("cache"))
            .env_remove("CXX")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = text.lines().filter(|l| !l.ends_with(" ...")).collect();
        let text = lines.join("\n").replace(self.dir.path().to_str().unwrap(), "DIR");
        (output.status.code(), text.replace("sudo ", ""))
    }
}

#[test]
fn a_folder_without_a_project_is_refused() {
    let system = System::new();
    let (code, said) = system.run(&system.path("bin"));
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(said, @"error: DIR/bin: no Cargo.toml here; give the folder of a cargo project");
    assert!(!system.path("cache").exists());
}

#[test]
fn everything_missing_is_named_in_one_line() {
    let system = System::new();
    system.program("apt-get", "exit 1");
    let (code, said) = system.run(&system.path("project"));
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("error: missing: python3, pip for python3, a C++20 compiler"),
        "{said}"
    );
    assert!(said.contains("install with `apt-get install -y python3 python3-pip g++"), "{said}");
    assert_eq!(said.lines().count(), 1);
    assert!(!system.path("project/.cargo").exists());
}

#[test]
fn a_python_without_pip_and_a_compiler_without_format_are_named() {
    let system = System::new();
    system.program("apt-get", "exit 1");
    system.program("python3", "exit 1");
    system.program("c++", "case \"$*\" in *format_linux.h*) exit 1;; esac");
    let (code, said) = system.run(&system.path("project"));
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(said, @"error: missing: pip for python3, the headers of fmt (this compiler has no std::format); install with `apt-get install -y python3-pip libfmt-dev`");
}

#[test]
fn a_failed_download_says_what_pip_said_and_leaves_nothing_behind() {
    let system = System::new();
    system.program("c++", "exit 0");
    system.program(
        "python3",
        "case \"$*\" in *download*) echo 'ERROR: No matching distribution found' >&2; exit 1;; esac",
    );
    // An mlx-sys in the cargo cache is not needed either: the project brings one of its own.
    let mlx_c = system.path("project/mlx-sys/src/mlx-c/mlx/c");
    fs::create_dir_all(&mlx_c).unwrap();
    fs::write(mlx_c.join("mlx.h"), "").unwrap();
    fs::write(mlx_c.join("../../CMakeLists.txt"), "GIT_TAG v0.0.1)").unwrap();
    let sys = system.path("project/mlx-sys");
    let manifest = "[package]\nname = \"mlx-sys\"\nversion = \"0.0.1\"\nedition = \"2024\"\n";
    fs::write(sys.join("Cargo.toml"), manifest).unwrap();
    fs::write(sys.join("src/lib.rs"), "").unwrap();
    let own = fs::read_to_string(system.path("project/Cargo.toml")).unwrap();
    let own = format!("{own}[dependencies]\nmlx-sys = {{ path = \"mlx-sys\" }}\n");
    fs::write(system.path("project/Cargo.toml"), own).unwrap();
    let lock = Command::new(env!("CARGO"))
        .args(["generate-lockfile", "--offline"])
        .current_dir(system.path("project"))
        .status()
        .unwrap();
    assert!(lock.success());

    let (code, said) = system.run(&system.path("project"));
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(said, @"error: python3 -m pip download mlx-cpu==0.0.1 failed (exit status: 1): ERROR: No matching distribution found");
    let left: Vec<_> =
        fs::read_dir(system.path("cache")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    assert!(!system.path("project/.cargo").exists());
}
