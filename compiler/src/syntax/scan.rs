//! Tokens of a text, and what is checked on them alone: characters, quotes, brackets, nesting.

use pest::Parser as _;

use super::grammar::{Grammar, Rule};
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span};

/// Brackets and open `if`s may nest this deep: the parser descends once for each.
pub const MAX_NESTING: usize = 48;

/// Longest text that is parsed, in bytes.
pub const MAX_TEXT: usize = 4 << 20;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `/// ...`
    Doc,
    /// `# ...`
    Comment,
    /// A quoted string.
    Str,
    /// A number.
    Number,
    /// A name or keyword.
    Word,
    /// An operator, bracket or separator.
    Symbol,
    /// A character that belongs to nothing.
    Junk,
}

/// A token and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}

impl Token {
    /// Its text.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.start..self.end).unwrap_or("")
    }

    /// Whether it is a comment or doc line.
    pub fn is_comment(&self) -> bool {
        matches!(self.kind, TokenKind::Doc | TokenKind::Comment)
    }
}

/// Splits a whole text; every byte that is not blank lies in one token.
pub fn tokens(text: &str) -> Vec<Token> {
    // `tokens` ends in `junk*`, so it matches every text; an error would mean no tokens at all.
    let Ok(pairs) = Grammar::parse(Rule::tokens, text) else { return Vec::new() };
    let inner = pairs.flat_map(|pair| pair.into_inner());
    inner
        .filter_map(|pair| {
            let kind = match pair.as_rule() {
                Rule::doc => TokenKind::Doc,
                Rule::comment => TokenKind::Comment,
                Rule::string => TokenKind::Str,
                Rule::number => TokenKind::Number,
                Rule::word => TokenKind::Word,
                Rule::symbol => TokenKind::Symbol,
                Rule::junk => TokenKind::Junk,
                _ => return None,
            };
            let span = pair.as_span();
            Some(Token { kind, start: span.start(), end: span.end() })
        })
        .collect()
}

/// A text's tokens without comments, with the errors that show on tokens.
pub struct Scan<'a> {
    /// The text.
    pub text: &'a str,
    /// Every token but comments; doc lines are in `docs`.
    pub tokens: Vec<Token>,
    /// `///` lines.
    pub docs: Vec<Token>,
    /// For each token, how many brackets are open around it.
    pub depth: Vec<usize>,
    /// Places already reported, in order.
    reported: Vec<usize>,
    /// Those of them that forbid parsing what holds them: brackets that do not match or nest too deep.
    barred: Vec<usize>,
}

impl<'a> Scan<'a> {
    /// Scans `text`; `at` places a range of it in its file.
    pub fn new(
        text: &'a str,
        at: &dyn Fn(usize, usize) -> Span,
        diags: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut scan = Scan {
            text,
            tokens: Vec::new(),
            docs: Vec::new(),
            depth: Vec::new(),
            reported: Vec::new(),
            barred: Vec::new(),
        };
        let mut all = tokens(text).into_iter().peekable();
        while let Some(token) = all.next() {
            match token.kind {
                TokenKind::Doc => scan.docs.push(token),
                TokenKind::Comment => {}
                TokenKind::Symbol
                    if token.text(text) == "//" && first_on_line(text, token.start) =>
                {
                    let line = text.get(token.start..).and_then(|rest| rest.find('\n'));
                    let end = line.map_or(text.len(), |line| token.start + line);
                    scan.reported.push(token.start);
                    diags.push(
                        Diagnostic::error(
                            Code::UnexpectedText,
                            at(
                                token.start,
                                token.start
                                    + text.get(token.start..end).unwrap_or("").trim_end().len(),
                            ),
                            "a line cannot start with `//`",
                        )
                        .help("comments start with `#`, docs of an item with `///`")
                        .help("to divide integers over two lines, end the first one with `//`"),
                    );
                    while all.next_if(|next| next.start < end).is_some() {}
                }
                TokenKind::Junk => {
                    let end = scan.junk(token, at, diags);
                    scan.reported.push(token.start);
                    while all.next_if(|next| next.start < end).is_some() {}
                }
                _ => scan.tokens.push(token),
            }
        }
        scan.nesting(at, diags);
        scan.barred.sort_unstable();
        scan.reported.extend(&scan.barred);
        scan.reported.sort_unstable();
        scan
    }

    /// Whether something in this range has been reported.
    pub fn reported_in(&self, start: usize, end: usize) -> bool {
        any_in(&self.reported, start, end)
    }

    /// Whether this range must not be parsed: its brackets do not match or nest too deep.
    pub fn unsafe_in(&self, start: usize, end: usize) -> bool {
        any_in(&self.barred, start, end)
    }

    /// Reports a character that starts no token; returns where scanning goes on.
    fn junk(
        &self,
        token: Token,
        at: &dyn Fn(usize, usize) -> Span,
        diags: &mut Vec<Diagnostic>,
    ) -> usize {
        let rest = self.text.get(token.start..).unwrap_or("");
        let line = rest.split('\n').next().unwrap_or("");
        let first = rest.chars().next().unwrap_or(' ');
        if matches!(first, '"' | '\'') {
            let end = token.start + line.trim_end().len();
            diags.push(
                Diagnostic::error(
                    Code::UnclosedString,
                    at(token.start, end),
                    "this string has no closing quote",
                )
                .help(format!("close it on the same line with `{first}`")),
            );
            return token.start + line.len();
        }
        if first.is_ascii_digit() {
            let len = line
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
                .unwrap_or(line.len());
            let word = &line[..len];
            diags.push(
                Diagnostic::error(
                    Code::BadNumber,
                    at(token.start, token.start + len),
                    format!("`{word}` is not a number"),
                )
                .help("numbers are written 12, 1_000, 0.5 or 1e-6; names start with a letter"),
            );
            return token.start + len;
        }
        let run = match first {
            '&' if rest.starts_with("&&") => "&&",
            _ => rest.get(..first.len_utf8()).unwrap_or(""),
        };
        let mut found = Diagnostic::error(
            Code::UnexpectedCharacter,
            at(token.start, token.start + run.len()),
            format!("unexpected character `{}`", run.escape_debug()),
        );
        if let Some(help) = match run {
            "&&" | "&" => Some("write `and`"),
            "!" => Some("write `not x`, or `a != b`"),
            "^" => Some("powers are written `a ** b`"),
            "“" | "”" | "‘" | "’" | "`" => {
                Some("strings stand in plain quotes: \"q_proj\"")
            }
            "−" | "–" | "—" => Some("the minus sign is `-`"),
            "→" => Some("the arrow is written `->`"),
            "×" => Some("multiplication is written `*`"),
            _ => None,
        } {
            found = found.help(help);
        }
        diags.push(found);
        token.start + run.len()
    }

    /// Matches brackets and bounds their nesting.
    fn nesting(&mut self, at: &dyn Fn(usize, usize) -> Span, diags: &mut Vec<Diagnostic>) {
        let mut open: Vec<Token> = Vec::new();
        let mut pending = 0usize;
        let mut too_deep = false;
        for index in 0..self.tokens.len() {
            let token = self.tokens[index]; // the loop's own bound
            let text = token.text(self.text);
            if !open.is_empty() && starts_item(self.text, &token) {
                // An item keyword in the first column: whatever is still open was left so.
                self.unclosed(&open, at, diags);
                open.clear();
                pending = 0;
            }
            match text {
                "(" | "[" | "{" if token.kind == TokenKind::Symbol => {
                    self.depth.push(open.len());
                    open.push(token);
                    if text == "{" {
                        pending = pending.saturating_sub(1);
                    }
                    if open.len() + pending > MAX_NESTING && !too_deep {
                        too_deep = true;
                        diags.push(too_deep_error(at(token.start, token.end)));
                        self.barred.push(token.start);
                    }
                    continue;
                }
                ")" | "]" | "}" if token.kind == TokenKind::Symbol => match open.last() {
                    Some(last) if closes(last.text(self.text), text) => {
                        open.pop();
                    }
                    Some(last) => {
                        let last = *last;
                        // The rest of a line behind an open quote was not read: its brackets are missing.
                        if !any_in(&self.reported, last.start, token.start) {
                            diags.push(self.mismatch(&open, &last, &token, at));
                        }
                        self.barred.push(token.start);
                        // Take it as the closer of the nearest opener that fits, if there is one.
                        match open.iter().rposition(|t| closes(t.text(self.text), text)) {
                            Some(index) => open.truncate(index),
                            None => {
                                open.pop();
                            }
                        }
                    }
                    None => {
                        diags.push(
                            Diagnostic::error(
                                Code::Unbalanced,
                                at(token.start, token.end),
                                format!("`{text}` closes nothing"),
                            )
                            .help("a bracket before it is missing, or this one is one too many"),
                        );
                        self.barred.push(token.start);
                    }
                },
                "if" | "match" | "for" => {
                    pending += 1;
                    if open.len() + pending > MAX_NESTING && !too_deep {
                        too_deep = true;
                        diags.push(too_deep_error(at(token.start, token.end)));
                        self.barred.push(token.start);
                    }
                }
                ";" | "=" => pending = 0,
                _ => {}
            }
            self.depth.push(open.len());
        }
        self.unclosed(&open, at, diags);
    }

    /// A closer that does not fit the innermost opener.
    fn mismatch(
        &self,
        open: &[Token],
        last: &Token,
        closing: &Token,
        at: &dyn Fn(usize, usize) -> Span,
    ) -> Diagnostic {
        let (opener, closer_text) = (last.text(self.text), closing.text(self.text));
        let fits = |token: &&Token| closes(token.text(self.text), closer_text);
        match open.iter().rev().find(fits) {
            // It closes one further out: the innermost was left open.
            Some(_) => Diagnostic::error(
                Code::Unbalanced,
                at(last.start, last.end),
                format!("this `{opener}` is never closed"),
            )
            .label(
                at(closing.start, closing.end),
                format!("`{closer_text}` comes before `{}`", closer(opener)),
            )
            .help(format!("close it with `{}`", closer(opener))),
            None => Diagnostic::error(
                Code::Unbalanced,
                at(closing.start, closing.end),
                format!("`{closer_text}` does not close `{opener}`"),
            )
            .label(at(last.start, last.end), "opened here")
            .help(format!("write `{}`", closer(opener))),
        }
    }

    fn unclosed(
        &mut self,
        open: &[Token],
        at: &dyn Fn(usize, usize) -> Span,
        diags: &mut Vec<Diagnostic>,
    ) {
        // The innermost one is the likeliest; the outer ones follow from it.
        let Some(token) = open.last() else { return };
        let text = token.text(self.text);
        diags.push(
            Diagnostic::error(
                Code::Unbalanced,
                at(token.start, token.end),
                format!("this `{text}` is never closed"),
            )
            .help(format!("close it with `{}`", closer(text))),
        );
        self.barred.extend(open.iter().map(|token| token.start));
    }
}

fn too_deep_error(span: Span) -> Diagnostic {
    Diagnostic::error(Code::TooDeep, span, format!("brackets nest more than {MAX_NESTING} deep"))
        .help("bind parts to names, or move them into a block")
}

fn first_on_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let line = before.rsplit('\n').next().unwrap_or("");
    // The first line of a text embedded in another one is no line of its own.
    at == 0 || (line.trim().is_empty() && before.contains('\n'))
}

fn any_in(places: &[usize], start: usize, end: usize) -> bool {
    let from = places.partition_point(|&place| place < start);
    places.get(from).is_some_and(|&place| place < end.max(start + 1))
}

/// Whether a token is an item's keyword in the first column of a line.
pub fn starts_item(text: &str, token: &Token) -> bool {
    token.kind == TokenKind::Word
        && matches!(token.text(text), "block" | "graph" | "extern" | "use")
        && (token.start == 0 || text.as_bytes().get(token.start - 1) == Some(&b'\n'))
}

fn closer(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

fn closes(open: &str, close: &str) -> bool {
    closer(open) == close
}

/// A function that places ranges of a text that stands as it is in `file`.
pub fn plain(file: FileId) -> impl Fn(usize, usize) -> Span {
    move |start, end| Span { file, start: start as u32, end: end as u32 }
}
