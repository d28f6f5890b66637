//! The tensors of a folder: names, types, shapes, and where they lie.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Dtype, Header, Note, TensorError};
use crate::Problems;

mod list;

/// A weight file's number within its [`TensorIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A tensor's number within its [`TensorIndex`], in order of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// One stored tensor, as its file's header describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name in the file.
    pub name: Box<str>,
    /// Element type.
    pub dtype: Dtype,
    /// Axes, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// The file that holds it.
    pub file: FileId,
    /// Where its bytes lie in that file.
    pub bytes: Range<u64>,
}

/// One file of weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightFile {
    /// Folder and name.
    pub path: PathBuf,
    /// `format` of the header's metadata (`mlx`, `pt`), when it is given.
    pub format: Option<String>,
}

/// All tensors of a model folder.
///
/// `model.safetensors.index.json`, where there is one, is the allow-list: files and tensors that
/// it does not name are noted and left alone. Without it every `model*.safetensors` is read, and
/// other safetensors files are noted.
#[derive(Debug, Clone, Default)]
pub struct TensorIndex {
    folder: PathBuf,
    files: Vec<WeightFile>,
    tensors: Vec<TensorInfo>,
    notes: Vec<Note>,
}

impl TensorIndex {
    /// Reads the headers of the weights in `folder`.
    ///
    /// # Errors
    /// All that is wrong with the files: see [`TensorError`].
    pub fn open(folder: &Path) -> Result<TensorIndex, Problems<TensorError>> {
        let list = list::weight_files(folder)?;
        let mut errors = list.errors;
        let mut index =
            TensorIndex { folder: folder.to_owned(), notes: list.notes, ..Self::default() };
        for path in list.files {
            match Header::read(&path) {
                Ok(header) => index.add(path, header, list.allowed.as_ref()),
                Err(found) => errors.extend(found),
            }
        }
        index.tensors.sort_by(|a, b| (&a.name, a.file).cmp(&(&b.name, b.file)));
        for pair in index.tensors.windows(2) {
            if let [a, b] = pair
                && a.name == b.name
            {
                errors.push(TensorError::Twice {
                    tensor: a.name.to_string(),
                    first: index.file_path(a.file).to_owned(),
                    second: index.file_path(b.file).to_owned(),
                });
            }
        }
        // Without every header, what the index misses cannot be told from what was not read.
        if errors.is_empty()
            && let Some(allowed) = &list.allowed
        {
            index.check_allowed(allowed, &mut errors);
        }
        Problems::check(errors, index)
    }

    /// An index of given tensors that lie in no file, for tests and tools.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Dtype, Vec<usize>)>) -> Self {
        let tensors = tensors.into_iter().map(|(name, dtype, shape)| TensorInfo {
            name: name.into(),
            dtype,
            shape,
            file: FileId(0),
            bytes: 0..0,
        });
        let mut tensors: Vec<TensorInfo> = tensors.collect();
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        tensors.dedup_by(|a, b| a.name == b.name);
        TensorIndex { tensors, ..Self::default() }
    }

    /// The model folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files that were read, [`FileId`] by position.
    pub fn files(&self) -> &[WeightFile] {
        &self.files
    }

    /// All tensors in order of names, [`TensorId`] by position.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of that number.
    pub fn get(&self, id: TensorId) -> Option<&TensorInfo> {
        self.tensors.get(id.0 as usize)
    }

    /// The tensor of that name.
    pub fn find(&self, name: &str) -> Option<(TensorId, &TensorInfo)> {
        let at = self.tensors.binary_search_by(|t| (*t.name).cmp(name)).ok()?;
        self.tensors.get(at).map(|t| (TensorId(at as u32), t))
    }

    /// What was passed over.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The path of a file; empty for a number that is not of this index.
    pub fn file_path(&self, id: FileId) -> &Path {
        self.files.get(id.0 as usize).map_or(Path::new(""), |f| &f.path)
    }

    /// Bytes of all tensors together.
    pub fn total_bytes(&self) -> u64 {
        self.tensors.iter().map(|t| t.bytes.end - t.bytes.start).sum()
    }

    fn add(&mut self, path: PathBuf, header: Header, allowed: Option<&Allowed>) {
        let id = FileId(self.files.len() as u32);
        let mut stray: Vec<Box<str>> = Vec::new();
        for entry in header.entries {
            match allowed {
                Some(allowed) if !allowed.contains_key(&*entry.name) => stray.push(entry.name),
                // A copy in a shard that the index does not name for it is kept, so that it is
                // reported as being there twice.
                _ => self.tensors.push(TensorInfo {
                    name: entry.name,
                    dtype: entry.dtype,
                    shape: entry.shape,
                    file: id,
                    bytes: entry.bytes,
                }),
            }
        }
        if let Some(first) = stray.iter().min() {
            let first = first.to_string();
            self.notes.push(Note::StrayTensors { file: path.clone(), count: stray.len(), first });
        }
        let format = header.metadata.get("format").cloned();
        self.files.push(WeightFile { path, format });
    }

    fn check_allowed(&self, allowed: &Allowed, errors: &mut Vec<TensorError>) {
        let shards: HashMap<&str, FileId> = self
            .files
            .iter()
            .enumerate()
            .filter_map(|(at, f)| Some((f.path.file_name()?.to_str()?, FileId(at as u32))))
            .collect();
        let mut wrong: Vec<(&str, &str, String)> = Vec::new();
        for t in &self.tensors {
            let Some((name, shard)) = allowed.get_key_value(&t.name) else { continue };
            if shards.get(&**shard) != Some(&t.file) {
                let found = format!("it in {}", self.file_path(t.file).display());
                wrong.push((name, shard, found));
            }
        }
        // Names are there once, and each is allowed: with as many of both, none is missing.
        if self.tensors.len() != allowed.len() {
            for (name, shard) in allowed.iter().filter(|(name, _)| self.find(name).is_none()) {
                wrong.push((name, shard, "it in no shard".to_owned()));
            }
        }
        wrong.sort();
        for (tensor, shard, found) in wrong {
            let (tensor, file) = (tensor.to_owned(), self.folder.join(shard));
            errors.push(TensorError::NotInShard { tensor, file, found });
        }
    }
}

/// Tensor name to file name, from the index file.
type Allowed = HashMap<Box<str>, Box<str>>;
