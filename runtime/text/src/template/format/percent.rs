//! `template % values`.

use minijinja::{State, Value};

use super::numbers::{fixed, general, radix, scientific};
use crate::template::FailureKind;
use crate::template::runtime::kind::{Kind, as_int, kind};
use crate::template::runtime::{Result, access, fail, print, type_error, type_name, value_error};

/// The most characters of one padded value.
const MAX_WIDTH: usize = 1_000_000;

#[derive(Default)]
struct Spec {
    minus: bool,
    plus: bool,
    blank: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Where values are taken from.
struct Values<'a> {
    value: &'a Value,
    used: usize,
    by_name: bool,
}

impl Values<'_> {
    fn next(&mut self) -> Result<Value> {
        let found = match kind(self.value) {
            Kind::Tuple(items) => items.get(self.used).cloned(),
            _ if self.used == 0 => Some(self.value.clone()),
            _ => None,
        };
        self.used += 1;
        match found {
            Some(value) => Ok(value),
            None => type_error("not enough arguments for format string"),
        }
    }

    fn named(&mut self, name: &str) -> Result<Value> {
        self.by_name = true;
        let Kind::Dict(map) = kind(self.value) else {
            return type_error("format requires a mapping");
        };
        match access::lookup(map, &Value::from(name)) {
            Some(value) => Ok(value),
            None => fail(FailureKind::Other, format!("KeyError: '{name}'")),
        }
    }

    fn check_all_used(&self) -> Result<()> {
        let left_over = match kind(self.value) {
            Kind::Tuple(items) => self.used < items.len(),
            Kind::Dict(_) | Kind::List(_) => false,
            _ => self.used == 0,
        };
        if left_over && !self.by_name {
            return type_error("not all arguments converted during string formatting");
        }
        Ok(())
    }
}

/// Formats.
pub(in super::super) fn format(
    state: &mut State<'_, '_>,
    template: &str,
    value: &Value,
) -> Result<String> {
    let mut values = Values { value, used: 0, by_name: false };
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut named = None;
        if chars.next_if_eq(&'(').is_some() {
            let mut name = String::new();
            let mut depth = 1;
            loop {
                let Some(c) = chars.next() else { return value_error("incomplete format key") };
                depth += match c {
                    '(' => 1,
                    ')' => -1,
                    _ => 0,
                };
                if depth == 0 {
                    break;
                }
                name.push(c);
            }
            named = Some(values.named(&name)?);
        }
        let mut spec = Spec::default();
        while let Some(c) = chars.next_if(|c| matches!(c, '-' | '+' | ' ' | '0' | '#')) {
            match c {
                '-' => spec.minus = true,
                '+' => spec.plus = true,
                ' ' => spec.blank = true,
                '0' => spec.zero = true,
                _ => spec.alternate = true,
            }
        }
        if chars.next_if_eq(&'*').is_some() {
            let width = star(&values.next()?)?;
            spec.minus |= width < 0;
            spec.width = bounded(width.unsigned_abs())?;
        } else {
            spec.width = digits(&mut chars)?;
        }
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(if chars.next_if_eq(&'*').is_some() {
                bounded(star(&values.next()?)?.max(0).unsigned_abs())?
            } else {
                digits(&mut chars)?
            });
        }
        while chars.next_if(|c| matches!(c, 'h' | 'l' | 'L')).is_some() {}
        let Some(letter) = chars.next() else { return value_error("incomplete format") };
        if letter == '%' {
            out.push('%');
            continue;
        }
        let value = match named {
            Some(value) => value,
            None => values.next()?,
        };
        state.consume_fuel((spec.width / 32) as u64 + 1)?;
        out.push_str(&one(state, letter, &spec, &value)?);
    }
    values.check_all_used()?;
    Ok(out)
}

fn star(value: &Value) -> Result<i128> {
    match as_int(value) {
        Some(i) => Ok(i),
        None => type_error("* wants int"),
    }
}

fn bounded(n: u128) -> Result<usize> {
    match usize::try_from(n) {
        Ok(n) if n <= MAX_WIDTH => Ok(n),
        _ => value_error(format!("a width or precision of more than {MAX_WIDTH}")),
    }
}

fn digits(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<usize> {
    let mut n: u128 = 0;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        n = n.saturating_mul(10).saturating_add(u128::from(digit));
        chars.next();
    }
    bounded(n)
}

fn one(state: &mut State<'_, '_>, letter: char, spec: &Spec, value: &Value) -> Result<String> {
    match letter {
        's' | 'r' | 'a' => {
            let mut text = match letter {
                's' => print::text(state, value)?,
                _ => print::repr(state, value)?,
            };
            if letter == 'a' {
                text = ascii(&text);
            }
            if let Some(precision) = spec.precision {
                text = text.chars().take(precision).collect();
            }
            Ok(padded(text, String::new(), spec, false))
        }
        'c' => {
            let text = match kind(value) {
                Kind::Str(s) if s.chars().count() == 1 => s.to_owned(),
                _ => {
                    match as_int(value).and_then(|i| u32::try_from(i).ok()).and_then(char::from_u32)
                    {
                        Some(c) => c.to_string(),
                        None => return type_error("%c requires int or char"),
                    }
                }
            };
            Ok(padded(text, String::new(), spec, false))
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let whole = match kind(value) {
                Kind::Float(f) if f.is_finite() && matches!(letter, 'd' | 'i' | 'u') => {
                    Some(f.trunc() as i128)
                }
                _ => as_int(value),
            };
            let Some(whole) = whole else {
                let wanted =
                    if matches!(letter, 'd' | 'i' | 'u') { "a real number" } else { "an integer" };
                return type_error(format!(
                    "%{letter} format: {wanted} is required, not {}",
                    type_name(value)
                ));
            };
            let mut text = radix(whole.unsigned_abs(), letter);
            if let Some(precision) = spec.precision {
                let fill = precision.saturating_sub(text.len());
                text = "0".repeat(fill) + &text;
            }
            let mut prefix = sign(whole < 0, spec);
            if spec.alternate {
                match letter {
                    'x' => prefix += "0x",
                    'X' => prefix += "0X",
                    'o' => prefix += "0o",
                    _ => {}
                }
            }
            Ok(padded(text, prefix, spec, true))
        }
        'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
            let number = match kind(value) {
                Kind::Float(f) => f,
                _ => match as_int(value) {
                    Some(i) => i as f64,
                    None => {
                        return type_error(format!(
                            "must be real number, not {}",
                            type_name(value)
                        ));
                    }
                },
            };
            let precision = spec.precision.unwrap_or(6);
            let magnitude = number.abs();
            let mut text = match letter.to_ascii_lowercase() {
                'f' => fixed(magnitude, precision),
                'e' => scientific(magnitude, precision),
                _ => general(magnitude, precision, spec.alternate),
            };
            if letter.is_ascii_uppercase() {
                text = text.to_uppercase();
            }
            let negative = number.is_sign_negative() && !number.is_nan();
            Ok(padded(text, sign(negative, spec), spec, number.is_finite()))
        }
        other => value_error(format!("unsupported format character '{other}'")),
    }
}

fn sign(negative: bool, spec: &Spec) -> String {
    if negative {
        "-".into()
    } else if spec.plus {
        "+".into()
    } else if spec.blank {
        " ".into()
    } else {
        String::new()
    }
}

fn padded(text: String, prefix: String, spec: &Spec, zeros: bool) -> String {
    let length = text.chars().count() + prefix.chars().count();
    let missing = spec.width.saturating_sub(length);
    if spec.minus {
        prefix + &text + &" ".repeat(missing)
    } else if spec.zero && zeros {
        prefix + &"0".repeat(missing) + &text
    } else {
        " ".repeat(missing) + &prefix + &text
    }
}

/// Characters beyond ASCII as escapes.
pub(super) fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| match u32::from(c) {
            0..=0x7f => c.to_string(),
            code @ 0x80..=0xff => format!("\\x{code:02x}"),
            code @ 0x100..=0xffff => format!("\\u{code:04x}"),
            code => format!("\\U{code:08x}"),
        })
        .collect()
}
