//! Manifests: line ends, blanks at line ends, runs of blank lines. Order and alignment are the
//! author's.

use toml::de::{DeTable, DeValue};

/// Formats a manifest. Texts over several lines stay as they are, and so does a document that is
/// no TOML.
pub fn manifest(text: &str) -> String {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return text.to_owned();
    }
    let mut kept = Vec::new();
    texts(table.get_ref(), &mut kept);
    let mut out = String::with_capacity(text.len());
    let mut blank = 1;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        // The line's end, or its start, lies within a text.
        let within = |place: usize| kept.iter().any(|(start, end)| *start < place && place < *end);
        let trimmed = if within(range.end) { line } else { line.trim_end() };
        if trimmed.is_empty() && !within(range.start) {
            blank += 1;
            if blank == 1 {
                out.push('\n');
            }
            continue;
        }
        blank = 0;
        out.push_str(trimmed);
        if !trimmed.ends_with('\n') {
            out.push('\n');
        }
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

/// Ranges of texts that span lines.
fn texts(table: &DeTable<'_>, found: &mut Vec<(usize, usize)>) {
    for value in table.values() {
        walk(value, found);
    }
}

fn walk(value: &toml::Spanned<DeValue<'_>>, found: &mut Vec<(usize, usize)>) {
    let range = value.span();
    match value.get_ref() {
        DeValue::String(_) => found.push((range.start, range.end)),
        DeValue::Array(items) => items.iter().for_each(|item| walk(item, found)),
        DeValue::Table(table) => texts(table, found),
        _ => {}
    }
}
