//! `str` and `repr`.

use std::fmt::Write as _;

use minijinja::{State, Value};

use super::kind::{Kind, Native, kind, native};
use super::{MAX_NESTING, Result, charge, type_name, unsupported, value_error};

/// `str(value)`.
pub(in super::super) fn text(state: &State<'_, '_>, value: &Value) -> Result<String> {
    let mut out = String::new();
    match kind(value) {
        Kind::Str(s) => out.push_str(s),
        Kind::Undefined(_) => {}
        _ => write_repr(&mut out, value, 0)?,
    }
    if !matches!(kind(value), Kind::Str(_)) {
        charge(state, out.len() * 4)?;
    }
    Ok(out)
}

/// `repr(value)`.
pub(in super::super) fn repr(state: &State<'_, '_>, value: &Value) -> Result<String> {
    let mut out = String::new();
    write_repr(&mut out, value, 0)?;
    charge(state, out.len() * 4)?;
    Ok(out)
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<()> {
    if depth > MAX_NESTING {
        return value_error("a value nested too deep to print");
    }
    match kind(value) {
        Kind::Undefined(_) => out.push_str("Undefined"),
        Kind::None => out.push_str("None"),
        Kind::Bool(b) => out.push_str(if b { "True" } else { "False" }),
        Kind::Int(i) => {
            let _ = write!(out, "{i}");
        }
        Kind::Float(f) => out.push_str(&float(f)),
        Kind::Str(s) if value.is_safe() => {
            out.push_str("Markup(");
            write_string(out, s);
            out.push(')');
        }
        Kind::Str(s) => write_string(out, s),
        Kind::Bytes(bytes) => write_bytes(out, bytes),
        Kind::List(items) => write_items(out, "[", items, "]", depth)?,
        Kind::Tuple(items) => {
            write_items(out, "(", items, if items.len() == 1 { ",)" } else { ")" }, depth)?;
        }
        Kind::Dict(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_repr(out, key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, item, depth + 1)?;
            }
            out.push('}');
        }
        Kind::Range(range) => {
            let _ = write!(out, "range({}, {}", range.start, range.stop);
            if range.step != 1 {
                let _ = write!(out, ", {}", range.step);
            }
            out.push(')');
        }
        Kind::View(view) => {
            out.push_str(view.type_name());
            write_items(out, "([", &view.items, "])", depth)?;
        }
        Kind::Namespace(namespace) => {
            out.push_str("<Namespace {");
            for (i, (key, item)) in namespace.entries().iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_string(out, key);
                out.push_str(": ");
                write_repr(out, item, depth + 1)?;
            }
            out.push_str("}>");
        }
        Kind::Other => return write_native(out, value),
        Kind::Generator(_) | Kind::Method(_) | Kind::Function(_) => {
            return unsupported(format!(
                "printing a {} (Python prints its address)",
                type_name(value)
            ));
        }
    }
    Ok(())
}

fn write_native(out: &mut String, value: &Value) -> Result<()> {
    let attribute = |name: &str| value.get_attr(name).unwrap_or_default().to_string();
    match native(value) {
        Native::Loop => {
            let _ = write!(out, "<LoopContext {}/{}>", attribute("index"), attribute("length"));
        }
        Native::Macro => {
            out.push_str("<Macro ");
            write_string(out, &attribute("name"));
            out.push('>');
        }
        Native::Unknown => return unsupported(format!("printing {value:?}")),
    }
    Ok(())
}

fn write_items(
    out: &mut String,
    begin: &str,
    items: &[Value],
    end: &str,
    depth: usize,
) -> Result<()> {
    out.push_str(begin);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_repr(out, item, depth + 1)?;
    }
    out.push_str(end);
    Ok(())
}

/// A string in quotes, as Python's `repr` writes it.
pub(in super::super) fn write_string(out: &mut String, s: &str) {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Python's `isprintable`: `escape_debug` goes by the same categories, and leaves combining marks
/// alone behind another character.
pub(in super::super) fn is_printable(c: char) -> bool {
    matches!(c, '\\' | '"' | '\'') || format!("a{c}").escape_debug().count() == 2
}

fn write_bytes(out: &mut String, bytes: &[u8]) {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    out.push('b');
    out.push(quote);
    for b in bytes {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b if char::from(*b) == quote => {
                out.push('\\');
                out.push(quote);
            }
            b' '..=b'~' => out.push(char::from(*b)),
            b => {
                let _ = write!(out, "\\x{b:02x}");
            }
        }
    }
    out.push(quote);
}

/// A float as Python's `repr` writes it: the shortest digits that read back.
pub(in super::super) fn float(f: f64) -> String {
    if f.is_nan() {
        return "nan".into();
    }
    if f.is_infinite() {
        return if f > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{f}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
