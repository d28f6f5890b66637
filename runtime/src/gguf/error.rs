//! What can be wrong with a GGUF file.

use std::path::PathBuf;

/// Why a GGUF file could not be read or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
    /// The bytes are not what the format asks for.
    #[error("{}: at byte {at}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// Expected and found.
        what: String,
    },
    /// A metadata value is missing, of another type, or out of range.
    #[error("{}: metadata `{key}`: {what}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Expected and found.
        what: String,
    },
    /// A tensor is missing, unknown, or of the wrong shape or type.
    #[error("{}: tensor `{tensor}`: {what}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name in the file.
        tensor: String,
        /// Expected and found.
        what: String,
    },
    /// No family maps this architecture.
    #[error("{}: architecture {found} is not supported; known are {known}", path.display())]
    Architecture {
        /// The file.
        path: PathBuf,
        /// `general.architecture`, and what stands against it.
        found: String,
        /// What the families map.
        known: String,
    },
    /// A family's map is wrong in itself.
    #[error("the GGUF map of architecture `{architecture}`: {what}")]
    Map {
        /// The map's architecture.
        architecture: String,
        /// What is wrong.
        what: String,
    },
}

/// The module's results.
pub(super) type Result<T> = std::result::Result<T, GgufError>;
