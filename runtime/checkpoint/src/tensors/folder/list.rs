//! Which files of a folder hold weights, by its index or by their names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{Allowed, Note, TensorError};

const INDEX: &str = "model.safetensors.index.json";

/// No index file is larger.
const MAX_INDEX_BYTES: u64 = 512 << 20;

/// Which files hold a folder's weights.
pub(super) struct WeightList {
    pub files: Vec<PathBuf>,
    pub allowed: Option<Allowed>,
    pub notes: Vec<Note>,
    pub errors: Vec<TensorError>,
}

pub(super) fn weight_files(folder: &Path) -> Result<WeightList, TensorError> {
    let io = |e: std::io::Error| TensorError::Io { file: folder.to_owned(), reason: e.to_string() };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        if let Ok(name) = entry.map_err(io)?.file_name().into_string() {
            names.insert(name);
        }
    }
    let weights: Vec<&String> = names.iter().filter(|n| n.ends_with(".safetensors")).collect();
    if names.contains(INDEX) {
        return indexed(folder, &weights);
    }
    let ours: Vec<&String> = weights.iter().copied().filter(|n| n.starts_with("model")).collect();
    if ours.is_empty() {
        let found = match weights.as_slice() {
            [] => "no safetensors file".to_owned(),
            some => some.iter().take(5).map(|s| s.as_str()).collect::<Vec<_>>().join(", "),
        };
        return Err(TensorError::NoWeights { folder: folder.to_owned(), found });
    }
    let mut errors = Vec::new();
    for missing in numbering_gaps(&ours) {
        errors.push(TensorError::MissingFile {
            file: folder.join(missing),
            wanted_by: "the numbering of the other shards".into(),
            tensors: 0,
        });
    }
    let others = weights.iter().filter(|n| !ours.contains(n));
    let notes = others.map(|n| Note::OtherFile { file: folder.join(n) }).collect();
    let files = ours.iter().map(|n| folder.join(n)).collect();
    Ok(WeightList { files, allowed: None, notes, errors })
}

fn indexed(folder: &Path, weights: &[&String]) -> Result<WeightList, TensorError> {
    let path = folder.join(INDEX);
    let io = |e: std::io::Error| TensorError::Io { file: path.clone(), reason: e.to_string() };
    let bad = |expected: &str, found: String| TensorError::Index {
        file: path.clone(),
        expected: expected.to_owned(),
        found,
    };
    let size = fs::metadata(&path).map_err(io)?.len();
    if size > MAX_INDEX_BYTES {
        return Err(bad("at most 512 MiB", format!("{size} bytes")));
    }
    let text = fs::read(&path).map_err(io)?;
    let index: IndexFile = serde_json::from_slice(&text)
        .map_err(|e| bad("a JSON object with \"weight_map\"", e.to_string()))?;
    let mut errors = Vec::new();
    let mut allowed: Allowed = HashMap::with_capacity(index.weight_map.0.len());
    let mut shards: BTreeMap<Box<str>, usize> = BTreeMap::new();
    for (tensor, shard) in index.weight_map.0 {
        let plain = !shard.is_empty() && !shard.contains(['/', '\\']) && &*shard != "..";
        if !plain || !shard.ends_with(".safetensors") {
            let found = format!("{shard:?} for tensor {tensor:?}");
            errors.push(bad("the names of safetensors files beside it", found));
            continue;
        }
        if let Some(other) = allowed.get(&tensor)
            && *other != shard
        {
            let found = format!("{other:?} and {shard:?} for tensor {tensor:?}");
            errors.push(bad("one file for a tensor", found));
        }
        *shards.entry(shard.clone()).or_default() += 1;
        allowed.insert(tensor, shard);
    }
    if allowed.is_empty() && errors.is_empty() {
        errors.push(bad("at least one tensor in \"weight_map\"", "none".to_owned()));
    }
    let mut files = Vec::new();
    for (shard, tensors) in &shards {
        let file = folder.join(&**shard);
        // Not from the listing alone: the file system may fold case.
        if file.is_file() {
            files.push(file);
        } else {
            let wanted_by = INDEX.to_owned();
            errors.push(TensorError::MissingFile { file, wanted_by, tensors: *tensors });
        }
    }
    let stray = weights.iter().filter(|n| !shards.contains_key(n.as_str()));
    let notes = stray.map(|n| Note::StrayFile { file: folder.join(n) }).collect();
    Ok(WeightList { files, allowed: Some(allowed), notes, errors })
}

/// Shards that `NAME-00001-of-00003.safetensors` beside others implies and that are not there.
fn numbering_gaps(names: &[&String]) -> Vec<String> {
    let mut sets: BTreeMap<(&str, &str), BTreeSet<u32>> = BTreeMap::new();
    for name in names {
        let Some((base, of)) = name.trim_end_matches(".safetensors").split_once("-of-") else {
            continue;
        };
        let Some((base, number)) = base.rsplit_once('-') else { continue };
        if let Ok(number) = number.parse()
            && of.len() <= 5
        {
            sets.entry((base, of)).or_default().insert(number);
        }
    }
    let mut gaps = Vec::new();
    for ((base, of), found) in sets {
        let Ok(count) = of.parse::<u32>() else { continue };
        let width = of.len();
        let wanted = (1..=count).filter(|n| !found.contains(n)).take(20);
        gaps.extend(wanted.map(|n| format!("{base}-{n:0width$}-of-{of}.safetensors")));
    }
    gaps
}

#[derive(Deserialize)]
struct IndexFile {
    weight_map: Pairs,
}

/// An object's members in order, repeated names and all.
struct Pairs(Vec<(Box<str>, Box<str>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of file names")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(PairsVisitor)
    }
}
