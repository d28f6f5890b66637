//! Strings: escapes of the graph language, and places inside TOML strings.

use crate::source::{FileId, Span};

/// The value of a quoted string; the error is the range of an unknown escape within `raw`.
pub(super) fn unescape(raw: &str) -> Result<String, (usize, usize)> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or("");
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some((_, 'n')) => value.push('\n'),
            Some((_, 't')) => value.push('\t'),
            Some((_, c @ ('\\' | '"' | '\''))) => value.push(c),
            other => return Err((at + 1, at + 2 + other.map_or(0, |(_, c)| c.len_utf8()))),
        }
    }
    Ok(value)
}

/// Where each byte of an embedded text stands in its file.
#[derive(Debug, Clone)]
pub struct Positions {
    file: FileId,
    /// Offset of each byte of the value, and of its end.
    offsets: Vec<u32>,
}

impl Positions {
    /// A text that stands in `file` at `offset` letter for letter.
    pub fn plain(file: FileId, offset: u32, len: usize) -> Self {
        Self { file, offsets: (0..=len as u32).map(|at| offset.saturating_add(at)).collect() }
    }

    /// A text made from what stands at `span`: all of it is shown at its start.
    pub fn within(span: Span, len: usize) -> Self {
        Self { file: span.file, offsets: vec![span.start; len + 1] }
    }

    /// A text written as the TOML string `raw` at `offset`, whose value is `value`.
    pub fn toml(file: FileId, offset: u32, raw: &str, value: &str) -> Self {
        let offsets = toml_offsets(raw, value.len())
            .map(|list| list.into_iter().map(|at| offset.saturating_add(at as u32)).collect())
            // A form not foreseen: every place is the whole string's start, which still renders.
            .unwrap_or_else(|| vec![offset; value.len() + 1]);
        Self { file, offsets }
    }

    /// The place of a range of the value.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let get = |at: usize| self.offsets.get(at).or(self.offsets.last()).copied().unwrap_or(0);
        let from = get(start);
        // The end of the last byte, not the start of the next: an escape may lie between.
        let to = if end > start { get(end - 1) + 1 } else { get(end) };
        let to = if end > start && get(end) > to && end < self.offsets.len() - 1 {
            get(end)
        } else {
            to
        };
        Span { file: self.file, start: from, end: to.max(from) }
    }
}

/// Offsets within `raw` (quotes included) of each byte of its value, then of the end.
fn toml_offsets(raw: &str, len: usize) -> Option<Vec<usize>> {
    let (quote, multi) = match raw.as_bytes() {
        [b'"', b'"', b'"', ..] if raw.len() >= 6 => ('"', true),
        [b'\'', b'\'', b'\'', ..] if raw.len() >= 6 => ('\'', true),
        [b'"', ..] => ('"', false),
        [b'\'', ..] => ('\'', false),
        // A bare key.
        _ => return (raw.len() == len).then(|| (0..=len).collect()),
    };
    let width = if multi { 3 } else { 1 };
    let end = raw.len().checked_sub(width)?;
    let mut at = width;
    if multi {
        at += match raw.as_bytes().get(at..at + 2) {
            Some([b'\r', b'\n']) => 2,
            Some([b'\n', _]) => 1,
            _ => 0,
        };
    }
    let mut offsets = Vec::with_capacity(len + 1);
    while at < end {
        let c = raw.get(at..)?.chars().next()?;
        if quote == '"' && c == '\\' {
            let rest = raw.get(at + 1..)?;
            let next = rest.chars().next()?;
            if next.is_whitespace() {
                // A line continuation: the blanks after it belong to no byte.
                at += 1 + (rest.len() - rest.trim_start().len());
                continue;
            }
            let (consumed, code) = match next {
                'u' => (6, u32::from_str_radix(rest.get(1..5)?, 16).ok()?),
                'U' => (10, u32::from_str_radix(rest.get(1..9)?, 16).ok()?),
                'x' => (4, u32::from_str_radix(rest.get(1..3)?, 16).ok()?),
                _ => (2, 1),
            };
            let width = char::from_u32(code)?.len_utf8();
            offsets.extend(std::iter::repeat_n(at, width));
            at += consumed;
        } else {
            offsets.extend(at..at + c.len_utf8());
            at += c.len_utf8();
        }
    }
    offsets.push(end);
    (offsets.len() == len + 1).then_some(offsets)
}
