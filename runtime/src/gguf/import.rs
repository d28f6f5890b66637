//! From one GGUF file to a model folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::config::{self, Keys};
use super::error::{GgufError, Result};
use super::map::GgufMap;
use super::plan::{self, FloatType, Form};
use super::reader::Gguf;
use super::tokenizer;
use super::write;

/// Hears how far an import is: bytes of tensors done, and of all.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// What an import wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportReport {
    /// `general.architecture`.
    pub architecture: String,
    /// Tensors in the file that are part of the model.
    pub tensors: usize,
    /// How many of them kept their quantisation.
    pub quantised: usize,
    /// The type of all other values.
    pub float_type: &'static str,
    /// The files, in the order written.
    pub files: Vec<PathBuf>,
}

/// The map for a file, among those that the families offer.
///
/// # Errors
/// No `general.architecture`, or one that no map accepts.
pub fn read_map<'a>(file: &Gguf, maps: &[&'a GgufMap]) -> Result<&'a GgufMap> {
    let Some(architecture) = file.text("general.architecture")? else {
        return Err(file.metadata_error("general.architecture", "missing"));
    };
    let keys = Keys::new(architecture);
    let set = |key: &str| match file.get(&keys.full(key)) {
        Some(value) => value.as_int() != Some(0),
        None => false,
    };
    let mut refused = String::new();
    for map in maps.iter().filter(|map| map.architectures.contains(&architecture)) {
        let wrong = map.present.iter().find(|key| !set(key));
        let wrong = wrong.map(|key| format!(" without `{}`", keys.full(key)));
        let wrong = wrong.or_else(|| {
            map.absent.iter().find(|key| set(key)).map(|key| format!(" with `{}`", keys.full(key)))
        });
        match wrong {
            None => return Ok(map),
            Some(why) => refused = why,
        }
    }
    let mut known: Vec<&str> = maps.iter().flat_map(|map| map.architectures).copied().collect();
    known.sort_unstable();
    known.dedup();
    Err(GgufError::Architecture {
        path: file.path().to_owned(),
        found: format!("`{architecture}`{refused}"),
        known: if known.is_empty() { "none".into() } else { known.join(", ") },
    })
}

/// Makes a model folder in `out` from the GGUF file at `path`.
///
/// The folder is created where it is missing; the four files replace ones of the same name.
///
/// # Errors
/// The file is damaged, its architecture or tokenizer is not known, a tensor has no place, or
/// reading or writing fails.
pub fn import(
    path: &Path,
    out: &Path,
    maps: &[&GgufMap],
    progress: &mut Progress<'_>,
) -> Result<ImportReport> {
    let mut file = Gguf::open(path)?;
    let map = read_map(&file, maps)?;
    let architecture = file.text("general.architecture")?.unwrap_or_default().to_owned();
    let keys = Keys::new(&architecture);
    let mut config = config::model(&mut file, &keys, map)?;
    let steps = plan::plan(&mut file, &keys, map)?;
    let tokens = tokenizer::build(&file)?;
    if let Some(bos) = tokens.bos {
        config.insert("bos_token_id".into(), json!(bos));
    }
    match tokens.eos.as_slice() {
        [] => {}
        [one] => drop(config.insert("eos_token_id".into(), json!(one))),
        more => drop(config.insert("eos_token_id".into(), json!(more))),
    }
    let float = steps.iter().find_map(|step| match step.form {
        Form::Float(float) => Some(float),
        _ => None,
    });
    let float = float.unwrap_or(FloatType::F32).name();
    config.insert("torch_dtype".into(), json!(float));
    if let Some(entry) = plan::quantisation(&steps) {
        config.insert("quantization".into(), entry);
    }
    fs::create_dir_all(out).map_err(|source| GgufError::Io { path: out.to_owned(), source })?;
    let total = steps.iter().map(|step| step.source.bytes).sum();
    let mut done = 0;
    progress(0, total);
    let weights = out.join("model.safetensors");
    // The weights get their name last, so that an import cut short leaves no folder that loads.
    let partial = out.join("model.safetensors.part");
    write::safetensors(&mut file, &steps, &partial, &mut |bytes| {
        done += bytes;
        progress(done, total);
    })?;
    let mut files = Vec::new();
    let documents = [
        ("config.json", Value::from(config)),
        ("tokenizer.json", tokens.tokenizer),
        ("tokenizer_config.json", tokens.config),
    ];
    for (name, value) in documents {
        let path = out.join(name);
        let text = format!("{value:#}\n");
        fs::write(&path, text).map_err(|source| GgufError::Io { path: path.clone(), source })?;
        files.push(path);
    }
    fs::rename(&partial, &weights)
        .map_err(|source| GgufError::Io { path: weights.clone(), source })?;
    files.push(weights);
    Ok(ImportReport {
        architecture,
        tensors: steps.len(),
        quantised: steps.iter().filter(|s| !matches!(s.form, Form::Float(_))).count(),
        float_type: float,
        files,
    })
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
