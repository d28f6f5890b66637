//! Graph files: the author's lines, with blanks and indentation in one style.

use crate::syntax::scan::{Token, TokenKind, tokens};

/// Formats a graph file. Comments and line breaks stay; a text whose tokens would change comes back
/// as it is.
pub fn graph(text: &str) -> String {
    let all = tokens(text);
    let formatted = Writer::new(text, &all).run();
    let same = {
        let (a, b) = (words(text, &all), tokens(&formatted));
        a == words(&formatted, &b)
    };
    if same { formatted } else { text.to_owned() }
}

/// Tokens as text; comments without the blanks at their ends.
fn words<'a>(text: &'a str, tokens: &[Token]) -> Vec<&'a str> {
    tokens.iter().map(|token| token.text(text).trim_end()).collect()
}

struct Writer<'a> {
    text: &'a str,
    tokens: &'a [Token],
    out: String,
    /// Open brackets; each with whether its `?` waits for a `:`.
    open: Vec<(char, usize)>,
}

impl<'a> Writer<'a> {
    fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self { text, tokens, out: String::with_capacity(text.len()), open: vec![('\0', 0)] }
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text(self.text).trim_end())
    }

    fn run(mut self) -> String {
        for at in 0..self.tokens.len() {
            let breaks = self.breaks(at);
            if at == 0 {
                // Blank lines at the top go.
            } else if breaks > 0 {
                self.out.push('\n');
                if breaks > 1 && !self.opens(at - 1) && !self.closes(at) {
                    self.out.push('\n');
                }
            }
            let new_line = at == 0 || breaks > 0;
            if new_line {
                let depth = self.indent(at);
                self.out.extend(std::iter::repeat_n("    ", depth));
            } else if self.spaced(at) {
                let comment = self.tokens.get(at).is_some_and(Token::is_comment);
                self.out.push_str(if comment { "  " } else { " " });
            }
            self.out.push_str(self.word(at));
            self.track(at);
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Line ends between a token and the one before it.
    fn breaks(&self, at: usize) -> usize {
        let start = at
            .checked_sub(1)
            .and_then(|before| self.tokens.get(before))
            .map_or(0, |token| token.end);
        let end = self.tokens.get(at).map_or(start, |token| token.start);
        self.text.get(start..end).map_or(0, |gap| gap.matches('\n').count())
    }

    fn opens(&self, at: usize) -> bool {
        self.is_symbol(at) && matches!(self.word(at), "(" | "[" | "{")
    }

    fn closes(&self, at: usize) -> bool {
        self.is_symbol(at) && matches!(self.word(at), ")" | "]" | "}")
    }

    fn is_symbol(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Symbol)
    }

    /// Steps of indentation of a line that starts with this token.
    fn indent(&self, first: usize) -> usize {
        let open = self.open.len() - 1;
        let line = |at: &usize| self.closes(*at) && (*at == first || self.breaks(*at) == 0);
        let closing = (first..self.tokens.len()).take_while(line).count().min(open);
        // A line that goes on with the one before stands one step in.
        let goes_on = closing == 0 && self.continues(first);
        open - closing + usize::from(goes_on)
    }

    fn continues(&self, at: usize) -> bool {
        let word = self.word(at);
        let operator = match self.tokens.get(at).map(|token| token.kind) {
            Some(TokenKind::Symbol) => {
                !matches!(word, "(" | "[" | "{" | ")" | "]" | "}" | ";" | ",")
            }
            // Outside of everything, a line that starts no item belongs to the one before.
            Some(TokenKind::Word) if self.open.len() == 1 => {
                !matches!(word, "use" | "block" | "graph" | "extern")
            }
            Some(TokenKind::Word) => matches!(word, "and" | "or" | "in" | "else"),
            _ => false,
        };
        let in_braces = self.open.last().is_none_or(|(bracket, _)| matches!(bracket, '{' | '\0'));
        operator || (in_braces && at > 0 && self.wants_more(at - 1))
    }

    /// Whether a token at the end of a line needs the next line.
    fn wants_more(&self, at: usize) -> bool {
        let word = self.word(at);
        match self.tokens.get(at).map(|token| token.kind) {
            Some(TokenKind::Symbol) => {
                !matches!(word, ")" | "]" | "}" | ";" | "," | "{" | "(" | "[" | "?")
            }
            Some(TokenKind::Word) => matches!(word, "and" | "or" | "not"),
            _ => false,
        }
    }

    fn track(&mut self, at: usize) {
        if !self.is_symbol(at) {
            return;
        }
        match self.word(at) {
            open @ ("(" | "[" | "{") => self.open.push((open.chars().next().unwrap_or('('), 0)),
            ")" | "]" | "}" if self.open.len() > 1 => {
                self.open.pop();
            }
            "?" if !self.type_mark(at) => {
                if let Some((_, waiting)) = self.open.last_mut() {
                    *waiting += 1;
                }
            }
            ":" => {
                if let Some((_, waiting)) = self.open.last_mut() {
                    *waiting = waiting.saturating_sub(1);
                }
            }
            ";" => {
                if let Some((_, waiting)) = self.open.last_mut() {
                    *waiting = 0;
                }
            }
            _ => {}
        }
    }

    /// The `?` of a type such as `tensor?`, not that of a choice.
    fn type_mark(&self, at: usize) -> bool {
        matches!(self.word(at + 1), "=" | ")" | "," | "]" | "")
    }

    /// Whether `-` or another sign stands before its operand alone.
    fn unary(&self, at: usize) -> bool {
        if self.word(at) != "-" {
            return false;
        }
        let Some(before) = at.checked_sub(1) else { return true };
        match self.tokens.get(before).map(|token| token.kind) {
            Some(TokenKind::Symbol) => !matches!(self.word(before), ")" | "]" | "}"),
            Some(TokenKind::Word) => is_keyword(self.word(before)),
            Some(TokenKind::Comment | TokenKind::Doc) => true,
            _ => false,
        }
    }

    /// Whether a blank stands between a token and the one before it on its line.
    fn spaced(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let (left, right) = (self.word(before), self.word(at));
        let apart = self.breaks(at) == 0 && {
            let end = self.tokens.get(before).map_or(0, |token| token.end);
            let start = self.tokens.get(at).map_or(end, |token| token.start);
            start > end
        };
        let comment = |at: usize| self.tokens.get(at).is_some_and(Token::is_comment);
        if comment(before) || comment(at) {
            return true;
        }
        let list_brace = |at: usize| at.checked_sub(1).is_some_and(|at| self.word(at) == "::");
        match (left, right) {
            ("(" | "[" | "." | "::" | ".." | "@@", _) if self.is_symbol(before) => false,
            (_, ")" | "]" | "," | ";" | "." | "::" | "..") if self.is_symbol(at) => false,
            ("{", "}") => false,
            ("{", _) if self.is_symbol(before) => !list_brace(before),
            (_, "}") if self.is_symbol(at) => !self.in_use_list(at),
            (_, "?") if self.is_symbol(at) => !self.type_mark(at),
            (_, ":") if self.is_symbol(at) => {
                self.open.last().is_some_and(|(_, waiting)| *waiting > 0)
            }
            ("-", _) if self.is_symbol(before) && self.unary(before) => false,
            (_, "(" | "[") if self.is_symbol(at) => {
                match self.tokens.get(before).map(|token| token.kind) {
                    // A call or an index, or a bracket after a keyword.
                    Some(TokenKind::Word) => is_keyword(left) || apart,
                    Some(TokenKind::Symbol) => !matches!(left, ")" | "]" | "}") || apart,
                    _ => apart,
                }
            }
            _ => true,
        }
    }

    /// Whether a `}` ends the list of a `use`.
    fn in_use_list(&self, at: usize) -> bool {
        let start =
            (0..at).rev().take_while(|at| self.word(*at) != "}").find(|at| self.word(*at) == "{");
        start.is_some_and(|start| {
            start.checked_sub(1).is_some_and(|before| self.word(before) == "::")
        })
    }
}

/// Words before a bracket that no call starts with.
fn is_keyword(word: &str) -> bool {
    matches!(word, "weights" | "keeps") || crate::syntax::is_keyword(word)
}
