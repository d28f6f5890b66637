//! Parity cases: a tiny model folder with the numbers that an independent program computed from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

/// One folder.
#[derive(Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub dir: PathBuf,
    /// How far results may be off.
    pub info: Info,
    /// `expected.safetensors`.
    pub arrays: BTreeMap<String, Expected>,
}

/// The part of `case.json` that the tests use.
#[derive(Debug, Deserialize)]
pub struct Info {
    /// As in `config.json`.
    pub model_type: String,
    /// Largest relative difference by array.
    pub tolerance: BTreeMap<String, f64>,
    /// The same for caches of few bits.
    #[serde(default)]
    pub tolerance_kvq: BTreeMap<String, f64>,
    /// What the case exercises.
    #[serde(default)]
    pub features: Vec<String>,
    /// The type of the weights.
    #[serde(default)]
    pub weights: String,
    /// Keys of the config that the family does not honour, and is to say so.
    #[serde(default)]
    pub unread: Vec<String>,
    /// Whether `greedy` must agree to the token.
    #[serde(default)]
    pub greedy_exact: bool,
}

/// One expected array, or one input.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// Values and shape.
    Float(Vec<f32>, Vec<usize>),
    /// Values and shape.
    Int(Vec<i32>, Vec<usize>),
}

impl Case {
    /// Reads `case.json` and `expected.safetensors` of a folder.
    ///
    /// # Errors
    /// Where either is missing or not what it should be.
    pub fn read(dir: &Path) -> Result<Self> {
        let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(dir.join("case.json"))
            .with_context(|| format!("{name}: case.json"))?;
        let info = serde_json::from_str(&text).with_context(|| format!("{name}: case.json"))?;
        let arrays = arrays(&dir.join("expected.safetensors"))?;
        Ok(Self { name, dir: dir.to_path_buf(), info, arrays })
    }

    /// Every folder with a `case.json` under `root`, by name.
    ///
    /// # Errors
    /// Where `root` cannot be listed or a case cannot be read.
    pub fn all(root: &Path) -> Result<Vec<Self>> {
        let mut dirs = Vec::new();
        for entry in std::fs::read_dir(root).with_context(|| root.display().to_string())? {
            let path = entry?.path();
            if path.join("case.json").is_file() {
                dirs.push(path);
            }
        }
        dirs.sort();
        dirs.iter().map(|dir| Self::read(dir)).collect()
    }

    /// The cases of this crate, or those of `$SPECC_PARITY_DIR`.
    pub fn root() -> PathBuf {
        std::env::var_os("SPECC_PARITY_DIR").map_or_else(Self::own, PathBuf::from)
    }

    fn own() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/parity")
    }

    /// Whether it is one of this crate, which lists what its config says in vain.
    pub fn is_own(&self) -> bool {
        self.dir.starts_with(Self::own())
    }

    /// An input or a greedy continuation.
    ///
    /// # Errors
    /// Where it is missing or not of integers.
    pub fn ints(&self, key: &str) -> Result<(&[i32], &[usize])> {
        match self.arrays.get(key) {
            Some(Expected::Int(values, shape)) => Ok((values, shape)),
            _ => bail!("{}: no integers {key}", self.name),
        }
    }

    /// An expected result; none where the case does not have it.
    pub fn floats(&self, key: &str) -> Option<&[f32]> {
        match self.arrays.get(key) {
            Some(Expected::Float(values, _)) => Some(values),
            _ => None,
        }
    }

    /// How far `key` may be off.
    ///
    /// # Errors
    /// Where `case.json` does not say.
    pub fn tolerance(&self, key: &str) -> Result<f64> {
        let of =
            if key.starts_with("kvq") { &self.info.tolerance_kvq } else { &self.info.tolerance };
        of.get(key).copied().with_context(|| format!("{}: no tolerance for {key}", self.name))
    }
}

/// The arrays of a safetensors file, float32 and int32.
///
/// # Errors
/// Where it cannot be read or holds another type.
pub fn arrays(path: &Path) -> Result<BTreeMap<String, Expected>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let file = SafeTensors::deserialize(&bytes).with_context(|| path.display().to_string())?;
    let mut arrays = BTreeMap::new();
    for (key, view) in file.tensors() {
        let words = view.data().chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
        let shape = view.shape().to_vec();
        let value = match view.dtype() {
            Dtype::F32 => Expected::Float(words.map(f32::from_le_bytes).collect(), shape),
            Dtype::I32 => Expected::Int(words.map(i32::from_le_bytes).collect(), shape),
            other => bail!("{}: {key} has type {other:?}", path.display()),
        };
        arrays.insert(key, value);
    }
    Ok(arrays)
}
