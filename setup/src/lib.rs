//! Prepares MLX on Linux for a cargo project.
//!
//! mlx-sys builds MLX itself on macOS and links Apple's frameworks; on Linux its build script cannot work. This
//! crate does that script's work once per machine and tells cargo, in the project's `.cargo/config.toml`, to use
//! the outcome instead: MLX from its wheel, mlx-c compiled from mlx-sys's own package, and bindings made from
//! mlx-c's headers. Everything is kept in a cache keyed by versions; where all is in place nothing is done.

mod cache;
mod cargo_config;
mod error;
mod native;
mod progress;
mod project;
mod tools;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::Error;
pub use project::MLX_SYS;

use cache::{Cache, Compare, Held};
use cargo_config::Override;
use progress::Progress;
use tools::Tool;

/// The libclang that is fetched where the system has none; bindgen needs one.
const LIBCLANG: &str = "18.1.1";

/// Which of MLX's builds for Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Mlx {
    /// The CPU build (wheel `mlx-cpu`).
    #[default]
    Cpu,
    /// The build for CUDA 13 (wheel `mlx-cuda-13`).
    Cuda,
}

impl Mlx {
    fn wheel(self) -> &'static str {
        match self {
            Mlx::Cpu => "mlx-cpu",
            Mlx::Cuda => "mlx-cuda-13",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mlx::Cpu => "cpu",
            Mlx::Cuda => "cuda",
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

/// What `prepare` found or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// On macOS mlx-sys builds MLX itself.
    NotNeeded,
    /// MLX is ready for the project.
    Ready {
        /// MLX's version.
        version: String,
        /// The folder of `libmlx.so`.
        lib: PathBuf,
        /// OpenBLAS's library, where MLX's CPU build runs on it.
        openblas: Option<PathBuf>,
        /// The project's cargo configuration.
        config: PathBuf,
        /// The keys that were changed in it; empty when all was in place.
        changed: Vec<String>,
    },
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
/// Call it before the program starts threads of its own: while bindings are made, LIBCLANG_PATH is set.
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
    let job = Job {
        cache: Cache::open(options.cache.as_deref())?,
        progress: Progress::new(options.progress),
        compare: if options.verify { Compare::Sums } else { Compare::Sizes },
        install: options.install,
        dir,
        host,
        mlx,
    };
    job.run()
}

struct Job {
    cache: Cache,
    progress: Progress,
    compare: Compare,
    install: bool,
    dir: PathBuf,
    host: String,
    mlx: Mlx,
}

impl Job {
    fn run(&self) -> Result<Outcome, Error> {
        let mlx_sys = project::mlx_sys(&self.dir)?;
        let arch = self.host.split('-').next().unwrap_or_default();
        let native = format!(
            "mlxc-{}-{}-{arch}-{}",
            mlx_sys.key(&self.dir)?,
            self.mlx.name(),
            native::recipe()
        );
        if !self.whole(&native) {
            self.make_native(&mlx_sys, &native)?;
        }
        let version = self.version_of(&native)?;
        let wheel = self.wheel_name(&version);
        let openblas = if self.mlx == Mlx::Cpu { tools::find_openblas() } else { None };
        let with_openblas = format!("{wheel}-openblas");
        let is_whole = self.whole(&wheel);
        if !is_whole || (openblas.is_some() && !self.whole(&with_openblas)) {
            let mut lock = self.cache.lock()?;
            let held = lock.hold(&self.progress)?;
            self.make_wheel(&held, &version)?;
            if let Some(openblas) = &openblas {
                self.make_with_openblas(&held, &wheel, &with_openblas, openblas)?;
            }
        }
        let entry = if openblas.is_some() { &with_openblas } else { &wheel };
        let lib = self.cache.entry(entry).join("mlx/lib");
        let wanted = Override {
            host: self.host.clone(),
            mlxc: text(&self.cache.entry(&native))?,
            lib: text(&lib)?,
            undefined: self.mlx == Mlx::Cuda,
        };
        let changed = cargo_config::write(&self.dir, &wanted)?;
        let config = cargo_config::path(&self.dir);
        Ok(Outcome::Ready { version, lib, openblas, config, changed })
    }

    fn whole(&self, entry: &str) -> bool {
        self.cache.is_whole(entry, self.compare)
    }

    fn wheel_name(&self, version: &str) -> String {
        format!("{}-{version}", self.mlx.wheel())
    }

    /// The MLX version that a compiled mlx-c belongs to.
    fn version_of(&self, native: &str) -> Result<String, Error> {
        let path = self.cache.entry(native).join("mlx-version");
        fs::read_to_string(&path).map_err(Error::io(&path, "read"))
    }

    fn make_native(&self, mlx_sys: &project::MlxSys, name: &str) -> Result<(), Error> {
        let mut lock = self.cache.lock()?;
        let held = lock.hold(&self.progress)?;
        if self.whole(name) {
            return Ok(());
        }
        self.ensure_tools()?;
        let mlx_c = mlx_sys.mlx_c(&self.dir, Some(&self.cache))?;
        let version = project::pinned_mlx(&mlx_c)?;
        self.make_wheel(&held, &version)?;
        let include = self.cache.entry(&self.wheel_name(&version)).join("mlx/include");
        let libclang = match native::system_libclang() {
            Some(path) => path,
            None => self.make_libclang(&held)?,
        };
        self.cache.make(&held, name, |out| {
            native::compile(&mlx_c, &include, &self.host, out, &self.progress)?;
            native::bind(&mlx_c, &self.host, &libclang, out, &self.progress)?;
            let path = out.join("mlx-version");
            fs::write(&path, &version).map_err(Error::io(&path, "write"))
        })?;
        Ok(())
    }

    /// Checks for every tool at once; installs what may be installed, and names the rest.
    fn ensure_tools(&self) -> Result<(), Error> {
        let root = self.cache.root();
        let scratch = tempfile::tempdir_in(root).map_err(Error::io(root, "create a folder in"))?;
        let mut missing = tools::missing_python();
        missing.extend(native::missing(&self.host, scratch.path())?);
        if !missing.is_empty() && tools::try_install(&missing, self.install, &self.progress)? {
            missing = tools::missing_python();
            missing.extend(native::missing(&self.host, scratch.path())?);
        }
        native::require(&missing)?;
        if self.mlx == Mlx::Cpu && tools::find_openblas().is_none() {
            // MLX works without it, so a failed attempt is no error; `run` looks again.
            if let Err(e) = tools::try_install(&[Tool::OpenBlas], self.install, &self.progress) {
                self.progress.say(&format!("OpenBLAS was not installed: {e}"));
            }
        }
        Ok(())
    }

    fn make_wheel(&self, held: &Held<'_>, version: &str) -> Result<(), Error> {
        let name = self.wheel_name(version);
        if self.whole(&name) {
            return Ok(());
        }
        native::require(&tools::missing_python())?;
        self.cache.make(held, &name, |out| {
            wheel::fetch(self.mlx.wheel(), version, out, &self.progress)
        })?;
        Ok(())
    }

    /// A libmlx.so beside which OpenBLAS stands under the name of the wheel's own BLAS: libmlx.so looks there first.
    fn make_with_openblas(
        &self,
        held: &Held<'_>,
        wheel: &str,
        name: &str,
        openblas: &Path,
    ) -> Result<(), Error> {
        if self.whole(name) {
            return Ok(());
        }
        let from = self.cache.entry(wheel);
        self.cache.make(held, name, |out| {
            let mut replaced = false;
            for file in cache::files_below(&from)? {
                let folder = file.iter().next().unwrap_or_default().to_string_lossy().into_owned();
                if !folder.ends_with(".libs") && !file.starts_with("mlx/lib") {
                    continue;
                }
                let (source, to) = (from.join(&file), out.join(&file));
                let parent = to.parent().unwrap_or(out);
                fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
                let file_name = file.file_name().unwrap_or_default().to_string_lossy();
                if file_name.starts_with("libblas") {
                    std::os::unix::fs::symlink(openblas, &to).map_err(Error::io(&to, "link"))?;
                    replaced = true;
                } else if fs::hard_link(&source, &to).is_err() {
                    fs::copy(&source, &to).map_err(Error::io(&to, "copy to"))?;
                }
            }
            if replaced {
                return Ok(());
            }
            Err(Error::Content {
                path: from.clone(),
                expected: "a library libblas* beside libmlx.so".into(),
                found: "none".into(),
            })
        })?;
        Ok(())
    }

    fn make_libclang(&self, held: &Held<'_>) -> Result<PathBuf, Error> {
        let name = format!("libclang-{LIBCLANG}");
        if !self.whole(&name) {
            self.cache
                .make(held, &name, |out| wheel::fetch("libclang", LIBCLANG, out, &self.progress))?;
        }
        let native = format!("libclang-{LIBCLANG}.data/platlib/clang/native");
        Ok(self.cache.entry(&name).join(native))
    }
}

fn text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::CachePath { path: path.to_owned() })
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{self:?}")
    }
}
