//! Patterns of tensor names, and what they catch.

use std::fmt;

use thiserror::Error;

/// A pattern or template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("pattern {text:?}: {reason}")]
pub struct PatternError {
    /// The pattern.
    pub text: String,
    /// What is wrong.
    pub reason: String,
}

/// What one piece of a pattern takes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// `{i}`: digits.
    Digits(String),
    /// `{name:word}`: one or more characters without a dot.
    Word(String),
    /// `{name:any}` and `*` (whose name is empty): any run, also none, dots too.
    Any(String),
    /// `{name:a|b}`: one of these.
    Choice(String, Vec<String>),
}

/// A pattern over tensor names.
///
/// | piece | takes |
/// |---|---|
/// | `{i}` | a run of digits |
/// | `{name:word}` | a run of characters without a dot, at least one |
/// | `{name:any}`, `*` | any run, dots included, possibly empty |
/// | `{name:w1\|w2}` | one of the listed texts |
///
/// All else is literal, and the whole name must match. A name used twice must take the same text
/// twice. Several `*` are captured in order, for the `*` of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    pieces: Vec<Piece>,
    /// The longest literal piece, which every match contains.
    longest: String,
}

/// The texts that the pieces of a pattern took, by name; `*` has an empty name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Captures(Vec<(String, String)>);

impl Captures {
    /// The text that `name` took.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str())
    }

    /// The number that `name` took.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// Replaces the text of a capture.
    pub(super) fn set(&mut self, name: &str, text: String) {
        for (_, old) in self.0.iter_mut().filter(|(n, _)| n == name) {
            old.clone_from(&text);
        }
    }

    /// The same without `name`.
    pub(super) fn without(&self, name: &str) -> Captures {
        Captures(self.0.iter().filter(|(n, _)| n != name).cloned().collect())
    }
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let bad = |reason: &str| PatternError { text: text.to_owned(), reason: reason.to_owned() };
        if text.is_empty() {
            return Err(bad("expected a name, found nothing"));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(['{', '}', '*']).unwrap_or(rest.len());
            let (literal, tail) = rest.split_at(end);
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            rest = match tail.chars().next() {
                None => tail,
                Some('*') => {
                    pieces.push(Piece::Any(String::new()));
                    tail.get(1..).unwrap_or_default()
                }
                Some('{') => {
                    let Some((inside, after)) = tail.get(1..).and_then(|t| t.split_once('}'))
                    else {
                        return Err(bad("\"{\" without \"}\""));
                    };
                    pieces.push(capture(inside).ok_or_else(|| {
                        bad("expected {name}, {name:word}, {name:any} or {name:a|b}")
                    })?);
                    after
                }
                Some(_) => return Err(bad("\"}\" without \"{\"")),
            };
        }
        let literals = pieces.iter().filter_map(|p| match p {
            Piece::Literal(text) => Some(text.as_str()),
            _ => None,
        });
        let longest = literals.max_by_key(|l| l.len()).unwrap_or_default().to_owned();
        Ok(Pattern { text: text.to_owned(), pieces, longest })
    }

    /// What the pieces take when the whole of `name` matches.
    pub fn matches(&self, name: &str) -> Option<Captures> {
        // The literal end and the longest literal reject most names at once.
        if let Some(Piece::Literal(end)) = self.pieces.last()
            && !name.ends_with(end.as_str())
        {
            return None;
        }
        if !name.contains(self.longest.as_str()) {
            return None;
        }
        let mut taken = Vec::new();
        run(&self.pieces, name, &mut taken).then(|| {
            let owned = taken.into_iter().map(|(n, t)| (n.to_owned(), t.to_owned()));
            Captures(owned.collect())
        })
    }

    /// The name that matches with these captures; `None` when one is lacking.
    pub(super) fn fill(&self, captures: &Captures) -> Option<String> {
        let mut out = String::new();
        let mut stars = captures.0.iter().filter(|(n, _)| n.is_empty());
        for piece in &self.pieces {
            out.push_str(match piece {
                Piece::Literal(text) => text,
                Piece::Any(name) if name.is_empty() => &stars.next()?.1,
                Piece::Digits(n) | Piece::Word(n) | Piece::Any(n) | Piece::Choice(n, _) => {
                    captures.get(n)?
                }
            });
        }
        Some(out)
    }

    /// The text that every matching name begins with.
    pub fn literal_prefix(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }

    /// The parts between dots that it spells out; every matching name has them all.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        let last = self.pieces.len().saturating_sub(1);
        self.pieces.iter().enumerate().flat_map(move |(at, piece)| {
            let text = match piece {
                Piece::Literal(text) => text.as_str(),
                _ => "",
            };
            let count = text.split('.').count();
            // A part at the edge of a literal is whole only at the edge of the pattern.
            text.split('.').enumerate().filter_map(move |(k, part)| {
                let whole = (k > 0 || at == 0) && (k + 1 < count || at == last);
                (whole && !text.is_empty()).then_some(part)
            })
        })
    }

    /// The only name that matches, when there is but one.
    pub fn as_literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The names of its captures, an empty one for each `*`.
    pub fn captures(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|p| match p {
            Piece::Literal(_) => None,
            Piece::Digits(n) | Piece::Word(n) | Piece::Any(n) | Piece::Choice(n, _) => {
                Some(n.as_str())
            }
        })
    }

    /// Whether `name` is a capture of digits.
    pub fn is_digits(&self, name: &str) -> bool {
        self.pieces.iter().any(|p| matches!(p, Piece::Digits(n) if n == name))
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn capture(inside: &str) -> Option<Piece> {
    let (name, kind) = inside.split_once(':').unwrap_or((inside, ""));
    if !is_name(name) {
        return None;
    }
    let name = name.to_owned();
    Some(match kind {
        "" if !inside.contains(':') => Piece::Digits(name),
        "word" => Piece::Word(name),
        "any" => Piece::Any(name),
        choice if choice.split('|').all(|c| !c.is_empty()) => {
            Piece::Choice(name, choice.split('|').map(str::to_owned).collect())
        }
        _ => return None,
    })
}

/// Backtracks over the free pieces; patterns have a handful of them and names are short.
fn run<'a>(pieces: &'a [Piece], name: &'a str, taken: &mut Vec<(&'a str, &'a str)>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return name.is_empty() };
    match piece {
        Piece::Literal(text) => {
            name.strip_prefix(text.as_str()).is_some_and(|after| run(rest, after, taken))
        }
        Piece::Digits(key) => {
            let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
            end > 0 && take(key, name.split_at(end), rest, taken)
        }
        Piece::Word(key) => {
            let end = name.find('.').unwrap_or(name.len());
            longest_first(key, name, 1, end, rest, taken)
        }
        Piece::Any(key) => longest_first(key, name, 0, name.len(), rest, taken),
        Piece::Choice(key, choices) => choices.iter().any(|c| {
            name.strip_prefix(c.as_str()).is_some_and(|after| {
                take(key, (name.get(..c.len()).unwrap_or_default(), after), rest, taken)
            })
        }),
    }
}

fn longest_first<'a>(
    key: &'a str,
    name: &'a str,
    least: usize,
    most: usize,
    rest: &'a [Piece],
    taken: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    // A literal that follows says where the run can end.
    let next = match rest.first() {
        Some(Piece::Literal(next)) => next.as_str(),
        _ => "",
    };
    (least..=most)
        .rev()
        .filter(|at| name.get(*at..).is_some_and(|tail| tail.starts_with(next)))
        .any(|at| take(key, name.split_at(at), rest, taken))
}

fn take<'a>(
    key: &'a str,
    (text, after): (&'a str, &'a str),
    rest: &'a [Piece],
    taken: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    let same = taken.iter().find(|(n, _)| !key.is_empty() && *n == key);
    if same.is_some_and(|(_, before)| *before != text) {
        return false;
    }
    let length = taken.len();
    taken.push((key, text));
    if run(rest, after, taken) {
        return true;
    }
    taken.truncate(length);
    false
}

/// A name to be filled in with captures: `{i}` by name, `*` by order. What a pattern would say
/// after a colon is passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Pattern);

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Template, PatternError> {
        Pattern::parse(text).map(Template)
    }

    /// The name; `None` when `captures` lacks one that is needed.
    pub fn fill(&self, captures: &Captures) -> Option<String> {
        self.0.fill(captures)
    }

    /// The names of the captures that it needs, an empty one for each `*`.
    pub fn captures(&self) -> impl Iterator<Item = &str> {
        self.0.captures()
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
