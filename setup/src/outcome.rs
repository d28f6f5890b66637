//! What the set-up reports when it has succeeded.

use std::fmt;
use std::path::PathBuf;

use crate::Mlx;
use crate::tools::{Manager, Tool, is_root, remedy};

/// What `prepare` found or did. Its `Display` is the report for the user, a line or a few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// On macOS mlx-sys builds MLX itself.
    NotNeeded,
    /// MLX is ready for the project.
    Ready(Ready),
}

/// An MLX that is ready for a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Which build.
    pub mlx: Mlx,
    /// MLX's version.
    pub version: String,
    /// The folder of `libmlx.so`.
    pub lib: PathBuf,
    /// OpenBLAS's library, where MLX's CPU build runs on it.
    pub openblas: Option<PathBuf>,
    /// The project's cargo configuration.
    pub config: PathBuf,
    /// The keys that were changed in it; empty when all was in place.
    pub changed: Vec<String>,
    /// What the user should know or do, a line each.
    pub notes: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::NotNeeded => f.write_str("nothing to do: on macOS mlx-sys builds MLX itself"),
            Outcome::Ready(ready) => ready.fmt(f),
        }
    }
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let build = match (self.mlx, &self.openblas) {
            (Mlx::Cuda, _) => "CUDA",
            (Mlx::Cpu, Some(_)) => "CPU, OpenBLAS",
            (Mlx::Cpu, None) => "CPU, its own BLAS",
        };
        write!(f, "MLX {} ({build}) is ", self.version)?;
        if self.changed.is_empty() {
            f.write_str("in place")?;
        } else {
            let (file, keys) = (self.config.display(), self.changed.join(", "));
            write!(f, "ready; changed in {file}: {keys}")?;
        }
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        Ok(())
    }
}

/// The line that says what OpenBLAS would bring.
pub(crate) fn openblas_note(manager: Option<Manager>, root: bool) -> String {
    let remedy = remedy(manager, root, &[Tool::OpenBlas]);
    format!(
        "OpenBLAS is not installed; with it prompts are read about 17 times faster on the CPU: \
         {remedy} and run this again"
    )
}

/// The same for this system.
pub(crate) fn openblas_note_here() -> String {
    openblas_note(Manager::detect(), is_root())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_read_well() {
        let mut ready = Ready {
            mlx: Mlx::Cpu,
            version: "0.32.2".into(),
            lib: "/cache/mlx/lib".into(),
            openblas: Some("/lib/libopenblas.so.0".into()),
            config: "/project/.cargo/config.toml".into(),
            changed: vec!["target.x.rustflags".into(), "target.x.mlx".into()],
            notes: Vec::new(),
        };
        let report = |ready: &Ready| Outcome::Ready(ready.clone()).to_string();
        insta::assert_snapshot!(report(&ready), @"MLX 0.32.2 (CPU, OpenBLAS) is ready; changed in /project/.cargo/config.toml: target.x.rustflags, target.x.mlx");
        ready.changed.clear();
        insta::assert_snapshot!(report(&ready), @"MLX 0.32.2 (CPU, OpenBLAS) is in place");
        ready.openblas = None;
        ready.notes.push(openblas_note(Some(Manager::Apt), false));
        insta::assert_snapshot!(report(&ready), @r"
MLX 0.32.2 (CPU, its own BLAS) is in place
note: OpenBLAS is not installed; with it prompts are read about 17 times faster on the CPU: install with `sudo apt-get install -y libopenblas-dev` and run this again
");
        insta::assert_snapshot!(Outcome::NotNeeded, @"nothing to do: on macOS mlx-sys builds MLX itself");
    }
}
