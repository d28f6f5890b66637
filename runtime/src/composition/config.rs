//! The file beside a model that gives its layers schemes of their own.

use std::path::Path;

use super::kv::check_groups;
use super::{KvRequest, LayerScheme};
use crate::{Error, Result};

/// The file of a model folder that names the scheme of each layer.
pub(crate) const FILE: &str = "kv_config.json";

/// One entry of the file; other keys are the business of others.
#[derive(serde::Deserialize)]
struct Entry {
    layer_idx: u32,
    bits: u32,
    group_size: u32,
}

/// What `kv_config.json` says of keys and values, by cache; nothing where there is none, or where the
/// request does not ask for it.
///
/// # Errors
/// The file cannot be read, is no list of entries, names a cache twice, or names bits or groups that
/// there are none of.
pub fn kv_config(folder: &Path, request: &KvRequest) -> Result<Vec<LayerScheme>> {
    if !request.reads_config() {
        return Ok(Vec::new());
    }
    let file = folder.join(FILE);
    let text = match std::fs::read(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::Io { file, reason: e.to_string() }),
    };
    let wrong = |reason: String| Error::Io { file: file.clone(), reason };
    let entries: Vec<Entry> = serde_json::from_slice(&text)
        .map_err(|e| wrong(format!("expected a list of {{layer_idx, bits, group_size}}: {e}")))?;
    let mut schemes: Vec<LayerScheme> = Vec::with_capacity(entries.len());
    for Entry { layer_idx, bits, group_size } in entries {
        if schemes.iter().any(|known| known.layer == layer_idx) {
            return Err(wrong(format!("layer_idx {layer_idx}: expected once, found twice")));
        }
        check_groups(bits, group_size)
            .map_err(|what| wrong(format!("layer_idx {layer_idx}: {what}")))?;
        schemes.push(LayerScheme { layer: layer_idx, bits, group_size });
    }
    Ok(schemes)
}
