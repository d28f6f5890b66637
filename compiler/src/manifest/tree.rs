//! TOML as a tree in which each key and value knows where it stands.

use toml::de::{DeTable, DeValue};

use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span, Spanned};
use crate::syntax::Positions;

/// Longest document that is read, in bytes.
const MAX_TEXT: usize = 4 << 20;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value stands; a table's header or braces.
    pub span: Span,
    /// What it is.
    pub kind: NodeKind,
}

/// The kinds of values.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// Text, with the quotes and escapes it was written in.
    Str {
        /// Its value.
        value: String,
        /// As written, quotes included.
        raw: String,
    },
    /// A 64-bit integer.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A switch.
    Bool(bool),
    /// A date: no part of a spec.
    Date(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Keys and values in the order written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The entries.
    pub entries: Vec<(Key, Node)>,
}

/// A key: its text, its place, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Its text and place.
    pub name: Spanned<String>,
    /// As written, quotes included.
    pub raw: String,
}

impl Node {
    /// What the value is, for "expected .., found ..".
    pub fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Str { value, .. } if value.chars().count() <= 40 => {
                format!("the text {value:?}")
            }
            NodeKind::Str { .. } => "text".to_owned(),
            NodeKind::Int(value) => format!("the number {value}"),
            NodeKind::Float(value) => format!("the number {value:?}"),
            NodeKind::Bool(value) => format!("`{value}`"),
            NodeKind::Date(_) => "a date".to_owned(),
            NodeKind::Array(_) => "a list".to_owned(),
            NodeKind::Table(_) => "a table".to_owned(),
        }
    }

    /// The text, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Str { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The table, where it is one.
    pub fn as_table(&self) -> Option<&Table> {
        match &self.kind {
            NodeKind::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The items of a list, or the value alone.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            NodeKind::Array(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// Where each byte of the text stands.
    pub fn positions(&self) -> Option<Positions> {
        match &self.kind {
            NodeKind::Str { value, raw } => {
                Some(Positions::toml(self.span.file, self.span.start, raw, value))
            }
            _ => None,
        }
    }

    /// The value without places.
    pub fn to_toml(&self) -> toml::Value {
        match &self.kind {
            NodeKind::Str { value, .. } | NodeKind::Date(value) => {
                toml::Value::String(value.clone())
            }
            NodeKind::Int(value) => toml::Value::Integer(*value),
            NodeKind::Float(value) => toml::Value::Float(*value),
            NodeKind::Bool(value) => toml::Value::Boolean(*value),
            NodeKind::Array(items) => toml::Value::Array(items.iter().map(Node::to_toml).collect()),
            NodeKind::Table(table) => {
                let entries = table.entries.iter();
                toml::Value::Table(
                    entries.map(|(key, node)| (key.name.node.clone(), node.to_toml())).collect(),
                )
            }
        }
    }
}

impl Table {
    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entries.iter().find(|(key, _)| key.name.node == name).map(|(_, node)| node)
    }

    /// A key and its value.
    pub fn entry(&self, name: &str) -> Option<&(Key, Node)> {
        self.entries.iter().find(|(key, _)| key.name.node == name)
    }

    /// The names of the keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.name.node.as_str())
    }
}

impl Key {
    /// Where each byte of the key's text stands.
    pub fn positions(&self) -> Positions {
        Positions::toml(self.name.span.file, self.name.span.start, &self.raw, &self.name.node)
    }
}

/// Reads a document: every syntax error goes into `diags`, what could be read is returned.
pub fn parse(file: FileId, text: &str, diags: &mut Vec<Diagnostic>) -> Table {
    let at = |start: usize, end: usize| Span { file, start: start as u32, end: end as u32 };
    if text.len() > MAX_TEXT {
        diags.push(Diagnostic::error(
            Code::TooLong,
            at(0, 0),
            format!("the document has {} bytes; at most {MAX_TEXT} are read", text.len()),
        ));
        return Table::default();
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut lines = Vec::new();
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        let first = text.get(..range.start).unwrap_or("").matches('\n').count();
        if lines.contains(&first) {
            continue;
        }
        lines.push(first);
        let open = text.get(range.clone()).is_some_and(|found| found.contains('\n'));
        diags.push(syntax_error(text, &error, &at));
        if open {
            // A bracket was left open: what follows was read as part of it.
            break;
        }
    }
    let reader = Reader { text, at: &at };
    reader.table(table.get_ref(), diags)
}

fn syntax_error(
    text: &str,
    error: &toml::de::Error,
    at: &dyn Fn(usize, usize) -> Span,
) -> Diagnostic {
    let range = error.span().unwrap_or(0..0);
    // An error at the end of a line has an empty range: show the character before it.
    let start = if range.is_empty() { range.start.saturating_sub(1) } else { range.start };
    let line = text
        .get(range.start..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |at| range.start + at);
    let (start, end) = on_characters(text, start, range.end.min(line.max(start + 1)));
    let message = error.message().trim();
    let (said, help) = match message.lines().next().unwrap_or("") {
        line if line.starts_with("string values must be quoted") => {
            ("text stands in quotes".to_owned(), Some("write `\"...\"`".to_owned()))
        }
        line if line.starts_with("missing comma between array elements") => (
            "this list goes on without a comma".to_owned(),
            Some("write `,` between elements, or close the list with `]`".to_owned()),
        ),
        line if line.starts_with("invalid basic string, expected") => (
            "this text has no closing quote".to_owned(),
            Some("close it on the same line".to_owned()),
        ),
        line => (line.to_owned(), message.lines().nth(1).map(|line| line.trim().to_owned())),
    };
    let found = Diagnostic::error(Code::TomlSyntax, at(start, end), said);
    match help {
        Some(help) => found.help(help),
        None => found,
    }
}

fn on_characters(text: &str, start: usize, end: usize) -> (usize, usize) {
    let (mut start, mut end) = (start.min(text.len()), end.min(text.len()));
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    (start, end)
}

struct Reader<'a> {
    text: &'a str,
    at: &'a dyn Fn(usize, usize) -> Span,
}

impl Reader<'_> {
    fn table(&self, table: &DeTable<'_>, diags: &mut Vec<Diagnostic>) -> Table {
        let mut entries: Vec<(Key, Node)> = table
            .iter()
            .map(|(key, value)| {
                let span = key.span();
                let name = Spanned::new(key.get_ref().to_string(), (self.at)(span.start, span.end));
                let raw = self.text.get(span).unwrap_or("").to_owned();
                (Key { name, raw }, self.value(value, diags))
            })
            .collect();
        // The parser sorts keys by name; the author's order is what messages and listings follow.
        entries.sort_by_key(|(key, _)| key.name.span.start);
        Table { entries }
    }

    fn value(&self, value: &toml::Spanned<DeValue<'_>>, diags: &mut Vec<Diagnostic>) -> Node {
        let range = value.span();
        let span = (self.at)(range.start, range.end);
        let kind = match value.get_ref() {
            DeValue::String(text) => NodeKind::Str {
                value: text.to_string(),
                raw: self.text.get(range).unwrap_or("").to_owned(),
            },
            DeValue::Integer(number) => {
                let digits = number.as_str();
                match i64::from_str_radix(digits, number.radix()) {
                    Ok(value) => NodeKind::Int(value),
                    Err(_) => {
                        diags.push(
                            Diagnostic::error(
                                Code::BadNumber,
                                span,
                                format!("`{digits}` is out of range"),
                            )
                            .help("integers are signed and 64 bits wide"),
                        );
                        NodeKind::Int(0)
                    }
                }
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(value) => NodeKind::Float(value),
                Err(_) => {
                    diags.push(Diagnostic::error(
                        Code::BadNumber,
                        span,
                        format!("`{}` is not a number", number.as_str()),
                    ));
                    NodeKind::Float(0.0)
                }
            },
            DeValue::Boolean(value) => NodeKind::Bool(*value),
            DeValue::Datetime(date) => NodeKind::Date(date.to_string()),
            DeValue::Array(items) => {
                NodeKind::Array(items.iter().map(|item| self.value(item, diags)).collect())
            }
            DeValue::Table(table) => NodeKind::Table(self.table(table, diags)),
        };
        Node { span, kind }
    }
}
