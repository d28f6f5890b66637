//! Safetensors files: their headers, the folder's index, and mapped bytes.
//!
//! Only headers are read until [`Mapped::bytes`] asks for a tensor.

mod dtype;
mod error;
mod folder;
mod header;
mod mapped;

pub use dtype::Dtype;
pub use error::{Note, TensorError};
pub use folder::{FileId, TensorId, TensorIndex, TensorInfo, WeightFile};
pub use header::{Entry, Header, MAX_HEADER_BYTES};
pub use mapped::Mapped;
