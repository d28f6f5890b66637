//! A safetensors file's header, checked before anything is taken from it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{Dtype, TensorError};

/// The longest header that is read; the format's own limit.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Longer names are refused, so that matching them stays cheap.
const MAX_NAME_BYTES: usize = 1024;

/// No tensor has more axes.
const MAX_RANK: usize = 32;

/// One tensor of a header. Its bytes lie at `bytes` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The tensor's name.
    pub name: Box<str>,
    /// Element type.
    pub dtype: Dtype,
    /// Axes, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Where the bytes lie, counted from the start of the file.
    pub bytes: Range<u64>,
}

/// The header of one safetensors file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// In the header's order.
    pub entries: Vec<Entry>,
    /// The strings of `__metadata__`, such as `format`.
    pub metadata: BTreeMap<String, String>,
}

impl Header {
    /// Reads and checks the header of `path`; the data is not touched.
    ///
    /// Every entry's type is known, its range lies within the file, holds exactly the bytes of its
    /// shape, and overlaps no other. Unused bytes between tensors or at the end are tolerated.
    pub fn read(path: &Path) -> Result<Header, Vec<TensorError>> {
        let io = |e: std::io::Error| {
            vec![TensorError::Io { file: path.to_owned(), reason: e.to_string() }]
        };
        // Before opening, since a pipe would wait for a writer.
        let metadata = fs::metadata(path).map_err(io)?;
        if !metadata.is_file() {
            let expected = "a file".to_owned();
            let found = if metadata.is_dir() { "a folder" } else { "something else" }.to_owned();
            return Err(vec![TensorError::Header { file: path.to_owned(), expected, found }]);
        }
        let mut file = File::open(path).map_err(io)?;
        let size = metadata.len();
        Header::from_reader(path, &mut file, size)
    }

    /// As [`Header::read`], from any reader of a file of `size` bytes; `path` is for errors.
    pub fn from_reader(
        path: &Path,
        reader: &mut dyn Read,
        size: u64,
    ) -> Result<Header, Vec<TensorError>> {
        let bad = |expected: String, found: String| {
            vec![TensorError::Header { file: path.to_owned(), expected, found }]
        };
        let io = |e: std::io::Error| {
            vec![TensorError::Io { file: path.to_owned(), reason: e.to_string() }]
        };
        if size < 8 {
            let found = format!("{size} bytes");
            return Err(bad("a file of at least 8 bytes".into(), found));
        }
        let mut length = [0; 8];
        reader.read_exact(&mut length).map_err(io)?;
        let length = u64::from_le_bytes(length);
        if length > size - 8 {
            let found = format!("a length of {length}");
            return Err(bad(
                format!("a length of at most {}, the rest of the file", size - 8),
                found,
            ));
        }
        if length > MAX_HEADER_BYTES {
            let found = format!("a length of {length}");
            return Err(bad(format!("a length of at most {MAX_HEADER_BYTES}"), found));
        }
        let mut text = Vec::new();
        reader.take(length).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 != length {
            return Err(bad(format!("{length} bytes"), format!("{} bytes", text.len())));
        }
        let raw: RawHeader = serde_json::from_slice(&text)
            .map_err(|e| bad("a JSON object of tensors".into(), e.to_string()))?;
        let mut errors = Vec::new();
        let data = 8 + length;
        let mut seen = HashSet::with_capacity(raw.tensors.len());
        for (name, _) in &raw.tensors {
            if !seen.insert(&**name) {
                errors.push(entry_error(path, name, "one entry", "two"));
            }
        }
        let twice = !errors.is_empty();
        drop(seen);
        let mut entries = Vec::with_capacity(raw.tensors.len());
        for (name, entry) in raw.tensors {
            match check(name, entry, data, size) {
                Ok(entry) => entries.push(entry),
                Err(e) => errors.push(entry_error(path, &e.0, &e.1, &e.2)),
            }
        }
        if twice {
            // Only the first of a name, so that an overlap of the two is not told as well.
            let mut seen = HashSet::new();
            entries.retain(|e| seen.insert(e.name.clone()));
        }
        overlaps(path, data, &entries, &mut errors);
        if errors.is_empty() { Ok(Header { entries, metadata: raw.metadata }) } else { Err(errors) }
    }
}

fn entry_error(path: &Path, tensor: &str, expected: &str, found: &str) -> TensorError {
    TensorError::Entry {
        file: path.to_owned(),
        tensor: tensor.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

/// (name, expected, found)
type Wrong = (Box<str>, String, String);

fn check(name: Box<str>, raw: RawEntry<'_>, data: u64, size: u64) -> Result<Entry, Wrong> {
    if name.len() > MAX_NAME_BYTES {
        let found = format!("{} bytes", name.len());
        let start: String = name.chars().take(60).collect();
        return Err((start.into(), format!("a name of at most {MAX_NAME_BYTES} bytes"), found));
    }
    let Some(dtype) = Dtype::parse(&raw.dtype) else {
        let known = Dtype::ALL.map(Dtype::name).join(", ");
        return Err((name, format!("a dtype of {known}"), format!("{:?}", raw.dtype)));
    };
    if raw.shape.len() > MAX_RANK {
        let found = format!("{} axes", raw.shape.len());
        return Err((name, format!("at most {MAX_RANK} axes"), found));
    }
    let [begin, end] = raw.data_offsets;
    let available = size - data;
    if begin > end || end > available {
        let found = format!("[{begin}, {end}]");
        let mut expected = format!("data offsets in order within {available} bytes");
        if begin <= end {
            expected.push_str(" (is the file cut short?)");
        }
        return Err((name, expected, found));
    }
    let bytes = raw
        .shape
        .iter()
        .try_fold(1u64, |n, d| n.checked_mul(*d))
        .and_then(|n| n.checked_mul(dtype.bytes() as u64));
    if bytes != Some(end - begin) {
        let expected = match bytes {
            Some(bytes) => format!("{bytes} bytes for {dtype} {:?}", raw.shape),
            None => "a shape whose size fits 64 bits".to_owned(),
        };
        let found = match bytes {
            Some(_) => format!("{} bytes", end - begin),
            None => format!("{dtype} {:?}", raw.shape),
        };
        return Err((name, expected, found));
    }
    // A zero axis lets the others be anything, so they are bounded by themselves.
    let axes = raw.shape.iter().try_fold(1u64, |n, d| n.checked_mul((*d).max(1)));
    let shape: Result<Vec<usize>, _> = raw.shape.iter().map(|d| usize::try_from(*d)).collect();
    match shape {
        Ok(shape) if axes.is_some_and(|n| n < 1 << 48) => {
            Ok(Entry { name, dtype, shape, bytes: data + begin..data + end })
        }
        _ => Err((name, "axes below 2^48 together".into(), format!("{:?}", raw.shape))),
    }
}

fn overlaps(path: &Path, data: u64, entries: &[Entry], errors: &mut Vec<TensorError>) {
    let mut order: Vec<&Entry> = entries.iter().filter(|e| !e.bytes.is_empty()).collect();
    order.sort_by_key(|e| (e.bytes.start, e.bytes.end));
    let mut furthest: Option<&Entry> = None;
    for entry in order {
        if let Some(before) = furthest
            && before.bytes.end > entry.bytes.start
        {
            let expected =
                format!("data from offset {}, after {:?}", before.bytes.end - data, before.name);
            let found = format!("offset {}", entry.bytes.start - data);
            errors.push(entry_error(path, &entry.name, &expected, &found));
        }
        if furthest.is_none_or(|f| f.bytes.end < entry.bytes.end) {
            furthest = Some(entry);
        }
    }
}

#[derive(Deserialize)]
struct RawEntry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

#[derive(Default)]
struct RawHeader<'a> {
    tensors: Vec<(Box<str>, RawEntry<'a>)>,
    metadata: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for RawHeader<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;
        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = RawHeader<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader<'de>, A::Error> {
                let mut raw = RawHeader::default();
                while let Some(key) = map.next_key::<Box<str>>()? {
                    if &*key == "__metadata__" {
                        raw.metadata = map.next_value::<Metadata>()?.0;
                    } else {
                        let entry = map
                            .next_value::<RawEntry>()
                            .map_err(|e| de::Error::custom(format_args!("tensor {key:?}: {e}")))?;
                        raw.tensors.push((key, entry));
                    }
                }
                Ok(raw)
            }
        }
        from.deserialize_map(HeaderVisitor)
    }
}

/// String values only; anything else in `__metadata__` is passed over.
struct Metadata(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Text(String),
            Other(IgnoredAny),
        }
        let map: Option<BTreeMap<String, Text>> = Deserialize::deserialize(from)?;
        let text = map.unwrap_or_default().into_iter().filter_map(|(k, v)| match v {
            Text::Text(v) => Some((k, v)),
            Text::Other(_) => None,
        });
        Ok(Metadata(text.collect()))
    }
}
