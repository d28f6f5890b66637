//! `tojson`: Python's `json.dumps`.

use std::fmt::Write as _;

use minijinja::{State, Value};

use super::kind::{Kind, kind};
use super::print::float;
use super::{MAX_NESTING, Result, charge, compare, type_error, type_name, value_error};

/// How to write JSON.
#[derive(Debug, Clone)]
pub(in super::super) struct Style {
    pub ensure_ascii: bool,
    /// The text of one level of indentation.
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

/// `json.dumps(value, ...)`.
pub(in super::super) fn dumps(
    state: &State<'_, '_>,
    value: &Value,
    style: &Style,
) -> Result<String> {
    let mut writer = Writer { state, style, out: String::new() };
    writer.value(value, 0)?;
    charge(state, writer.out.len() * 4)?;
    Ok(writer.out)
}

struct Writer<'a> {
    state: &'a State<'a, 'a>,
    style: &'a Style,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        if depth > MAX_NESTING {
            return value_error("a value nested too deep for JSON");
        }
        match kind(value) {
            Kind::None => self.out.push_str("null"),
            Kind::Bool(b) => self.out.push_str(if b { "true" } else { "false" }),
            Kind::Int(i) => {
                let _ = write!(self.out, "{i}");
            }
            Kind::Float(f) => self.out.push_str(&number(f)),
            Kind::Str(s) => self.string(s),
            Kind::List(items) | Kind::Tuple(items) => self.list(items, depth)?,
            Kind::Dict(map) => {
                let mut pairs = Vec::with_capacity(map.len());
                for (key, item) in map {
                    pairs.push((key.clone(), item.clone()));
                }
                self.dict(pairs, depth)?;
            }
            _ => {
                return type_error(format!(
                    "Object of type {} is not JSON serializable",
                    type_name(value)
                ));
            }
        }
        Ok(())
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<()> {
        if items.is_empty() {
            self.out.push_str("[]");
            return Ok(());
        }
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            self.before_item(i, depth + 1);
            self.value(item, depth + 1)?;
        }
        self.after_items(depth);
        self.out.push(']');
        Ok(())
    }

    fn dict(&mut self, mut pairs: Vec<(Value, Value)>, depth: usize) -> Result<()> {
        if pairs.is_empty() {
            self.out.push_str("{}");
            return Ok(());
        }
        if self.style.sort_keys {
            pairs = compare::sort_by_keys(self.state, pairs, false)?;
        }
        self.out.push('{');
        for (i, (key, item)) in pairs.iter().enumerate() {
            self.before_item(i, depth + 1);
            let text = match kind(key) {
                Kind::Str(s) => s.to_owned(),
                Kind::None => "null".into(),
                Kind::Bool(b) => if b { "true" } else { "false" }.into(),
                Kind::Int(i) => i.to_string(),
                Kind::Float(f) => number(f),
                _ => {
                    return type_error(format!(
                        "keys must be str, int, float, bool or None, not {}",
                        type_name(key)
                    ));
                }
            };
            self.string(&text);
            self.out.push_str(&self.style.key_separator);
            self.value(item, depth + 1)?;
        }
        self.after_items(depth);
        self.out.push('}');
        Ok(())
    }

    fn before_item(&mut self, i: usize, depth: usize) {
        if i > 0 {
            self.out.push_str(&self.style.item_separator);
        }
        self.new_line(depth);
    }

    fn after_items(&mut self, depth: usize) {
        self.new_line(depth);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.style.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn string(&mut self, s: &str) {
        self.out.push('"');
        for c in s.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.style.ensure_ascii && !(' '..='~').contains(&c)) => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn number(f: f64) -> String {
    if f.is_nan() {
        "NaN".into()
    } else if f.is_infinite() {
        if f > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        float(f)
    }
}
