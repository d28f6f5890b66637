//! Small GGUF files for tests.

use std::path::Path;

/// A file in the making.
pub(super) struct Builder {
    pub metadata: Vec<(String, Vec<u8>)>,
    pub tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
    pub version: u32,
}

fn text(s: &str) -> Vec<u8> {
    let mut out = (s.len() as u64).to_le_bytes().to_vec();
    out.extend(s.as_bytes());
    out
}

fn typed(kind: u32, value: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], value].concat()
}

impl Builder {
    pub fn new(architecture: &str) -> Self {
        let builder = Self { metadata: Vec::new(), tensors: Vec::new(), version: 3 };
        builder.text("general.architecture", architecture)
    }

    pub fn raw(mut self, key: &str, typed_value: Vec<u8>) -> Self {
        self.metadata.retain(|(k, _)| k != key);
        self.metadata.push((key.to_owned(), typed_value));
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|(k, _)| k != key);
        self
    }

    pub fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, typed(8, &text(value)))
    }

    pub fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, typed(4, &value.to_le_bytes()))
    }

    pub fn f32(self, key: &str, value: f32) -> Self {
        self.raw(key, typed(6, &value.to_le_bytes()))
    }

    pub fn texts(self, key: &str, values: &[&str]) -> Self {
        let values: Vec<Vec<u8>> = values.iter().map(|s| text(s)).collect();
        self.array(key, 8, &values)
    }

    pub fn ints(self, key: &str, values: &[i32]) -> Self {
        let values: Vec<Vec<u8>> = values.iter().map(|n| n.to_le_bytes().to_vec()).collect();
        self.array(key, 5, &values)
    }

    pub fn floats(self, key: &str, values: &[f32]) -> Self {
        let values: Vec<Vec<u8>> = values.iter().map(|n| n.to_le_bytes().to_vec()).collect();
        self.array(key, 6, &values)
    }

    fn array(self, key: &str, kind: u32, values: &[Vec<u8>]) -> Self {
        let mut out = typed(9, &kind.to_le_bytes());
        out.extend((values.len() as u64).to_le_bytes());
        out.extend(values.concat());
        self.raw(key, out)
    }

    /// A tensor of a row-major shape.
    pub fn tensor(mut self, name: &str, shape: &[u64], code: u32, bytes: Vec<u8>) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), code, bytes));
        self
    }

    /// A float32 tensor.
    pub fn f32s(self, name: &str, shape: &[u64], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(name, shape, 0, bytes)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            out.extend(text(key));
            out.extend(value);
        }
        let mut at = 0u64;
        for (name, shape, code, bytes) in &self.tensors {
            out.extend(text(name));
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().rev().for_each(|n| out.extend(n.to_le_bytes()));
            out.extend(code.to_le_bytes());
            out.extend(at.to_le_bytes());
            at += (bytes.len() as u64).next_multiple_of(32);
        }
        for (_, _, _, bytes) in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(bytes);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.bytes()).unwrap();
    }
}
