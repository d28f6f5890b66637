//! What a failed match of the grammar means in words.

use pest::error::{Error, ErrorVariant, InputLocation};

use super::grammar::Rule;
use super::scan::{Scan, Token, TokenKind};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// Where a match failed, as a byte of the whole text; `base` is where its piece starts.
pub(super) fn place(error: &Error<Rule>, base: usize) -> usize {
    base + match error.location {
        InputLocation::Pos(at) => at,
        InputLocation::Span((start, _)) => start,
    }
}

/// The diagnostic for a failed match; `end` is where the piece ends in the whole text.
pub(super) fn explain(
    error: &Error<Rule>,
    scan: &Scan<'_>,
    base: usize,
    end: usize,
    at: &dyn Fn(usize, usize) -> Span,
) -> Diagnostic {
    let place = place(error, base);
    let index = scan.tokens.partition_point(|token| token.end <= place);
    let found = scan.tokens.get(index).filter(|token| token.start < end);
    let previous = index.checked_sub(1).and_then(|index| scan.tokens.get(index));
    let expected = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => expected(positives),
        ErrorVariant::CustomError { message } => message.clone(),
    };
    let (span, words) = match found {
        Some(token) => (at(token.start, token.end), format!("`{}`", short(token.text(scan.text)))),
        None => {
            // The piece ends too early: point just behind its last token.
            let end = previous.map_or(place, |token| token.end);
            let words = match scan.tokens.get(index) {
                Some(token)
                    if scan.text.get(end..token.start).is_some_and(|gap| gap.contains('\n')) =>
                {
                    "the end of the line".to_owned()
                }
                Some(token) => format!("`{}`", short(token.text(scan.text))),
                None => "the end of the text".to_owned(),
            };
            let start = previous.map_or(place, |token| token.start);
            (at(start, end.max(start)), words)
        }
    };
    let mut diagnostic = Diagnostic::error(
        Code::UnexpectedText,
        span,
        format!("expected {expected}, found {words}"),
    );
    if found.is_none() {
        diagnostic = diagnostic.here("after this");
    }
    if expected.starts_with("`->`") && found.is_some_and(|token| token.text(scan.text) == "=") {
        return diagnostic
            .help("say what comes out before it: `-> [..S]`, `-> [B, L, out]` or `-> rule split`");
    }
    for help in hints(scan, previous, found) {
        diagnostic = diagnostic.help(help);
    }
    diagnostic
}

fn short(text: &str) -> String {
    if text.chars().count() <= 40 {
        text.to_owned()
    } else {
        text.chars().take(37).chain("...".chars()).collect()
    }
}

/// The rules that could have gone on, in words, the telling ones first.
fn expected(positives: &[Rule]) -> String {
    let mut words: Vec<&'static str> = Vec::new();
    let has = |rule: Rule| positives.contains(&rule);
    let value = positives.iter().any(|rule| is_value(*rule));
    let statement = has(Rule::statement);
    if value && !statement {
        words.push("a value");
    }
    for word in positives.iter().filter_map(|rule| word(*rule)) {
        if !(words.contains(&word) || value && word == "a name") {
            words.push(word);
        }
    }
    if statement {
        words.push("a statement");
    } else if words.is_empty() && (has(Rule::EOI) || has(Rule::semi)) {
        words.push("the end of the statement");
    }
    if positives.iter().any(|rule| is_operator(*rule))
        && (words.is_empty() || words == ["the end of the statement"])
    {
        words.insert(0, "an operator");
    }
    if words.is_empty() {
        words.push("something else");
    }
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn is_value(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        expr | chain
            | operand
            | atom
            | number
            | string
            | literal
            | list
            | paren
            | choice
            | select
            | call
            | neg
            | op_not
            | arg
    )
}

fn is_operator(rule: Rule) -> bool {
    use Rule::*;
    matches!(
        rule,
        pipe | orelse
            | op_or
            | op_and
            | op_eq
            | op_ne
            | op_le
            | op_ge
            | op_lt
            | op_gt
            | op_in
            | op_not_in
            | add
            | sub
            | pow
            | mul
            | floor_div
            | div
            | rem
            | question
            | attr
            | index
            | at
    )
}

fn word(rule: Rule) -> Option<&'static str> {
    use Rule::*;
    Some(match rule {
        ident | word | target | arg_name => "a name",
        comma => "`,`",
        semi => return None,
        colon => "`:`",
        equals => "`=`",
        bar => "`|`",
        arrow => "`=>`",
        result_arrow | result => "`->`",
        path_sep => "`::`",
        dots => "`..`",
        open_paren | params => "`(`",
        open_brace | body | use_list => "`{`",
        close_paren => "`)`",
        close_bracket => "`]`",
        close_brace => "`}`",
        kw_in => "`in`",
        kw_else => return None,
        kw_rule => "`rule`",
        kw_weights | weights => "`weights`",
        kw_keeps | keeps => "`keeps`",
        kept => "what is kept, such as `keys: [B, K, S, D]`",
        kw_if => "`if`",
        shape | shape_tuple => "a shape such as `[B, L]`",
        param_type | words => "a type",
        pattern => "a word to match",
        arm => "an arm `word => value`",
        rust_path => "the Rust item that runs it",
        param => "a parameter",
        weight => "a weight such as `weight: [out, I]`",
        layers => "`layers`",
        rest | dim => "an axis",
        _ => return None,
    })
}

/// Habits from other languages, and what is written here instead.
fn hints(scan: &Scan<'_>, previous: Option<&Token>, found: Option<&Token>) -> Vec<String> {
    let text = |token: Option<&Token>| token.map_or("", |token| token.text(scan.text));
    let (before, here) = (text(previous), text(found));
    let mut hints = Vec::new();
    match before {
        "let" | "var" | "const" | "mut" => {
            hints.push(format!("a name is bound by `name = value`, without `{before}`"))
        }
        "return" => {
            hints.push("leave out `return`: the last expression of a block is its value".to_owned())
        }
        "elif" | "elseif" | "elsif" => hints.push("write `else if`".to_owned()),
        "def" | "fn" | "func" | "function" => {
            hints.push("a computation is declared by `block name(x) { ... }`".to_owned())
        }
        "while" | "loop" => hints.push(
            "the only loop is `for i in layers { ... }` or `for i in 0..n { ... }`".to_owned(),
        ),
        _ => {}
    }
    let blank = match (previous, found) {
        (Some(a), Some(b)) => a.kind == TokenKind::Word && a.end < b.start,
        _ => false,
    };
    match here {
        "elif" | "elseif" | "elsif" => hints.push("write `else if`".to_owned()),
        "=" if super::is_keyword(before) => {
            hints.push(format!("`{before}` is a keyword: choose another name"))
        }
        ")" | "," | "]" if super::is_keyword(before) => {
            hints.push(format!("`{before}` is a keyword"))
        }
        "=" if before == "=" => hints.push("write `==` without a blank to compare".to_owned()),
        "=" if matches!(before, "+" | "-" | "*" | "/") => {
            hints.push(format!("write `x = x {before} ...`"));
        }
        "=" => {
            hints.push("`=` binds a name or gives an argument by name; `==` compares".to_owned())
        }
        "(" if blank => {
            hints.push("the `(` of a call follows the name directly, on the same line".to_owned())
        }
        "[" if blank => {
            hints.push("the `[` of an index follows the name directly, on the same line".to_owned())
        }
        "//" => hints.push("comments start with `#`; `//` divides integers".to_owned()),
        "|" => hints.push("`or` joins conditions; `|>` pipes a value into a call".to_owned()),
        "::" => hints.push(
            "names of a library module are taken by `use std::module::{name}` at the top"
                .to_owned(),
        ),
        "{" if before == "else" => hints.push("`else` follows the `}` of an `if`".to_owned()),
        "extern" | "block" | "graph" | "use" if previous.is_some() => {
            hints.push(format!("`{here}` is a keyword: choose another name"));
        }
        "in" | "not" | "and" | "or" | "if" | "else" | "match" | "for" | "none" | "true"
        | "false"
            if before != "=" =>
        {
            hints.push(format!("`{here}` is a keyword"));
        }
        _ => {}
    }
    hints
}
