//! `template.format(...)`.

use indexmap::IndexMap;
use minijinja::{State, Value};

use super::numbers::{fixed, general, radix, scientific};
use super::percent::ascii;
use crate::template::FailureKind;
use crate::template::runtime::kind::{Kind, kind};
use crate::template::runtime::{Result, access, fail, print, type_error, type_name, value_error};

/// The most characters of one padded value.
const MAX_WIDTH: usize = 1_000_000;

struct Formatter<'a> {
    positional: &'a [Value],
    keywords: &'a IndexMap<String, Value>,
    automatic: usize,
    numbered: Option<bool>,
}

/// Formats.
pub(in super::super) fn format(
    state: &mut State<'_, '_>,
    template: &str,
    positional: &[Value],
    keywords: &IndexMap<String, Value>,
) -> Result<String> {
    let mut formatter = Formatter { positional, keywords, automatic: 0, numbered: None };
    formatter.run(state, template, 3)
}

impl Formatter<'_> {
    fn run(&mut self, state: &mut State<'_, '_>, template: &str, depth: usize) -> Result<String> {
        if depth == 0 {
            return value_error("Max string recursion exceeded");
        }
        let mut out = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            let (text, tail) = rest.split_at(at);
            out.push_str(text);
            if let Some(after) = tail.strip_prefix("{{") {
                out.push('{');
                rest = after;
            } else if let Some(after) = tail.strip_prefix("}}") {
                out.push('}');
                rest = after;
            } else if tail.starts_with('}') {
                return value_error("Single '}' encountered in format string");
            } else {
                let Some((field, after)) = field(&tail[1..]) else {
                    return value_error("expected '}' before end of string");
                };
                out.push_str(&self.field(state, field, depth)?);
                rest = after;
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn field(&mut self, state: &mut State<'_, '_>, field: &str, depth: usize) -> Result<String> {
        let (name, conversion, spec) = parts(field);
        let value = self.value(name)?;
        let spec = self.run(state, spec, depth - 1)?;
        state.consume_fuel(2)?;
        match conversion {
            None => format_value(state, &value, &spec),
            Some(conversion) => {
                let text = match conversion {
                    "s" => print::text(state, &value)?,
                    "r" => print::repr(state, &value)?,
                    "a" => ascii(&print::repr(state, &value)?),
                    other => {
                        return value_error(format!("Unknown conversion specifier {other}"));
                    }
                };
                format_value(state, &Value::from(text), &spec)
            }
        }
    }

    fn value(&mut self, name: &str) -> Result<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at(end);
        let numbered = |formatter: &mut Self, manual: bool| {
            if formatter.numbered.is_some_and(|before| before != manual) {
                return value_error(
                    "cannot switch between manual field specification and automatic field numbering",
                );
            }
            formatter.numbered = Some(manual);
            Ok(())
        };
        if first.is_empty() && !name.is_empty() {
            return fail(FailureKind::Other, "KeyError: ''");
        }
        let mut value = if first.is_empty() || first.bytes().all(|b| b.is_ascii_digit()) {
            numbered(self, !first.is_empty())?;
            let index = if first.is_empty() {
                self.automatic += 1;
                self.automatic - 1
            } else {
                first.parse().unwrap_or(usize::MAX)
            };
            match self.positional.get(index) {
                Some(value) => value.clone(),
                None => {
                    return fail(
                        FailureKind::Other,
                        format!("Replacement index {index} out of range for positional args tuple"),
                    );
                }
            }
        } else {
            match self.keywords.get(first) {
                Some(value) => value.clone(),
                None => return fail(FailureKind::Other, format!("KeyError: '{first}'")),
            }
        };
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let (attribute, after) = after.split_at(end);
                value = access::attribute(&value, attribute)?;
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let Some((key, after)) = after.split_once(']') else {
                    return value_error("Missing ']' in format string");
                };
                let key = match key.parse::<i64>() {
                    Ok(index) if key.bytes().all(|b| b.is_ascii_digit()) => Value::from(index),
                    _ => Value::from(key),
                };
                value = access::item(&value, &key)?;
                rest = after;
            } else {
                return value_error("Only '.' or '[' may follow ']' in format field specifier");
            }
        }
        Ok(value)
    }
}

/// The text of a field up to its closing brace, and what follows.
fn field(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(..i)?, text.get(i + 1..)?));
        }
    }
    None
}

/// Name, conversion and specification of a field.
fn parts(field: &str) -> (&str, Option<&str>, &str) {
    let mut bracket = false;
    for (i, c) in field.char_indices() {
        match c {
            '[' => bracket = true,
            ']' => bracket = false,
            ':' if !bracket => {
                return (&field[..i], None, &field[i + 1..]);
            }
            '!' if !bracket => {
                let (name, rest) = (&field[..i], &field[i + 1..]);
                return match rest.split_once(':') {
                    Some((conversion, spec)) => (name, Some(conversion), spec),
                    None => (name, Some(rest), ""),
                };
            }
            _ => {}
        }
    }
    (field, None, "")
}

struct Spec {
    fill: char,
    align: Option<char>,
    sign: char,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

fn parse_spec(text: &str) -> Result<Spec> {
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    let mut spec = Spec {
        fill: ' ',
        align: None,
        sign: '-',
        alternate: false,
        width: 0,
        grouping: None,
        precision: None,
        kind: None,
    };
    let is_align = |c: Option<&char>| matches!(c, Some('<' | '>' | '=' | '^'));
    if is_align(chars.get(1)) {
        (spec.fill, spec.align) = (chars[0], Some(chars[1]));
        at = 2;
    } else if is_align(chars.first()) {
        spec.align = Some(chars[0]);
        at = 1;
    }
    let mut take = |options: &[char]| {
        let found = chars.get(at).copied().filter(|c| options.contains(c));
        at += usize::from(found.is_some());
        found
    };
    if let Some(sign) = take(&['+', '-', ' ']) {
        spec.sign = sign;
    }
    spec.alternate = take(&['#']).is_some();
    if take(&['0']).is_some() && spec.align.is_none() {
        (spec.fill, spec.align) = ('0', Some('='));
    }
    const DIGITS: [char; 10] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    let number = |take: &mut dyn FnMut(&[char]) -> Option<char>| {
        let mut n = None;
        while let Some(digit) = take(&DIGITS).and_then(|c| c.to_digit(10)) {
            n = Some((n.unwrap_or(0usize)).saturating_mul(10).saturating_add(digit as usize));
        }
        n
    };
    spec.width = number(&mut take).unwrap_or(0);
    spec.grouping = take(&[',', '_']);
    if take(&['.']).is_some() {
        match number(&mut take) {
            Some(precision) => spec.precision = Some(precision),
            None => return value_error("Format specifier missing precision"),
        }
    }
    spec.kind = chars.get(at).copied();
    if chars.len() > at + 1 {
        return value_error("Invalid format specifier");
    }
    if spec.width > MAX_WIDTH || spec.precision.is_some_and(|p| p > MAX_WIDTH) {
        return value_error(format!("a width or precision of more than {MAX_WIDTH}"));
    }
    Ok(spec)
}

fn format_value(state: &mut State<'_, '_>, value: &Value, text: &str) -> Result<String> {
    let spec = parse_spec(text)?;
    state.consume_fuel((spec.width / 32) as u64)?;
    if text.is_empty() {
        return print::text(state, value);
    }
    let unknown = |kind: char| {
        value_error(format!(
            "Unknown format code '{kind}' for object of type '{}'",
            type_name(value)
        ))
    };
    match kind(value) {
        Kind::Str(s) => match spec.kind {
            None | Some('s') => {
                let cut: String = match spec.precision {
                    Some(precision) => s.chars().take(precision).collect(),
                    None => s.to_owned(),
                };
                if spec.align == Some('=') {
                    return value_error("'=' alignment not allowed in string format specifier");
                }
                Ok(align(&cut, "", &spec, '<'))
            }
            Some(kind) => unknown(kind),
        },
        Kind::Int(i) => match spec.kind {
            None | Some('d' | 'n' | 'b' | 'o' | 'x' | 'X' | 'c') => integer(i, &spec),
            Some(_) => float(i as f64, &spec).map_or_else(|| unknown(spec.kind.unwrap_or('?')), Ok),
        },
        Kind::Bool(b) => match spec.kind {
            None => integer(i128::from(b), &spec),
            Some('s') => unknown('s'),
            Some('d' | 'n' | 'b' | 'o' | 'x' | 'X' | 'c') => integer(i128::from(b), &spec),
            Some(kind) => float(f64::from(u8::from(b)), &spec).map_or_else(|| unknown(kind), Ok),
        },
        Kind::Float(f) => float(f, &spec).map_or_else(|| unknown(spec.kind.unwrap_or('?')), Ok),
        _ => type_error(format!(
            "unsupported format string passed to {}.__format__",
            type_name(value)
        )),
    }
}

fn integer(i: i128, spec: &Spec) -> Result<String> {
    if spec.precision.is_some() {
        return value_error("Precision not allowed in integer format specifier");
    }
    let kind = spec.kind.unwrap_or('d');
    if kind == 'c' {
        return match u32::try_from(i).ok().and_then(char::from_u32) {
            Some(c) => Ok(align(&c.to_string(), "", spec, '<')),
            None => value_error("%c arg not in range(0x110000)"),
        };
    }
    let digits = radix(i.unsigned_abs(), kind);
    let every = if matches!(kind, 'b' | 'o' | 'x' | 'X') { 4 } else { 3 };
    let mut prefix = sign(i < 0, spec);
    if spec.alternate {
        match kind {
            'b' => prefix += "0b",
            'o' => prefix += "0o",
            'x' => prefix += "0x",
            'X' => prefix += "0X",
            _ => {}
        }
    }
    Ok(align(&grouped(&digits, spec, every, prefix.len()), &prefix, spec, '>'))
}

fn float(f: f64, spec: &Spec) -> Option<String> {
    let magnitude = f.abs();
    let precision = spec.precision.unwrap_or(6);
    let mut text = match spec.kind {
        Some('f' | 'F') => fixed(magnitude, precision),
        Some('e' | 'E') => scientific(magnitude, precision),
        Some('g' | 'G' | 'n') => general(magnitude, precision, spec.alternate),
        Some('%') => fixed(magnitude * 100.0, precision) + "%",
        None => match spec.precision {
            None => print::float(magnitude),
            Some(precision) => {
                let text = general(magnitude, precision, false);
                if text.contains(['.', 'e', 'n', 'i']) { text } else { text + ".0" }
            }
        },
        Some(_) => return None,
    };
    if matches!(spec.kind, Some('F' | 'E' | 'G')) {
        text = text.to_uppercase();
    }
    let prefix = sign(f.is_sign_negative() && !f.is_nan(), spec);
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(end);
    let text = grouped(whole, spec, 3, prefix.len() + rest.len()) + rest;
    Some(align(&text, &prefix, spec, '>'))
}

fn sign(negative: bool, spec: &Spec) -> String {
    match (negative, spec.sign) {
        (true, _) => "-".into(),
        (false, '-') => String::new(),
        (false, sign) => sign.to_string(),
    }
}

/// Digits in groups; zeros that fill the width are grouped with them.
fn grouped(digits: &str, spec: &Spec, every: usize, beside: usize) -> String {
    let Some(separator) = spec.grouping else { return digits.to_owned() };
    let group = |digits: &str| {
        let mut out = String::new();
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(every) {
                out.push(separator);
            }
            out.push(c);
        }
        out
    };
    let mut digits = digits.to_owned();
    let mut text = group(&digits);
    if spec.fill == '0' && spec.align == Some('=') {
        while text.len() + beside < spec.width {
            digits.insert(0, '0');
            text = group(&digits);
        }
        if text.len() + beside > spec.width && text.starts_with(separator) {
            text.remove(0);
        }
    }
    text
}

fn align(text: &str, prefix: &str, spec: &Spec, default: char) -> String {
    let length = text.chars().count() + prefix.chars().count();
    let missing = spec.width.saturating_sub(length);
    let fill = |n: usize| std::iter::repeat_n(spec.fill, n).collect::<String>();
    match spec.align.unwrap_or(default) {
        '<' => format!("{prefix}{text}{}", fill(missing)),
        '^' => {
            let left = missing / 2;
            format!("{}{prefix}{text}{}", fill(left), fill(missing - left))
        }
        '=' => format!("{prefix}{}{text}", fill(missing)),
        _ => format!("{}{prefix}{text}", fill(missing)),
    }
}
