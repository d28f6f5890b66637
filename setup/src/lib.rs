//! Prepares MLX on Linux for a cargo project.
//!
//! mlx-sys builds MLX itself on macOS and links Apple's frameworks; on Linux its build script cannot work. This
//! crate does that script's work once per machine and tells cargo, in the project's `.cargo/config.toml`, to use
//! the outcome instead: MLX from its wheel, mlx-c compiled from mlx-sys's own package, and bindings made from
//! mlx-c's headers. Everything is kept in a cache keyed by versions; where all is in place nothing is done.
//!
//! ```no_run
//! use specc_setup::{Mlx, Options, prepare};
//!
//! println!("{}", prepare("my-project".as_ref(), Mlx::Cpu, &Options::default())?);
//! # Ok::<(), specc_setup::Error>(())
//! ```

mod bindings;
mod blas;
mod cache;
mod cargo_config;
mod error;
mod job;
mod native;
mod outcome;
mod progress;
mod project;
mod tools;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::Error;
pub use outcome::{Outcome, Ready};
pub use project::MLX_SYS;

/// Which of MLX's builds for Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Mlx {
    /// The CPU build (wheel `mlx-cpu`).
    #[default]
    Cpu,
    /// The build for CUDA 13 (wheel `mlx-cuda-13`), with NVIDIA's libraries.
    Cuda,
}

impl Mlx {
    pub(crate) fn wheel(self) -> &'static str {
        match self {
            Mlx::Cpu => "mlx-cpu",
            Mlx::Cuda => "mlx-cuda-13",
        }
    }
}

/// How to prepare.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cache folder; `None` is `$SPECC_CACHE`, or `~/.cache/specc`.
    pub cache: Option<PathBuf>,
    /// Whether missing packages may be installed, which happens for root where apt-get is present.
    pub install: bool,
    /// Whether steps are reported on standard error.
    pub progress: bool,
    /// Whether cached files are compared with their SHA-256 sums rather than their sizes alone.
    pub verify: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache: None, install: true, progress: true, verify: false }
    }
}

/// The root of the cargo workspace around the current folder.
///
/// # Errors
/// `NoProject` outside any cargo project.
pub fn workspace_root() -> Result<PathBuf, Error> {
    project::workspace_root()
}

/// Prepares the cargo project in `dir` to build and run with MLX on Linux.
///
/// # Errors
/// A missing tool, named with the command that installs it; a failed download or compilation; a config file that
/// is not what cargo accepts.
pub fn prepare(dir: &Path, mlx: Mlx, options: &Options) -> Result<Outcome, Error> {
    if cfg!(target_os = "macos") {
        return Ok(Outcome::NotNeeded);
    }
    if !dir.join("Cargo.toml").is_file() {
        return Err(Error::NoProject { dir: dir.to_owned() });
    }
    let dir = fs::canonicalize(dir).map_err(Error::io(dir, "find"))?;
    let host = project::host(&dir)?;
    if !host.ends_with("-linux-gnu") {
        return Err(Error::System { system: host });
    }
    job::Job::new(dir, host, mlx, options)?.run().map(Outcome::Ready)
}
