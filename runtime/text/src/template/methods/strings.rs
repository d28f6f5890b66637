//! The other methods of strings: case, tests, padding, formatting.

use minijinja::{State, Value};

use crate::template::format;
use crate::template::runtime::arguments::{integer, optional_integer, required, string};
use crate::template::runtime::arithmetic::{escape, keep_safe};
use crate::template::runtime::kind::{Kind, kind};
use crate::template::runtime::print::is_printable;
use crate::template::runtime::{
    Arguments, Result, charge, iterate, type_error, type_name, unsupported,
};
use crate::template::syntax::is_space;

/// The result, or `None` for a method that is not here.
pub(super) fn call(
    state: &mut State<'_, '_>,
    receiver: &Value,
    s: &str,
    args: Arguments<'_>,
) -> Result<Option<Value>> {
    let name = args.name;
    let safe = |text: String| keep_safe(receiver, text);
    Ok(Some(match name {
        "upper" | "lower" | "title" | "capitalize" | "swapcase" | "casefold" => {
            args.none()?;
            safe(match name {
                "upper" => s.to_uppercase(),
                "lower" => s.to_lowercase(),
                "title" => title(s),
                "capitalize" => capitalize(s),
                "casefold" => casefold(s),
                _ => swapcase(s),
            })
        }
        "center" | "ljust" | "rjust" => {
            let [width, fill] = args.bind(["width", "fillchar"])?;
            let width = integer(&required(width, name, "width")?, name)?;
            let fill = match fill {
                None => ' ',
                Some(fill) => {
                    let fill = string(&fill, name)?;
                    let mut chars = fill.chars();
                    match (chars.next(), chars.next()) {
                        (Some(c), None) => c,
                        _ => {
                            return type_error(
                                "The fill character must be exactly one character long",
                            );
                        }
                    }
                }
            };
            safe(pad(state, s, name, width, fill)?)
        }
        "zfill" => {
            let [width] = args.bind(["width"])?;
            let width = integer(&required(width, name, "width")?, name)?;
            let (sign, digits) = match s.chars().next() {
                Some(c @ ('+' | '-')) => (c.to_string(), s.get(1..).unwrap_or_default()),
                _ => (String::new(), s),
            };
            let width = width - sign.len() as i128;
            safe(sign + &pad(state, digits, "rjust", width, '0')?)
        }
        "expandtabs" => {
            let [size] = args.bind(["tabsize"])?;
            let size = optional_integer(size.as_ref(), name)?.unwrap_or(8);
            safe(expand_tabs(state, s, size)?)
        }
        "join" => {
            let [items] = args.bind(["iterable"])?;
            let items = iterate::items(state, &required(items, name, "iterable")?)?;
            let mut out = String::new();
            for (i, item) in items.iter().enumerate() {
                let Kind::Str(text) = kind(item) else {
                    return type_error(format!(
                        "sequence item {i}: expected str instance, {} found",
                        type_name(item)
                    ));
                };
                charge(state, text.len() + s.len())?;
                if i > 0 {
                    out.push_str(s);
                }
                if receiver.is_safe() && !item.is_safe() {
                    out.push_str(&escape(text));
                } else {
                    out.push_str(text);
                }
            }
            safe(out)
        }
        "format" => {
            let text = format::braces::format(state, s, args.positional, &args.keywords)?;
            safe(text)
        }
        "format_map" => {
            let [mapping] = args.bind(["mapping"])?;
            let mapping = required(mapping, name, "mapping")?;
            let Kind::Dict(map) = kind(&mapping) else {
                return type_error("format_map() argument must be a mapping");
            };
            let keywords = map
                .iter()
                .filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value.clone())))
                .collect();
            safe(format::braces::format(state, s, &[], &keywords)?)
        }
        "encode" => {
            let [encoding, errors] = args.bind(["encoding", "errors"])?;
            let encoding = match &encoding {
                Some(encoding) => string(encoding, name)?.to_lowercase(),
                None => "utf-8".into(),
            };
            if errors.is_some() || !["utf-8", "utf8"].contains(&encoding.as_str()) {
                return unsupported(format!("the encoding {encoding}"));
            }
            Value::from_bytes(s.as_bytes().to_vec())
        }
        "translate" | "maketrans" => {
            return unsupported(format!("the method `str.{name}`"));
        }
        _ => match test(s, name) {
            Some(answer) => {
                args.none()?;
                Value::from(answer)
            }
            None => return Ok(None),
        },
    }))
}

fn test(s: &str, name: &str) -> Option<bool> {
    let all = |test: fn(char) -> bool| !s.is_empty() && s.chars().all(test);
    Some(match name {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(is_letter),
        "isascii" => s.is_ascii(),
        "isdecimal" => all(is_decimal),
        "isdigit" => all(|c| is_decimal(c) || is_digit_form(c)),
        "isnumeric" => all(char::is_numeric),
        "isspace" => all(is_space),
        "isprintable" => s.chars().all(is_printable),
        "isidentifier" => {
            let mut chars = s.chars();
            chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
                && chars.all(|c| c == '_' || c.is_alphanumeric())
        }
        "islower" => s.chars().any(char::is_lowercase) && !s.chars().any(is_upper_or_title),
        "isupper" => {
            s.chars().any(char::is_uppercase)
                && !s.chars().any(|c| c.is_lowercase() || is_title_only(c))
        }
        "istitle" => is_title(s),
        _ => return None,
    })
}

/// Letters, without the combining marks and numbers that Rust counts as alphabetic.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !c.is_numeric()
}

/// A digit of a decimal system: their blocks of ten begin where a number is 0.
fn is_decimal(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    // The decimal digits of other scripts; each entry is a zero.
    const ZEROS: [u32; 36] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
        0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
        0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
        0xff10,
    ];
    let code = u32::from(c);
    ZEROS.iter().any(|zero| (*zero..zero + 10).contains(&code))
        || (0x1d7ce..0x1d800).contains(&code)
}

/// Superscripts, subscripts and circled digits: digits, but not decimal.
fn is_digit_form(c: char) -> bool {
    matches!(
        c,
        '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⑴'..='⑼' | '⒈'..='⒐'
            | '⓪' | '⓵'..='⓽' | '⓿' | '❶'..='❾' | '➀'..='➈' | '➊'..='➒'
    )
}

/// Characters that are one upper-case letter and one lower-case letter together.
fn is_title_only(c: char) -> bool {
    matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ')
}

fn is_upper_or_title(c: char) -> bool {
    c.is_uppercase() || is_title_only(c)
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || is_upper_or_title(c)
}

fn is_title(s: &str) -> bool {
    let (mut cased, mut any) = (false, false);
    for c in s.chars() {
        if is_upper_or_title(c) {
            if cased {
                return false;
            }
            (cased, any) = (true, true);
        } else if c.is_lowercase() {
            if !cased {
                return false;
            }
            any = true;
        } else {
            cased = false;
        }
    }
    any
}

/// The title case of one character: Unicode's upper case, but one capital only.
fn to_title(c: char) -> String {
    match c {
        'ǆ' | 'Ǆ' | 'ǅ' => "ǅ".into(),
        'ǉ' | 'Ǉ' | 'ǈ' => "ǈ".into(),
        'ǌ' | 'Ǌ' | 'ǋ' => "ǋ".into(),
        'ǳ' | 'Ǳ' | 'ǲ' => "ǲ".into(),
        c => {
            let upper: Vec<char> = c.to_uppercase().collect();
            match upper.split_first() {
                Some((first, rest)) if !rest.is_empty() => {
                    let rest: String = rest.iter().flat_map(|c| c.to_lowercase()).collect();
                    first.to_string() + &rest
                }
                _ => upper.into_iter().collect(),
            }
        }
    }
}

fn title(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut cased = false;
    for c in s.chars() {
        if cased {
            out.extend(c.to_lowercase());
        } else {
            out.push_str(&to_title(c));
        }
        cased = is_cased(c);
    }
    out
}

/// The first character in title case, the others in lower case.
pub(in super::super) fn capitalize(s: &str) -> String {
    let mut chars = s.chars();
    match chars.next() {
        Some(first) => to_title(first) + &chars.as_str().to_lowercase(),
        None => String::new(),
    }
}

fn swapcase(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else if c.is_lowercase() {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    }
    out
}

fn casefold(s: &str) -> String {
    s.chars()
        .flat_map(|c| match c {
            'ß' | 'ẞ' => vec!['s', 's'],
            'ς' => vec!['σ'],
            c => c.to_lowercase().collect(),
        })
        .collect()
}

/// Pads on one side or both; Python puts the odd blank of `center` left when the width is odd.
pub(in super::super) fn pad(
    state: &State<'_, '_>,
    s: &str,
    name: &str,
    width: i128,
    fill: char,
) -> Result<String> {
    let length = s.chars().count() as i128;
    let missing = (width - length).max(0);
    let missing = usize::try_from(missing).unwrap_or(usize::MAX);
    state.consume_fuel((missing / 16) as u64)?;
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & usize::from(width % 2 != 0) & 1),
    };
    let blanks = |n: usize| std::iter::repeat_n(fill, n).collect::<String>();
    Ok(blanks(left) + s + &blanks(missing - left))
}

fn expand_tabs(state: &State<'_, '_>, s: &str, size: i128) -> Result<String> {
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    state.consume_fuel(s.matches('\t').count().saturating_mul(size) as u64 / 16)?;
    let mut out = String::with_capacity(s.len());
    let mut column = 0;
    for c in s.chars() {
        match c {
            '\t' if size > 0 => {
                let blanks = size - column % size;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\t' => {}
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    Ok(out)
}
