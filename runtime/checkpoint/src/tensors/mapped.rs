//! A folder's files in memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use memmap2::Mmap;

use super::{TensorError, TensorIndex, TensorInfo};

/// The files of a folder mapped into memory, each when first asked for.
///
/// The bytes are little-endian and need not be aligned for the element type.
#[derive(Debug)]
pub struct Mapped {
    files: Vec<(PathBuf, OnceLock<Mmap>)>,
}

impl Mapped {
    /// Prepares the files of `index`; nothing is opened yet.
    pub fn new(index: &TensorIndex) -> Self {
        let files = index.files().iter().map(|f| (f.path.clone(), OnceLock::new())).collect();
        Mapped { files }
    }

    /// The stored bytes of `tensor`, which must come from the index that this was made from.
    ///
    /// # Errors
    /// When the file cannot be mapped or has become shorter than its header says.
    pub fn bytes(&self, tensor: &TensorInfo) -> Result<&[u8], TensorError> {
        let Some((path, slot)) = self.files.get(tensor.file.0 as usize) else {
            return Err(TensorError::Io {
                file: PathBuf::new(),
                reason: format!("tensor {:?} belongs to another folder", tensor.name),
            });
        };
        let map = match slot.get() {
            Some(map) => map,
            None => {
                let map = map_file(path)?;
                slot.get_or_init(|| map)
            }
        };
        let range =
            usize::try_from(tensor.bytes.start).ok()..usize::try_from(tensor.bytes.end).ok();
        let found = match (range.start, range.end) {
            (Some(start), Some(end)) => map.get(start..end),
            _ => None,
        };
        found.ok_or_else(|| TensorError::Entry {
            file: path.clone(),
            tensor: tensor.name.to_string(),
            expected: format!("a file of at least {} bytes", tensor.bytes.end),
            found: format!("{} bytes", map.len()),
        })
    }
}

fn map_file(path: &Path) -> Result<Mmap, TensorError> {
    let io = |e: std::io::Error| TensorError::Io { file: path.to_owned(), reason: e.to_string() };
    let file = File::open(path).map_err(io)?;
    // SAFETY: the map is read-only and private to this process's view; weight files are not
    // written while a model is loaded. A truncation by another process would raise SIGBUS, as for
    // every program that maps weights.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) };
    map.map_err(io)
}
