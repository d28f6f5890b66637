//! Texts to trees, with every syntax error found in one run.

use pest::Parser as _;

use super::ast::{Expr, ExprKind, GraphFile};
use super::build::{Builder, Item};
use super::errors;
use super::grammar::{Grammar, Rule};
use super::recover::Recovery;
use super::scan::{self, MAX_TEXT, Scan, Token};
use super::strings::Positions;
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span};

/// Reads a graph file. Every syntax error goes into `diags`; what could be read is returned, so
/// that names of whole items are known. A file with errors is not fit for later phases.
pub fn parse_graph(file: FileId, text: &str, diags: &mut Vec<Diagnostic>) -> GraphFile {
    let at = scan::plain(file);
    let mut graph = GraphFile::default();
    if too_long(text, at(0, 0), diags) {
        return graph;
    }
    let scan = Scan::new(text, &at, diags);
    for (first, last) in items(&scan, &at, diags) {
        let Some(tokens) = scan.tokens.get(first..last) else { continue };
        let (Some(head), Some(tail)) = (tokens.first(), tokens.last()) else { continue };
        let (start, end) = (head.start, tail.end);
        if scan.unsafe_in(start, end) {
            continue;
        }
        match Grammar::parse(Rule::only_item, text.get(start..end).unwrap_or("")) {
            Ok(pairs) => {
                let mut builder = Builder { text, base: start, at: &at, diags };
                for item in pairs.filter_map(|pair| builder.item(pair)) {
                    match item {
                        Item::Use(item) => graph.uses.push(item),
                        Item::Block(item) => graph.blocks.push(item),
                        Item::Graph(item) => graph.graphs.push(item),
                        Item::Extern(item) => graph.externs.push(item),
                    }
                }
            }
            Err(_) => Recovery { scan: &scan, at: &at, diags }.item(first, last),
        }
    }
    attach_docs(&scan, &mut graph);
    graph
}

/// The items of a graph file without errors, as texts.
#[cfg(test)]
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let at = scan::plain(crate::source::Sources::default().add("x.graph", ""));
    let mut diags = Vec::new();
    let scan = Scan::new(text, &at, &mut diags);
    let ranges = items(&scan, &at, &mut diags);
    assert_eq!(diags, []);
    let piece = |(first, last): &(usize, usize)| {
        let tokens = scan.tokens.get(*first..*last)?;
        text.get(tokens.first()?.start..tokens.last()?.end)
    };
    ranges.iter().filter_map(piece).collect()
}

/// Reads an expression that stands in `file` at `offset` letter for letter.
pub fn parse_expr(
    file: FileId,
    offset: u32,
    text: &str,
    diags: &mut Vec<Diagnostic>,
) -> Option<Expr> {
    if too_long(text, Span { file, start: offset, end: offset }, diags) {
        return None;
    }
    parse_expr_at(&Positions::plain(file, offset, text.len()), text, diags)
}

/// Reads an expression embedded in another text; `positions` says where each of its bytes stands.
pub fn parse_expr_at(
    positions: &Positions,
    text: &str,
    diags: &mut Vec<Diagnostic>,
) -> Option<Expr> {
    let at = |start: usize, end: usize| positions.span(start, end);
    if too_long(text, at(0, 0), diags) {
        return None;
    }
    let before = diags.len();
    let scan = Scan::new(text, &at, diags);
    if diags.len() > before {
        return None;
    }
    if scan.tokens.is_empty() {
        diags.push(Diagnostic::error(
            Code::UnexpectedText,
            at(0, text.len()),
            "expected an expression, found nothing",
        ));
        return None;
    }
    match Grammar::parse(Rule::only_expr, text) {
        Ok(pairs) => {
            let mut builder = Builder { text, base: 0, at: &at, diags };
            let expr = pairs
                .filter(|pair| pair.as_rule() == Rule::expr)
                .map(|pair| builder.expr(pair))
                .next();
            let fallback = Expr { span: at(0, text.len()), kind: ExprKind::None };
            let expr = expr.unwrap_or(fallback);
            (diags.len() == before).then_some(expr)
        }
        Err(error) => {
            diags.push(errors::explain(&error, &scan, 0, text.len(), &at));
            None
        }
    }
}

fn too_long(text: &str, at: Span, diags: &mut Vec<Diagnostic>) -> bool {
    let long = text.len() > MAX_TEXT;
    if long {
        diags.push(
            Diagnostic::error(
                Code::TooLong,
                at,
                format!("the text has {} bytes; at most {MAX_TEXT} are read", text.len()),
            )
            .help("is this a spec?"),
        );
    }
    long
}

/// The token ranges of a file's items; text between them is reported.
fn items(
    scan: &Scan<'_>,
    at: &dyn Fn(usize, usize) -> Span,
    diags: &mut Vec<Diagnostic>,
) -> Vec<(usize, usize)> {
    let starts: Vec<usize> =
        (0..scan.tokens.len()).filter(|&index| starts_item(scan, index)).collect();
    let first = starts.first().copied().unwrap_or(scan.tokens.len());
    if let Some(stray) = scan.tokens.get(..first).filter(|stray| !stray.is_empty()) {
        stray_text(scan, stray, at, diags);
    }
    let mut ranges = Vec::new();
    for (place, &start) in starts.iter().enumerate() {
        let next = starts.get(place + 1).copied().unwrap_or(scan.tokens.len());
        let end = item_end(scan, start, next);
        ranges.push((start, end));
        if let Some(stray) = scan.tokens.get(end..next).filter(|stray| !stray.is_empty()) {
            stray_text(scan, stray, at, diags);
        }
    }
    ranges
}

fn starts_item(scan: &Scan<'_>, index: usize) -> bool {
    let Some(token) = scan.tokens.get(index) else { return false };
    if scan::starts_item(scan.text, token) {
        return true;
    }
    let keyword = matches!(token.text(scan.text), "block" | "graph" | "extern" | "use");
    let before = index.checked_sub(1).and_then(|index| scan.tokens.get(index));
    let separate = before.is_none_or(|before| {
        matches!(before.text(scan.text), "}" | ";")
            || scan.text.get(before.end..token.start).is_some_and(|gap| gap.contains('\n'))
    });
    keyword && scan.depth.get(index) == Some(&0) && separate
}

/// Where an item that starts at token `start` ends: behind its body or its `;`.
fn item_end(scan: &Scan<'_>, start: usize, next: usize) -> usize {
    let keyword = scan.tokens.get(start).map_or("", |token| token.text(scan.text));
    let body = matches!(keyword, "block" | "graph");
    for index in start..next {
        let text = scan.tokens.get(index).map_or("", |token| token.text(scan.text));
        let outside = scan.depth.get(index) == Some(&0);
        if outside && ((body && text == "}") || text == ";") {
            return index + 1;
        }
    }
    next
}

fn stray_text(
    scan: &Scan<'_>,
    stray: &[Token],
    at: &dyn Fn(usize, usize) -> Span,
    diags: &mut Vec<Diagnostic>,
) {
    // Brackets that close nothing have been reported, and whatever follows them is a consequence.
    let (Some(first), Some(last)) = (stray.first(), stray.last()) else { return };
    if scan.reported_in(first.start, last.end) {
        return;
    }
    let line = scan
        .text
        .get(first.start..)
        .and_then(|rest| rest.find('\n'))
        .map_or(scan.text.len(), |at| first.start + at);
    let end = stray.iter().take_while(|token| token.end <= line).last().unwrap_or(first).end;
    let found = scan.text.get(first.start..end).unwrap_or("");
    let mut diagnostic = Diagnostic::error(
        Code::NotAnItem,
        at(first.start, end),
        format!("expected `use`, `block`, `graph` or `extern`, found `{}`", first.text(scan.text)),
    );
    if found.starts_with("//") {
        diagnostic = diagnostic.help("comments start with `#`, docs of an item with `///`");
    } else if matches!(
        first.text(scan.text),
        "fn" | "def" | "func" | "function" | "router" | "module"
    ) {
        diagnostic = diagnostic.help("a computation is declared by `block name(x) { ... }`");
    } else if let Some(near) =
        crate::diag::nearest(first.text(scan.text), ["use", "block", "graph", "extern"])
    {
        diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
    } else {
        diagnostic = diagnostic.help("statements stand inside a `block` or `graph`");
    }
    diags.push(diagnostic);
}

/// Gives each item the `///` lines that end on the line before it.
fn attach_docs(scan: &Scan<'_>, graph: &mut GraphFile) {
    let doc = |start: u32| {
        let mut end = start as usize;
        let mut lines: Vec<&str> = Vec::new();
        let mut index = scan.docs.partition_point(|doc| doc.end <= end);
        while let Some(doc) = index.checked_sub(1).and_then(|index| scan.docs.get(index)) {
            let gap = scan.text.get(doc.end..end).unwrap_or("-");
            if !gap.trim().is_empty() || gap.matches('\n').count() > 1 {
                break;
            }
            let line = doc.text(scan.text).trim_start_matches("///");
            lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end());
            end = doc.start;
            index -= 1;
        }
        lines.reverse();
        lines.join("\n")
    };
    for block in graph.blocks.iter_mut().chain(&mut graph.graphs) {
        block.doc = doc(block.span.start);
    }
    for item in &mut graph.externs {
        item.doc = doc(item.span.start);
    }
}
