//! Pieces of a text that failed to match, split so that each error in them is found.

use pest::Parser as _;

use super::errors;
use super::grammar::{Grammar, Rule};
use super::scan::{Scan, Token, TokenKind};
use crate::diag::Diagnostic;
use crate::source::Span;

/// Splits pieces and reports each one's first error.
pub(super) struct Recovery<'a, 'd> {
    pub scan: &'a Scan<'a>,
    pub at: &'a dyn Fn(usize, usize) -> Span,
    pub diags: &'d mut Vec<Diagnostic>,
}

impl Recovery<'_, '_> {
    /// Reports what is wrong with an item, given as a range of tokens.
    pub fn item(&mut self, first: usize, last: usize) {
        self.piece(first, last, Rule::only_item);
    }

    /// Reports the errors of tokens `first..last`, which should match `rule`.
    fn piece(&mut self, first: usize, last: usize, rule: Rule) {
        let Some((start, end)) = self.bounds(first, last) else { return };
        if self.scan.reported_in(start, end) && !self.has_braces(first, last) {
            return;
        }
        let text = self.scan.text.get(start..end).unwrap_or("");
        let Err(error) = Grammar::parse(rule, text) else { return };
        let before = self.diags.len();
        let groups = self.groups(first, last);
        if !groups.is_empty() {
            // With the insides of braces blanked, what fails is this piece's own text.
            let mut blanked = text.as_bytes().to_vec();
            for group in &groups {
                for byte in &mut blanked[group.inside.0 - start..group.inside.1 - start] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
            }
            let blanked = String::from_utf8_lossy(&blanked);
            if let Err(error) = Grammar::parse(rule, &blanked) {
                self.report(&error, start, end);
            }
            for group in groups {
                for (first, last) in self.split(group.tokens.0, group.tokens.1, group.arms) {
                    self.piece(
                        first,
                        last,
                        if group.arms { Rule::only_arm } else { Rule::only_statement },
                    );
                }
            }
        }
        if self.diags.len() == before && !self.scan.reported_in(start, end) {
            self.report(&error, start, end);
        }
    }

    fn report(&mut self, error: &pest::error::Error<Rule>, start: usize, end: usize) {
        let place = errors::place(error, start);
        let line_end = self
            .scan
            .text
            .get(place..)
            .and_then(|rest| rest.find('\n'))
            .map_or(end, |at| place + at);
        if self.scan.reported_in(start.min(place), line_end)
            && self.scan.reported_in(place, line_end + 1)
        {
            return;
        }
        self.diags.push(errors::explain(error, self.scan, start, end, self.at));
    }

    fn bounds(&self, first: usize, last: usize) -> Option<(usize, usize)> {
        let tokens = self.scan.tokens.get(first..last)?;
        Some((tokens.first()?.start, tokens.last()?.end))
    }

    fn text(&self, index: usize) -> &str {
        self.scan.tokens.get(index).map_or("", |token| token.text(self.scan.text))
    }

    fn has_braces(&self, first: usize, last: usize) -> bool {
        (first..last).any(|index| self.text(index) == "{")
    }

    /// The outermost `{...}` groups among tokens `first..last`.
    fn groups(&self, first: usize, last: usize) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut index = first;
        let mut keyword = "";
        while index < last {
            match self.text(index) {
                word @ ("match" | "if" | "else" | "for" | "weights" | "keeps" | "use" | "block"
                | "graph") => {
                    keyword = word_of(word);
                }
                "{" => {
                    let depth = self.scan.depth.get(index).copied().unwrap_or(0);
                    let close = (index + 1..last)
                        .find(|&at| self.text(at) == "}" && self.scan.depth.get(at) == Some(&depth))
                        .unwrap_or(last);
                    let start = self.scan.tokens.get(index).map_or(0, |token| token.end);
                    let end =
                        self.scan.tokens.get(close.min(last).max(1) - usize::from(close == last));
                    let end = end
                        .map_or(start, |token| if close == last { token.end } else { token.start });
                    // Lists of names and weights are small: their own rule says what is wrong.
                    if !matches!(keyword, "use" | "weights" | "keeps") {
                        groups.push(Group {
                            tokens: (index + 1, close),
                            inside: (start, end.max(start)),
                            arms: keyword == "match",
                        });
                    }
                    keyword = "";
                    index = close;
                }
                _ => {}
            }
            index += 1;
        }
        groups
    }

    /// Splits tokens `first..last`, which lie in one pair of braces, into statements or arms.
    fn split(&self, first: usize, last: usize, arms: bool) -> Vec<(usize, usize)> {
        let Some(outer) = self.scan.depth.get(first).copied() else { return Vec::new() };
        // The first token may itself open a bracket; its depth is then the outer one already.
        let depth = outer;
        let mut pieces = Vec::new();
        let mut from = first;
        for index in first..last {
            if self.scan.depth.get(index) != Some(&depth) {
                continue;
            }
            let separator = self.text(index) == ";" || (arms && self.text(index) == ",");
            if separator {
                if index > from {
                    pieces.push((from, index));
                }
                from = index + 1;
            } else if index > from && self.starts_statement(index) {
                pieces.push((from, index));
                from = index;
            }
        }
        if from < last {
            pieces.push((from, last));
        }
        pieces
    }

    /// Whether a token on a new line starts a statement rather than going on with the one before.
    fn starts_statement(&self, index: usize) -> bool {
        let (Some(token), Some(before)) =
            (self.scan.tokens.get(index), self.scan.tokens.get(index.wrapping_sub(1)))
        else {
            return true;
        };
        let gap = self.scan.text.get(before.end..token.start).unwrap_or("");
        gap.contains('\n') && !continues(self.scan, token) && !wants_more(self.scan, before)
    }
}

fn word_of(word: &str) -> &'static str {
    match word {
        "match" => "match",
        "use" => "use",
        "weights" => "weights",
        "keeps" => "keeps",
        _ => "if",
    }
}

/// A `{...}`: its tokens, its bytes, and whether it holds the arms of a `match`.
struct Group {
    tokens: (usize, usize),
    inside: (usize, usize),
    arms: bool,
}

/// Whether a token at the start of a line goes on with the line before.
fn continues(scan: &Scan<'_>, token: &Token) -> bool {
    match token.kind {
        TokenKind::Symbol => !matches!(token.text(scan.text), "(" | "[" | "{"),
        TokenKind::Word => matches!(token.text(scan.text), "and" | "or" | "in" | "else"),
        _ => false,
    }
}

/// Whether a token at the end of a line needs the next one.
fn wants_more(scan: &Scan<'_>, token: &Token) -> bool {
    match token.kind {
        TokenKind::Symbol => !matches!(token.text(scan.text), ")" | "]" | "}" | ";" | "?"),
        TokenKind::Word => {
            matches!(
                token.text(scan.text),
                "and" | "or" | "in" | "not" | "if" | "else" | "match" | "for"
            )
        }
        _ => false,
    }
}
