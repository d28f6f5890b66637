//! `call:NAME{key:value,...}` with texts between sentinels.

use serde_json::{Map, Value};

use super::ToolCall;

/// What stands on both sides of a text.
const QUOTES: [&str; 2] = ["<|\"|>", "<escape>"];
/// How deep arguments may nest.
const MAX_DEPTH: usize = 64;

/// The call, or `None` when the text does not follow the format.
pub(super) fn parse(text: &str) -> Option<ToolCall> {
    let text = text.trim();
    let rest = text.strip_prefix("call:").unwrap_or(text);
    let (name, _) = rest.split_once('{')?;
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let mut reader = Reader { rest: rest.get(rest.find('{')?..)? };
    let arguments = reader.object(0)?;
    reader.blank();
    reader.rest.is_empty().then(|| ToolCall { name: name.to_owned(), arguments })
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip(&mut self, text: &str) -> bool {
        self.blank();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A text between sentinels or JSON's quotes.
    fn quoted(&mut self) -> Option<String> {
        for quote in QUOTES {
            if self.skip(quote) {
                let (text, rest) = self.rest.split_once(quote)?;
                self.rest = rest;
                return Some(text.to_owned());
            }
        }
        if !self.rest.starts_with('"') {
            return None;
        }
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let text = stream.next()?.ok()?;
        self.rest = self.rest.get(stream.byte_offset()..)?;
        Some(text)
    }

    /// Bare words up to one of these characters.
    fn bare(&mut self, ends: &[char]) -> &'a str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.trim()
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH || !self.skip("{") {
            return None;
        }
        let mut map = Map::new();
        if self.skip("}") {
            return Some(Value::Object(map));
        }
        loop {
            self.blank();
            let key = match self.quoted() {
                Some(key) => key,
                None => self.bare(&[':', '{', '}', ',']).to_owned(),
            };
            if key.is_empty() || !self.skip(":") {
                return None;
            }
            map.insert(key, self.value(depth + 1)?);
            if self.skip("}") {
                return Some(Value::Object(map));
            }
            if !self.skip(",") {
                return None;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH || !self.skip("[") {
            return None;
        }
        let mut items = Vec::new();
        if self.skip("]") {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.skip("]") {
                return Some(Value::Array(items));
            }
            if !self.skip(",") {
                return None;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.blank();
        if self.rest.starts_with('{') {
            return self.object(depth);
        }
        if self.rest.starts_with('[') {
            return self.list(depth);
        }
        if let Some(text) = self.quoted() {
            return Some(Value::String(text));
        }
        match self.bare(&[',', '}', ']']) {
            "" => None,
            "None" => Some(Value::Null),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            word => {
                Some(serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned())))
            }
        }
    }
}
