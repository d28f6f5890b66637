//! Text and JSON forms of diagnostics.

use std::collections::BTreeMap;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Label, Severity};
use crate::source::{FileId, Sources};

/// How diagnostics are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text without colour.
    Plain,
    /// Text with the escapes of a terminal.
    Colour,
}

/// Longest message line kept whole, in characters: a spec may hold very long words.
const MAX_LINE: usize = 400;

/// One diagnostic as text, without a newline at its end.
pub fn text(sources: &Sources, diagnostic: &Diagnostic, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = clip(&diagnostic.message);
    let title = level.primary_title(&message).id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    // The primary label's file first, then the others in the order they were added.
    let mut files: Vec<(FileId, Vec<(&Label, AnnotationKind)>)> =
        vec![(diagnostic.primary.span.file, vec![(&diagnostic.primary, AnnotationKind::Primary)])];
    for label in &diagnostic.labels {
        let file = label.span.file;
        match files.iter_mut().find(|(known, _)| *known == file) {
            Some((_, labels)) => labels.push((label, AnnotationKind::Context)),
            None => files.push((file, vec![(label, AnnotationKind::Context)])),
        }
    }
    for (file, labels) in &files {
        let source = sources.file(*file);
        if source.text.trim().is_empty() {
            group = group.element(annotate_snippets::Origin::path(&source.name));
            continue;
        }
        let mut snippet = Snippet::source(&source.text).path(&source.name).fold(true);
        for (label, kind) in labels {
            let range = within(&source.text, label);
            let annotation = kind.span(range);
            snippet = snippet.annotation(if label.text.is_empty() {
                annotation
            } else {
                annotation.label(&label.text)
            });
        }
        group = group.element(snippet);
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note));
    }
    renderer.render(&[group])
}

/// Labels come from parsers over this very text; a range outside it would still be shown, at its end.
fn within(text: &str, label: &Label) -> std::ops::Range<usize> {
    let range = label.span.range();
    let on = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = on(range.start);
    start..on(range.end).max(start)
}

fn clip(message: &str) -> String {
    let clean: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(MAX_LINE) {
        Some((at, _)) => format!("{}...", &clean[..at]),
        None => clean,
    }
}

/// One diagnostic as one line: where, what, and its code.
pub fn line(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let span = diagnostic.primary.span;
    let file = &sources.file(span.file).name;
    let (line, column) = sources.position(span.file, span.start);
    let code = diagnostic.code.as_str();
    format!("{file}:{line}:{column}: {} [{code}]", clip(&diagnostic.message))
}

/// One diagnostic as one JSON object on one line.
pub fn json(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let place = |label: &Label| {
        let file = &sources.file(label.span.file);
        let (line, column) = sources.position(label.span.file, label.span.start);
        let (end_line, end_column) = sources.position(label.span.file, label.span.end);
        let mut object = serde_json::Map::new();
        object.insert("file".into(), file.name.clone().into());
        object.insert("line".into(), line.into());
        object.insert("column".into(), column.into());
        object.insert("end_line".into(), end_line.into());
        object.insert("end_column".into(), end_column.into());
        object
    };
    let mut object = serde_json::Map::new();
    object.insert("code".into(), diagnostic.code.as_str().into());
    object.insert("severity".into(), diagnostic.severity.as_str().into());
    object.insert("message".into(), diagnostic.message.clone().into());
    object.extend(place(&diagnostic.primary));
    let mut labels = Vec::new();
    for label in std::iter::once(&diagnostic.primary).chain(&diagnostic.labels) {
        let mut shown = place(label);
        shown.insert("text".into(), label.text.clone().into());
        labels.push(serde_json::Value::Object(shown));
    }
    object.insert("labels".into(), labels.into());
    object.insert("help".into(), diagnostic.help.clone().into());
    object.insert("notes".into(), diagnostic.notes.clone().into());
    serde_json::Value::Object(object).to_string()
}

/// All diagnostics as text with a blank line between them, ordered by file and place.
pub fn all(sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String {
    let mut out = String::new();
    for diagnostic in sorted(diagnostics) {
        out.push_str(&text(sources, diagnostic, style));
        out.push_str("\n\n");
    }
    out
}

/// By file in the order read, then by place, then by code.
pub fn sorted(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut order: BTreeMap<(FileId, u32, u32, super::Code, usize), &Diagnostic> = BTreeMap::new();
    for (at, diagnostic) in diagnostics.iter().enumerate() {
        let span = diagnostic.primary.span;
        order.insert((span.file, span.start, span.end, diagnostic.code, at), diagnostic);
    }
    order.into_values().collect()
}
