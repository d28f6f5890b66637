//! The texts a compilation reads, and places in them.

use std::ops::Range;

/// Index of a text in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A range of bytes in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that covers both; `self` when they lie in different texts.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// As a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub node: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Joins a value and its place.
    pub fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

/// One text with the name that diagnostics show.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// As shown, relative to the folder the command runs in where that is possible.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// Every text of a compilation: manifests, graphs, the embedded library.
#[derive(Debug, Default, Clone)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a text; spans into it carry the returned id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.files.push(SourceFile { name: name.into(), text: text.into() });
        FileId((self.files.len() - 1) as u32)
    }

    /// Shows every text under another name.
    pub fn rename(&mut self, name: impl Fn(&str) -> String) {
        for file in &mut self.files {
            file.name = name(&file.name);
        }
    }

    /// The text with this id. Ids come only from [`Sources::add`], so the index holds.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The words a span covers (empty when the span does not fall on characters).
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a span's start, both from 1; the column counts characters.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        self.position(span.file, span.start)
    }

    /// Line and column of one byte offset, both from 1.
    pub fn position(&self, file: FileId, offset: u32) -> (usize, usize) {
        let text = &self.file(file).text;
        let mut offset = (offset as usize).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (line, before[start..].chars().count() + 1)
    }
}
