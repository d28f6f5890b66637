//! The token stream of a template, with `trim_blocks` and `lstrip_blocks`.

use super::{Result, SyntaxError, is_space};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Token {
    /// Text outside of tags, after whitespace control.
    Data(String),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(String),
    Str(String),
    Int(i128),
    Float(f64),
    Op(&'static str),
    Eof,
}

impl Token {
    /// How an error message names it.
    pub fn describe(&self) -> String {
        match self {
            Self::Data(_) => "template data".into(),
            Self::VariableBegin => "begin of print statement".into(),
            Self::VariableEnd => "end of print statement".into(),
            Self::BlockBegin => "begin of statement block".into(),
            Self::BlockEnd => "end of statement block".into(),
            Self::Name(name) => name.clone(),
            Self::Str(_) => "string".into(),
            Self::Int(_) => "integer".into(),
            Self::Float(_) => "float".into(),
            Self::Op(op) => (*op).to_owned(),
            Self::Eof => "end of template".into(),
        }
    }
}

/// Tokens with their lines.
pub(super) type Tokens = Vec<(Token, usize)>;

const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
    ">", "<", "=", ".", ":", "|", ",", ";",
];

/// Lines ends become `\n`, and one at the very end is dropped.
pub(in super::super) fn normalise(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

struct Lexer<'a> {
    source: &'a str,
    pos: usize,
    line: usize,
    line_starting: bool,
    tokens: Tokens,
}

/// Splits a normalised template into tokens.
pub(super) fn tokenize(source: &str) -> Result<Tokens> {
    let mut lexer = Lexer { source, pos: 0, line: 1, line_starting: true, tokens: Vec::new() };
    while lexer.pos < source.len() {
        lexer.root()?;
    }
    let line = lexer.line;
    lexer.tokens.push((Token::Eof, line));
    Ok(lexer.tokens)
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.pos..).unwrap_or_default()
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(SyntaxError::new(self.line, message))
    }

    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.line));
    }

    /// Moves on by `n` bytes, counting lines.
    fn take(&mut self, n: usize) -> &'a str {
        let text = self.rest().get(..n).unwrap_or_default();
        self.pos += text.len();
        self.line += text.matches('\n').count();
        if !text.is_empty() {
            self.line_starting = text.ends_with('\n');
        }
        text
    }

    fn spaces(text: &str) -> usize {
        text.len() - text.trim_start_matches(is_space).len()
    }

    /// Text up to the next tag, and the tag.
    fn root(&mut self) -> Result<()> {
        let rest = self.rest();
        let begin = rest
            .match_indices('{')
            .map(|(i, _)| i)
            .find(|&i| matches!(rest.as_bytes().get(i + 1), Some(b'{' | b'%' | b'#')));
        let Some(begin) = begin else {
            let data = self.take(rest.len()).to_owned();
            self.tokens.push((Token::Data(data), self.line));
            return Ok(());
        };
        let tag = rest.as_bytes()[begin + 1];
        let sign = match rest.as_bytes().get(begin + 2) {
            Some(b'-') => "-",
            Some(b'+') => "+",
            _ => "",
        };
        self.data(begin, sign, tag == b'{');
        if tag == b'%'
            && let Some(length) = raw_begin(self.rest(), sign)
        {
            self.take(length);
            return self.raw();
        }
        self.take(2 + sign.len());
        match tag {
            b'#' => self.comment(),
            b'{' => {
                self.push(Token::VariableBegin);
                self.tag(Token::VariableEnd)
            }
            _ => {
                self.push(Token::BlockBegin);
                self.tag(Token::BlockEnd)
            }
        }
    }

    /// Emits the text before a tag: stripped by `-`, or of blanks at the start of the tag's line.
    fn data(&mut self, length: usize, sign: &str, is_variable: bool) {
        let text = self.rest().get(..length).unwrap_or_default();
        let line_starting = self.line_starting;
        let line = self.line;
        self.take(length);
        let kept = if sign == "-" {
            text.trim_end_matches(is_space)
        } else if sign != "+" && !is_variable {
            let start = text.rfind('\n').map_or(0, |i| i + 1);
            let indent = text.get(start..).unwrap_or_default();
            let at_start = start > 0 || line_starting;
            if at_start && !indent.is_empty() && indent.chars().all(is_space) {
                text.get(..start).unwrap_or_default()
            } else {
                text
            }
        } else {
            text
        };
        if !kept.is_empty() {
            self.tokens.push((Token::Data(kept.to_owned()), line));
        }
    }

    fn comment(&mut self) -> Result<()> {
        let rest = self.rest();
        let Some(end) = rest.find("#}") else {
            return self.fail("Missing end of comment tag");
        };
        let sign = end.checked_sub(1).and_then(|i| rest.as_bytes().get(i)).copied();
        let after = rest.get(end + 2..).unwrap_or_default();
        self.take(end + 2 + suffix(sign, after));
        Ok(())
    }

    fn raw(&mut self) -> Result<()> {
        let rest = self.rest();
        for (begin, _) in rest.match_indices("{%") {
            let tail = rest.get(begin + 2..).unwrap_or_default();
            let sign = match tail.as_bytes().first() {
                Some(b'-') => "-",
                Some(b'+') => "+",
                _ => "",
            };
            let body = tail.get(sign.len()..).unwrap_or_default();
            let body_trimmed = body.trim_start_matches(is_space);
            let Some(after) = body_trimmed.strip_prefix("endraw") else { continue };
            let after = after.trim_start_matches(is_space);
            let end_sign = after.as_bytes().first().copied().filter(|b| matches!(b, b'-' | b'+'));
            let closing = after.get(usize::from(end_sign.is_some())..).unwrap_or_default();
            let Some(following) = closing.strip_prefix("%}") else { continue };
            self.data(begin, sign, false);
            let length = rest.len() - begin - following.len();
            self.take(length + suffix(end_sign, following));
            return Ok(());
        }
        self.fail("Missing end of raw directive")
    }

    /// The tokens of a tag, up to and with its end.
    fn tag(&mut self, end: Token) -> Result<()> {
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(());
            }
            if open.is_empty()
                && let Some(length) = tag_end(rest, &end)
            {
                self.push(end);
                self.take(length);
                return Ok(());
            }
            let blank = Self::spaces(rest);
            if blank > 0 {
                self.take(blank);
                continue;
            }
            let previous = self.pos.checked_sub(1).and_then(|i| self.source.as_bytes().get(i));
            if let Some(length) = float_length(rest, previous.copied()) {
                let text: String = rest.chars().take(length).filter(|c| *c != '_').collect();
                let value = text.parse().or_else(|_| self.fail(format!("bad number {text}")))?;
                self.push(Token::Float(value));
                self.take(length);
            } else if let Some((length, value)) = integer(rest) {
                let Some(value) = value else {
                    return self.fail("an integer of more than 127 bits cannot be served");
                };
                self.push(Token::Int(value));
                self.take(length);
            } else if let Some(length) = name_length(rest) {
                let name = rest.get(..length).unwrap_or_default();
                self.push(Token::Name(name.to_owned()));
                self.take(length);
            } else if let Some(length) = string_length(rest) {
                let inner = rest.get(1..length - 1).unwrap_or_default();
                let value = unescape(inner).or_else(|message| self.fail(message))?;
                self.push(Token::Str(value));
                self.take(length);
            } else {
                self.operator(&mut open)?;
            }
        }
    }

    fn operator(&mut self, open: &mut Vec<&'static str>) -> Result<()> {
        let rest = self.rest();
        let Some(op) = OPERATORS.into_iter().find(|op| rest.starts_with(op)) else {
            let found = rest.chars().next().unwrap_or_default();
            return self.fail(format!("unexpected char {found:?}"));
        };
        match op {
            "{" => open.push("}"),
            "(" => open.push(")"),
            "[" => open.push("]"),
            "}" | ")" | "]" => match open.pop() {
                None => return self.fail(format!("unexpected '{op}'")),
                Some(expected) if expected != op => {
                    return self.fail(format!("unexpected '{op}', expected '{expected}'"));
                }
                Some(_) => {}
            },
            _ => {}
        }
        self.push(Token::Op(op));
        self.take(op.len());
        Ok(())
    }
}

/// What follows a closing tag and goes with it: blanks after `-`, one line end after none.
fn suffix(sign: Option<u8>, after: &str) -> usize {
    match sign {
        Some(b'-') => Lexer::spaces(after),
        Some(b'+') => 0,
        _ => usize::from(after.starts_with('\n')),
    }
}

fn raw_begin(rest: &str, sign: &str) -> Option<usize> {
    let body = rest.get(2 + sign.len()..)?.trim_start_matches(is_space);
    let after = body.strip_prefix("raw")?.trim_start_matches(is_space);
    let following = if let Some(following) = after.strip_prefix("-%}") {
        following.trim_start_matches(is_space)
    } else {
        after.strip_prefix("%}")?
    };
    Some(rest.len() - following.len())
}

fn tag_end(rest: &str, end: &Token) -> Option<usize> {
    let close = if *end == Token::BlockEnd { "%}" } else { "}}" };
    if let Some(after) = rest.strip_prefix('-').and_then(|r| r.strip_prefix(close)) {
        return Some(3 + Lexer::spaces(after));
    }
    if *end == Token::BlockEnd && rest.strip_prefix('+').is_some_and(|r| r.starts_with(close)) {
        return Some(3);
    }
    let after = rest.strip_prefix(close)?;
    Some(2 + if *end == Token::BlockEnd { suffix(None, after) } else { 0 })
}

/// Length of decimal digits in which single `_` may stand between two.
fn digits(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut n = 0;
    while bytes.get(n).is_some_and(u8::is_ascii_digit)
        || (n > 0
            && bytes.get(n) == Some(&b'_')
            && bytes.get(n + 1).is_some_and(u8::is_ascii_digit))
    {
        n += 1;
    }
    n
}

fn float_length(text: &str, previous: Option<u8>) -> Option<usize> {
    if previous == Some(b'.') {
        return None;
    }
    let whole = digits(text);
    if whole == 0 {
        return None;
    }
    let tail = text.get(whole..).unwrap_or_default();
    let fraction = match tail.strip_prefix('.').map(digits) {
        Some(n) if n > 0 => 1 + n,
        _ => 0,
    };
    let after = tail.get(fraction..).unwrap_or_default();
    let exponent = match after.as_bytes().first() {
        Some(b'e' | b'E') => {
            let sign = usize::from(matches!(after.as_bytes().get(1), Some(b'+' | b'-')));
            match digits(after.get(1 + sign..).unwrap_or_default()) {
                0 => 0,
                n => 1 + sign + n,
            }
        }
        _ => 0,
    };
    (fraction + exponent > 0).then_some(whole + fraction + exponent)
}

/// Length and value of an integer; no value when it is too large.
fn integer(text: &str) -> Option<(usize, Option<i128>)> {
    let bytes = text.as_bytes();
    let radix = match (bytes.first(), bytes.get(1)) {
        (Some(b'0'), Some(b'b' | b'B')) => 2,
        (Some(b'0'), Some(b'o' | b'O')) => 8,
        (Some(b'0'), Some(b'x' | b'X')) => 16,
        _ => 10,
    };
    if radix != 10 {
        let is_digit = |b: &u8| char::from(*b).is_digit(radix);
        let mut n = 2;
        loop {
            if bytes.get(n).is_some_and(is_digit) {
                n += 1;
            } else if bytes.get(n) == Some(&b'_') && bytes.get(n + 1).is_some_and(is_digit) {
                n += 2;
            } else {
                break;
            }
        }
        if n > 2 {
            let clean: String = text.chars().take(n).skip(2).filter(|c| *c != '_').collect();
            return Some((n, i128::from_str_radix(&clean, radix).ok()));
        }
    }
    let mut n = digits(text);
    if bytes.first() == Some(&b'0') {
        // A leading zero takes only further zeros along.
        n = bytes.iter().take(n).take_while(|b| matches!(b, b'0' | b'_')).count();
    }
    if n == 0 {
        return None;
    }
    let clean: String = text.chars().take(n).filter(|c| *c != '_').collect();
    Some((n, clean.parse().ok()))
}

fn name_length(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if !(first == '_' || first.is_alphabetic()) {
        return None;
    }
    let end = text.find(|c: char| !(c == '_' || c.is_alphanumeric()));
    Some(end.unwrap_or(text.len()))
}

/// Length of a quoted string with its quotes.
fn string_length(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(i + 1);
        }
    }
    None
}

/// Python's escapes in a string literal; an unknown one stays as it is written.
fn unescape(text: &str) -> std::result::Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else {
            return Err("\\ at end of string".into());
        };
        match kind {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(kind),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            'x' | 'u' | 'U' => {
                let length = match kind {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let mut code = code_point(&mut chars, length, kind)?;
                // Two halves of a pair, written as Python 2 and JSON do, are one character.
                if (0xd800..0xdc00).contains(&code) {
                    let mut ahead = chars.clone();
                    if ahead.next() == Some('\\') && ahead.next() == Some('u') {
                        let low = code_point(&mut ahead, 4, 'u')?;
                        if (0xdc00..0xe000).contains(&low) {
                            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                            chars = ahead;
                        }
                    }
                }
                let c = char::from_u32(code).ok_or("illegal Unicode character in a string")?;
                out.push(c);
            }
            '0'..='7' => {
                let mut code = kind.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    match chars.peek().and_then(|c| c.to_digit(8)) {
                        Some(digit) => {
                            code = code * 8 + digit;
                            chars.next();
                        }
                        None => break,
                    }
                }
                out.push(char::from_u32(code).ok_or("illegal character in a string")?);
            }
            'N' => return Err("\\N{...} in a string cannot be served".into()),
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    Ok(out)
}

fn code_point(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    length: usize,
    kind: char,
) -> std::result::Result<u32, String> {
    let mut code: u32 = 0;
    for _ in 0..length {
        let digit = chars
            .next()
            .and_then(|c| c.to_digit(16))
            .ok_or_else(|| format!("truncated \\{kind} escape"))?;
        code = code.checked_mul(16).and_then(|c| c.checked_add(digit)).unwrap_or(u32::MAX);
    }
    Ok(code)
}
