//! The container: metadata and the table of tensors. Nothing in the file is trusted.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::blocks::BlockType;
use super::error::{GgufError, Result};

/// Longest key or tensor name that is believed.
const MAX_NAME: u64 = 1 << 16;
/// Deepest nesting of arrays.
const MAX_DEPTH: u32 = 4;
/// Elements of all arrays together; a vocabulary has a few hundred thousand tokens.
const MAX_ELEMENTS: u64 = 1 << 24;

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum Metadata {
    /// Any unsigned integer.
    Unsigned(u64),
    /// Any signed integer.
    Signed(i64),
    /// A float32.
    Float(f32),
    /// A float64.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// UTF-8 text.
    Text(String),
    /// Values of one type.
    Array(Vec<Metadata>),
}

impl Metadata {
    /// The value's kind in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsigned(_) | Self::Signed(_) => "an integer",
            Self::Float(_) | Self::Double(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
        }
    }

    /// The value as an integer, when it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Unsigned(n) => i64::try_from(*n).ok(),
            Self::Signed(n) => Some(*n),
            _ => None,
        }
    }
}

/// A tensor as the table lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    /// Its name in the file.
    pub name: String,
    /// Row-major: the slowest dimension first.
    pub shape: Vec<u64>,
    /// How its values are stored.
    pub block: BlockType,
    /// Its first byte, from the start of the file.
    pub offset: u64,
    /// How many bytes it takes.
    pub bytes: u64,
}

impl TensorInfo {
    /// Length of a row, the last dimension.
    pub fn columns(&self) -> u64 {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Number of rows: all dimensions but the last.
    pub fn rows(&self) -> u64 {
        self.shape.iter().rev().skip(1).product()
    }
}

/// An opened GGUF file: its header is read and checked, its tensors are not.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    file: File,
    metadata: HashMap<String, Metadata>,
    tensors: Vec<TensorInfo>,
}

impl Gguf {
    /// Reads and checks the header of the file at `path`.
    ///
    /// # Errors
    /// Not a GGUF file, cut short, a version or type that is not known, sizes that do not fit the file.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| GgufError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let mut header = Header {
            path,
            input: BufReader::with_capacity(1 << 20, file.try_clone().map_err(io)?),
            at: 0,
            size,
            elements: 0,
        };
        let (metadata, tensors) = header.read()?;
        Ok(Self { path: path.to_owned(), file, metadata, tensors })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors in the order of the table.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// A metadata value.
    pub fn get(&self, key: &str) -> Option<&Metadata> {
        self.metadata.get(key)
    }

    /// A metadata string; none when absent.
    ///
    /// # Errors
    /// The value is something else.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(Metadata::Text(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong(key, "a string", other)),
        }
    }

    /// A metadata truth value; none when absent.
    ///
    /// # Errors
    /// The value is something else.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(Metadata::Bool(b)) => Ok(Some(*b)),
            Some(other) => Err(self.wrong(key, "a boolean", other)),
        }
    }

    /// A metadata integer; none when absent.
    ///
    /// # Errors
    /// The value is something else, or above 2^63.
    pub fn int(&self, key: &str) -> Result<Option<i64>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_int() {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(key, "an integer", value)),
            },
        }
    }

    /// A metadata array; none when absent.
    ///
    /// # Errors
    /// The value is something else.
    pub fn array(&self, key: &str) -> Result<Option<&[Metadata]>> {
        match self.get(key) {
            None => Ok(None),
            Some(Metadata::Array(a)) => Ok(Some(a)),
            Some(other) => Err(self.wrong(key, "an array", other)),
        }
    }

    /// A metadata array of strings; none when absent.
    ///
    /// # Errors
    /// The value is something else.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>> {
        let Some(array) = self.array(key)? else { return Ok(None) };
        let mut texts = Vec::with_capacity(array.len());
        for value in array {
            match value {
                Metadata::Text(s) => texts.push(s.as_str()),
                other => return Err(self.wrong(key, "an array of strings", other)),
            }
        }
        Ok(Some(texts))
    }

    /// Reads `buffer.len()` bytes of a tensor, `from` bytes after its start.
    ///
    /// # Errors
    /// The file has changed or cannot be read.
    pub fn read(&mut self, tensor: &TensorInfo, from: u64, buffer: &mut [u8]) -> Result<()> {
        let io = |source| GgufError::Io { path: self.path.clone(), source };
        self.file.seek(SeekFrom::Start(tensor.offset + from)).map_err(io)?;
        self.file.read_exact(buffer).map_err(io)
    }

    pub(super) fn metadata_error(&self, key: &str, what: impl Into<String>) -> GgufError {
        GgufError::Metadata { path: self.path.clone(), key: key.to_owned(), what: what.into() }
    }

    pub(super) fn tensor_error(&self, tensor: &str, what: impl Into<String>) -> GgufError {
        GgufError::Tensor { path: self.path.clone(), tensor: tensor.to_owned(), what: what.into() }
    }

    fn wrong(&self, key: &str, expected: &str, found: &Metadata) -> GgufError {
        self.metadata_error(key, format!("expected {expected}, found {}", found.kind()))
    }
}

/// Reads the part before the tensors' bytes.
struct Header<'a> {
    path: &'a Path,
    input: BufReader<File>,
    at: u64,
    size: u64,
    elements: u64,
}

type Parts = (HashMap<String, Metadata>, Vec<TensorInfo>);

impl Header<'_> {
    fn read(&mut self) -> Result<Parts> {
        let magic: [u8; 4] = self.bytes()?;
        if &magic != b"GGUF" {
            return Err(self.fail_at(0, "not a GGUF file: it does not begin with `GGUF`"));
        }
        let version = self.u32()?;
        if (1..=3).contains(&version.swap_bytes()) {
            return Err(self.fail_at(4, "a big-endian file; only little-endian ones are read"));
        }
        if !(2..=3).contains(&version) {
            return Err(self.fail_at(4, format!("version {version}; versions 2 and 3 are read")));
        }
        let tensors = self.count(24, "tensors")?;
        let entries = self.count(13, "metadata entries")?;
        let mut metadata = HashMap::new();
        for _ in 0..entries {
            let at = self.at;
            let key = self.name("a metadata key")?;
            let kind = self.u32()?;
            let value = self.value(kind, 0)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(self.fail_at(at, format!("metadata `{key}` stands there twice")));
            }
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(value) => value
                .as_int()
                .and_then(|n| u64::try_from(n).ok())
                .filter(|n| n.is_power_of_two() && (8..=1 << 20).contains(n))
                .ok_or_else(|| GgufError::Metadata {
                    path: self.path.to_owned(),
                    key: "general.alignment".into(),
                    what: format!("expected a power of two from 8 to 1048576, found {value:?}"),
                })?,
        };
        if let Some(parts) = metadata.get("split.count").and_then(Metadata::as_int)
            && parts > 1
        {
            return Err(GgufError::Metadata {
                path: self.path.to_owned(),
                key: "split.count".into(),
                what: format!("one of {parts} parts; join them to one file first"),
            });
        }
        let mut table = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..tensors {
            let at = self.at;
            let info = self.tensor()?;
            if !seen.insert(info.name.clone()) {
                return Err(self.fail_at(at, format!("tensor `{}` stands there twice", info.name)));
            }
            table.push(info);
        }
        let start = self.at.next_multiple_of(alignment);
        for info in &mut table {
            self.place(info, start, alignment)?;
        }
        self.apart(&table)?;
        Ok((metadata, table))
    }

    /// No two tensors share bytes, so that what is written is not larger than what was read.
    fn apart(&self, table: &[TensorInfo]) -> Result<()> {
        let mut order: Vec<&TensorInfo> = table.iter().collect();
        order.sort_by_key(|info| info.offset);
        let overlap = order.windows(2).find_map(|pair| match pair {
            [a, b] if a.offset + a.bytes > b.offset => Some((a, b)),
            _ => None,
        });
        let Some((a, b)) = overlap else { return Ok(()) };
        Err(GgufError::Tensor {
            path: self.path.to_owned(),
            tensor: b.name.clone(),
            what: format!("it begins inside `{}`", a.name),
        })
    }

    /// Turns a tensor's offset into one from the start of the file.
    fn place(&self, info: &mut TensorInfo, start: u64, alignment: u64) -> Result<()> {
        let fail = |what| GgufError::Tensor {
            path: self.path.to_owned(),
            tensor: info.name.clone(),
            what,
        };
        if !info.offset.is_multiple_of(alignment) {
            return Err(fail(format!(
                "its offset {} is not a multiple of {alignment}",
                info.offset
            )));
        }
        let end = start.checked_add(info.offset).and_then(|at| at.checked_add(info.bytes));
        if end.is_none_or(|end| end > self.size) {
            return Err(fail(format!(
                "its {} bytes at offset {} do not fit in a file of {} bytes",
                info.bytes, info.offset, self.size
            )));
        }
        info.offset += start;
        Ok(())
    }

    fn tensor(&mut self) -> Result<TensorInfo> {
        let name = self.name("a tensor name")?;
        let dims = self.u32()?;
        if !(1..=4).contains(&dims) {
            return Err(
                self.fail(format!("tensor `{name}`: {dims} dimensions; 1 to 4 are possible"))
            );
        }
        let mut shape = Vec::new();
        for _ in 0..dims {
            let n = self.u64()?;
            if n == 0 {
                return Err(self.fail(format!("tensor `{name}` has a dimension of 0")));
            }
            shape.push(n);
        }
        shape.reverse();
        let code = self.u32()?;
        let Some(block) = BlockType::from_code(code) else {
            return Err(self.fail(format!("tensor `{name}` has the unknown type {code}")));
        };
        let offset = self.u64()?;
        let columns = shape.last().copied().unwrap_or(1);
        if !columns.is_multiple_of(block.elements()) {
            return Err(self.fail(format!(
                "tensor `{name}`: rows of {columns} do not divide into {block} blocks of {}",
                block.elements()
            )));
        }
        let elements = shape.iter().try_fold(1u64, |a, n| a.checked_mul(*n));
        let bytes = elements
            .filter(|n| i64::try_from(*n).is_ok())
            .and_then(|n| (n / block.elements()).checked_mul(block.bytes()));
        let Some(bytes) = bytes else {
            return Err(self.fail(format!("tensor `{name}`: its shape {shape:?} overflows")));
        };
        Ok(TensorInfo { name, shape, block, offset, bytes })
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Metadata> {
        Ok(match kind {
            0 => Metadata::Unsigned(u8::from_le_bytes(self.bytes()?).into()),
            1 => Metadata::Signed(i8::from_le_bytes(self.bytes()?).into()),
            2 => Metadata::Unsigned(u16::from_le_bytes(self.bytes()?).into()),
            3 => Metadata::Signed(i16::from_le_bytes(self.bytes()?).into()),
            4 => Metadata::Unsigned(self.u32()?.into()),
            5 => Metadata::Signed(i32::from_le_bytes(self.bytes()?).into()),
            6 => Metadata::Float(f32::from_le_bytes(self.bytes()?)),
            7 => match u8::from_le_bytes(self.bytes()?) {
                0 => Metadata::Bool(false),
                1 => Metadata::Bool(true),
                n => return Err(self.fail(format!("a boolean of value {n}"))),
            },
            8 => Metadata::Text(self.text("a string", self.size)?),
            9 => self.array(depth)?,
            10 => Metadata::Unsigned(self.u64()?),
            11 => Metadata::Signed(i64::from_le_bytes(self.bytes()?)),
            12 => Metadata::Double(f64::from_le_bytes(self.bytes()?)),
            _ => return Err(self.fail(format!("unknown metadata type {kind}"))),
        })
    }

    fn array(&mut self, depth: u32) -> Result<Metadata> {
        if depth == MAX_DEPTH {
            return Err(self.fail(format!("arrays nested deeper than {MAX_DEPTH}")));
        }
        let kind = self.u32()?;
        let smallest = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            9 => 12,
            _ => 8,
        };
        let at = self.at;
        let count = self.count(smallest, "array elements")?;
        self.elements = self.elements.saturating_add(count);
        if self.elements > MAX_ELEMENTS {
            let what = format!("more than {MAX_ELEMENTS} elements of arrays");
            return Err(self.fail_at(at, what));
        }
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(kind, depth + 1)?);
        }
        Ok(Metadata::Array(values))
    }

    /// A count of things that take at least `smallest` bytes each.
    fn count(&mut self, smallest: u64, what: &str) -> Result<u64> {
        let at = self.at;
        let count = self.u64()?;
        if count > (self.size - self.at) / smallest {
            return Err(self.fail_at(at, format!("{count} {what} do not fit in the file")));
        }
        Ok(count)
    }

    fn name(&mut self, what: &str) -> Result<String> {
        self.text(what, MAX_NAME)
    }

    fn text(&mut self, what: &str, limit: u64) -> Result<String> {
        let at = self.at;
        let length = self.u64()?;
        if length > limit || length > self.size - self.at {
            return Err(self.fail_at(at, format!("{what} of {length} bytes does not fit")));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut bytes);
        let read = read.map_err(|source| GgufError::Io { path: self.path.to_owned(), source })?;
        if read as u64 != length {
            return Err(self.fail("the file ends here, inside its header"));
        }
        self.at += length;
        String::from_utf8(bytes).map_err(|_| self.fail_at(at, format!("{what} is not UTF-8")))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        if self.size - self.at < N as u64 {
            return Err(self.fail("the file ends here, inside its header"));
        }
        let read = self.input.read_exact(&mut bytes);
        read.map_err(|source| GgufError::Io { path: self.path.to_owned(), source })?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn fail(&self, what: impl Into<String>) -> GgufError {
        self.fail_at(self.at, what)
    }

    fn fail_at(&self, at: u64, what: impl Into<String>) -> GgufError {
        GgufError::Malformed { path: self.path.to_owned(), at, what: what.into() }
    }
}
