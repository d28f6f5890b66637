//! Caches in files: a request's caches and the tokens that they hold.
//!
//! ```text
//! "SPECCKV1"   8 bytes
//! u64          bytes of the header, little endian
//! u64          the first 8 bytes of the header's SHA-256
//! header       JSON: versions, whose caches they are, tokens, and a description of each array
//! arrays       row-major, little endian, each at a multiple of 64
//! ```
//! A file is written beside its name, synced and renamed. Loading checks every number and every
//! hash before a set is made: a file gives all of its caches or none.

mod arrays;
mod check;
mod header;
mod load;
mod save;

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Whose caches a file holds. All of it must agree when the file is loaded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The model, such as its family's name.
    pub model: String,
    /// A hash of its configuration.
    pub config: String,
    /// What tells its weights from others of the same configuration.
    pub weights: String,
    /// A hash of its tokenizer; empty without one.
    pub tokenizer: String,
    /// Adapters in use; empty without.
    pub namespace: String,
    /// The codecs that write it.
    pub codecs: String,
}

/// Codecs that save caches. A file names those that wrote it and is read by the same.
#[derive(Debug, PartialEq, Eq)]
pub struct StateCodecs {
    /// Their name in files.
    pub id: &'static str,
}

/// What saves every cache that needs no codecs of its own.
pub static DEFAULT_CODECS: StateCodecs = StateCodecs { id: "default" };

/// What saves latents under a scheme or in pages, and plain ones too.
pub static LATENT_CODECS: StateCodecs = StateCodecs { id: "latent" };

/// Why a file gives no caches.
#[derive(Debug, Error)]
#[error("{}: {what}", file.display())]
pub struct PersistError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: PersistErrorKind,
}

/// What is wrong with a file of caches.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PersistErrorKind {
    /// The operating system refused.
    #[error("{0}")]
    Io(String),
    /// It is something else.
    #[error("not a file of caches")]
    Kind,
    /// It is of another version.
    #[error("version {found} of the format; expected {expected}")]
    Version {
        /// Ours.
        expected: u32,
        /// The file's.
        found: u32,
    },
    /// It ends too early.
    #[error("truncated: expected {expected} bytes, found {found}")]
    Truncated {
        /// Bytes that the header asks for.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// Bytes have changed since it was written.
    #[error("damaged: {0} is not what was written")]
    Damaged(String),
    /// It holds the caches of something else.
    #[error("of another {what}: expected {expected:?}, found {found:?}")]
    Foreign {
        /// What differs.
        what: &'static str,
        /// Ours.
        expected: String,
        /// The file's.
        found: String,
    },
    /// It holds the caches of a model of the same configuration and other weights.
    #[error("saved with other weights: expected those of {expected:?}, found {found:?}")]
    Weights {
        /// Ours.
        expected: String,
        /// The file's.
        found: String,
    },
    /// Its header makes no sense.
    #[error("header: {what}: expected {expected}, found {found}")]
    Header {
        /// The place.
        what: String,
        /// What a good one has there.
        expected: String,
        /// What this one has.
        found: String,
    },
}

const MAGIC: &[u8; 8] = b"SPECCKV1";
const VERSION: u32 = 2;
const ALIGN: u64 = 64;
/// Headers describe arrays; a larger one is no header.
const MAX_HEADER: u64 = 64 << 20;

fn io(file: &Path) -> impl Fn(std::io::Error) -> PersistError + '_ {
    |error| PersistError { file: file.to_owned(), what: PersistErrorKind::Io(error.to_string()) }
}

fn aligned(at: u64) -> u64 {
    at.div_ceil(ALIGN) * ALIGN
}
