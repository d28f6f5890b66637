//! What is wrong with a folder's tensors, and what is only worth a note.

use std::path::PathBuf;

use thiserror::Error;

/// What is wrong with a folder's weight files.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// The operating system refused.
    #[error("{}: {reason}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The folder holds nothing to load.
    #[error("{}: no weights: expected model.safetensors.index.json or model*.safetensors, found {found}", folder.display())]
    NoWeights {
        /// The model folder.
        folder: PathBuf,
        /// What lies there instead.
        found: String,
    },
    /// The header as a whole cannot be read.
    #[error("{}: safetensors header: expected {expected}, found {found}", file.display())]
    Header {
        /// The safetensors file.
        file: PathBuf,
        /// What a good header has here.
        expected: String,
        /// What this one has.
        found: String,
    },
    /// One tensor's entry is wrong.
    #[error("{}: tensor {tensor:?}: expected {expected}, found {found}", file.display())]
    Entry {
        /// The safetensors file.
        file: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What a good entry has here.
        expected: String,
        /// What this one has.
        found: String,
    },
    /// The index file cannot be read.
    #[error("{}: expected {expected}, found {found}", file.display())]
    Index {
        /// model.safetensors.index.json
        file: PathBuf,
        /// What a good index has here.
        expected: String,
        /// What this one has.
        found: String,
    },
    /// The same name is in two files.
    #[error("tensor {tensor:?} is in two files: {} and {}", first.display(), second.display())]
    Twice {
        /// The tensor's name.
        tensor: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A shard that the index or the numbering of the others asks for is not there.
    #[error("{}: missing: {wanted_by} names it{}", file.display(), if *tensors == 0 { String::new() } else { format!(" for {tensors} tensors") })]
    MissingFile {
        /// The missing file.
        file: PathBuf,
        /// Who names it.
        wanted_by: String,
        /// How many tensors it should hold, 0 when unknown.
        tensors: usize,
    },
    /// The index names a tensor that its shard does not hold.
    #[error("tensor {tensor:?}: the index says {}, found {found}", file.display())]
    NotInShard {
        /// The tensor's name.
        tensor: String,
        /// The shard that the index names.
        file: PathBuf,
        /// Where it is, in words.
        found: String,
    },
}

/// What a reader should know about a folder without its being wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Note {
    /// A weight file that the index does not name; it is not read.
    #[error("{}: ignored, the index does not name it", file.display())]
    StrayFile {
        /// The file.
        file: PathBuf,
    },
    /// A weight file of another name in a folder without an index; it is not read.
    #[error("{}: ignored, without an index model*.safetensors alone are read", file.display())]
    OtherFile {
        /// The file.
        file: PathBuf,
    },
    /// Tensors that a shard holds and the index does not name; they are not used.
    #[error("{}: {} ignored, the index does not name {} (first: {first:?})", file.display(), if *count == 1 { "a tensor".to_owned() } else { format!("{count} tensors") }, if *count == 1 { "it" } else { "them" })]
    StrayTensors {
        /// The shard.
        file: PathBuf,
        /// How many.
        count: usize,
        /// The first of them by name.
        first: String,
    },
}
