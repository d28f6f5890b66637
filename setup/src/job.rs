//! One run of the set-up: which cache entries a project needs, and how each is made.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{self, Cache, Compare, Held};
use crate::cargo_config::{self, Override};
use crate::outcome::{Ready, openblas_note_here};
use crate::progress::Progress;
use crate::project::{self, MlxSys};
use crate::tools::{self, Tool};
use crate::wheel::Dependencies;
use crate::{Error, Mlx, Options, bindings, blas, native, wheel};

/// The libclang that is fetched where the system has none; bindgen needs one.
const LIBCLANG: &str = "18.1.1";

pub(crate) struct Job {
    cache: Cache,
    progress: Progress,
    compare: Compare,
    install: bool,
    dir: PathBuf,
    host: String,
    mlx: Mlx,
}

impl Job {
    pub(crate) fn new(
        dir: PathBuf,
        host: String,
        mlx: Mlx,
        options: &Options,
    ) -> Result<Self, Error> {
        Ok(Self {
            cache: Cache::open(options.cache.as_deref())?,
            progress: Progress::new(options.progress),
            compare: if options.verify { Compare::Sums } else { Compare::Sizes },
            install: options.install,
            dir,
            host,
            mlx,
        })
    }

    pub(crate) fn run(&self) -> Result<Ready, Error> {
        let mlx_sys = project::mlx_sys(&self.dir)?;
        let arch = self.host.split('-').next().unwrap_or_default();
        let key = mlx_sys.key(&self.dir)?;
        let native = format!("mlxc-{key}-{}-{arch}-{}", self.mlx.wheel(), native::recipe());
        if !self.whole(&native) {
            self.make_native(&mlx_sys, &native)?;
        }
        let version = self.version_of(&native)?;
        let wheel = self.wheel_name(&version);
        let openblas = if self.mlx == Mlx::Cpu { tools::find_openblas() } else { None };
        let with_openblas = format!("{wheel}-openblas-{}", blas::recipe());
        if !self.whole(&wheel) || (openblas.is_some() && !self.whole(&with_openblas)) {
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
        let written = cargo_config::write(&self.dir, &wanted)?;
        let mut notes = written.notes;
        if self.mlx == Mlx::Cpu && openblas.is_none() {
            notes.push(openblas_note_here());
        }
        let (mlx, changed, config) = (self.mlx, written.changed, written.path);
        Ok(Ready { mlx, version, lib, openblas, config, changed, notes })
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

    fn make_native(&self, mlx_sys: &MlxSys, name: &str) -> Result<(), Error> {
        let mut lock = self.cache.lock()?;
        let held = lock.hold(&self.progress)?;
        if self.whole(name) {
            return Ok(());
        }
        self.ensure_tools(&held)?;
        let mlx_c = mlx_sys.mlx_c(&self.dir, Some(&self.cache))?;
        let version = project::pinned_mlx(&mlx_c)?;
        self.make_wheel(&held, &version)?;
        let include = self.cache.entry(&self.wheel_name(&version)).join("mlx/include");
        let libclang = match bindings::system_libclang() {
            Some(path) => path,
            None => self.make_libclang(&held)?,
        };
        let bindgen = self.make_bindgen(&held)?;
        self.cache.make(&held, name, |out| {
            native::compile(&mlx_c, &include, &self.host, out, &self.progress)?;
            bindings::write(&bindgen, &libclang, &mlx_c, &self.host, out)?;
            let path = out.join("mlx-version");
            fs::write(&path, &version).map_err(Error::io(&path, "write"))
        })?;
        Ok(())
    }

    /// Checks for every tool at once; installs what may be installed, and names the rest.
    fn ensure_tools(&self, held: &Held<'_>) -> Result<(), Error> {
        let scratch = self.cache.scratch(held)?;
        let look = || -> Result<Vec<Tool>, Error> {
            let mut missing = tools::missing_python();
            missing.extend(native::missing(&self.host, scratch.path())?);
            Ok(missing)
        };
        let mut missing = look()?;
        if !missing.is_empty() && tools::try_install(&missing, self.install, &self.progress)? {
            missing = look()?;
        }
        tools::require(&missing)?;
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
        tools::require(&tools::missing_python())?;
        let nvidia = if self.mlx == Mlx::Cuda { tools::find_nvidia() } else { None };
        let dependencies = match (self.mlx, &nvidia) {
            (Mlx::Cuda, None) => Dependencies::Too,
            _ => Dependencies::None,
        };
        self.cache.make(held, &name, |out| {
            wheel::fetch(self.mlx.wheel(), version, dependencies, out, &self.progress)?;
            match &nvidia {
                // Where libmlx.so looks for NVIDIA's libraries.
                Some(from) => link(from, &out.join("nvidia")),
                None => Ok(()),
            }
        })?;
        Ok(())
    }

    /// A libmlx.so beside which a BLAS that leads to OpenBLAS stands under the name of the wheel's own, where libmlx.so
    /// looks first.
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
                let folder = file.iter().next().unwrap_or_default().to_string_lossy();
                if !folder.ends_with(".libs") && !file.starts_with("mlx/lib") {
                    continue;
                }
                let (source, to) = (from.join(&file), out.join(&file));
                let parent = to.parent().unwrap_or(out);
                fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
                let file_name = file.file_name().unwrap_or_default().to_string_lossy();
                if file_name.starts_with("libblas") {
                    blas::compile(openblas, &self.host, &to)?;
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
            self.cache.make(held, &name, |out| {
                wheel::fetch("libclang", LIBCLANG, Dependencies::None, out, &self.progress)
            })?;
        }
        let native = format!("libclang-{LIBCLANG}.data/platlib/clang/native");
        Ok(self.cache.entry(&name).join(native))
    }

    /// The program that makes bindings.
    fn make_bindgen(&self, held: &Held<'_>) -> Result<PathBuf, Error> {
        let name = format!("bindgen-{}-{}", bindings::BINDGEN, native::recipe());
        if !self.whole(&name) {
            self.cache.make(held, &name, |out| bindings::compile(out, &self.progress))?;
        }
        Ok(self.cache.entry(&name).join("bindings"))
    }
}

fn link(to: &Path, at: &Path) -> Result<(), Error> {
    std::os::unix::fs::symlink(to, at).map_err(Error::io(at, "link"))
}

fn text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::CachePath { path: path.to_owned() })
}
