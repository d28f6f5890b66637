//! What can go wrong while MLX is prepared; every message is one line.

use std::io;
use std::path::PathBuf;

/// A failure of the set-up, worded for the person who ran it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Tools or headers are not installed.
    #[error("missing: {what}; {remedy}")]
    Missing {
        /// The missing parts, separated by commas.
        what: String,
        /// How to install them: the command, where the package manager is known.
        remedy: String,
    },
    /// The folder given holds no cargo project.
    #[error("{dir}: no Cargo.toml here; give the folder of a cargo project")]
    NoProject {
        /// The folder given.
        dir: PathBuf,
    },
    /// MLX has no build for this system.
    #[error("MLX has no build for {system}: expected Linux with glibc, or macOS")]
    System {
        /// The host triple.
        system: String,
    },
    /// A program ran and failed.
    #[error("{program} failed ({status}): {output}")]
    Program {
        /// The command, shortened.
        program: String,
        /// Its exit status.
        status: String,
        /// The lines of its output that say why.
        output: String,
    },
    /// A file or folder could not be read or written.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, as an infinitive.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A file holds something else than it should.
    #[error("{path}: expected {expected}, found {found}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// The cache folder cannot be named in a linker argument or in a TOML file.
    #[error(
        "{path}: a cache folder must be valid UTF-8 without ':'; set SPECC_CACHE to another one"
    )]
    CachePath {
        /// The cache folder.
        path: PathBuf,
    },
    /// Neither SPECC_CACHE nor HOME says where the cache is.
    #[error("no cache folder: set SPECC_CACHE or HOME")]
    NoCache,
}

impl Error {
    /// Wraps an I/O error with its path; for `map_err`.
    pub(crate) fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, action, source }
    }
}
