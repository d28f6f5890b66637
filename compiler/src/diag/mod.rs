//! Diagnostics as data; [`render`] turns them into text or JSON.

mod codes;
pub mod render;

pub use codes::Code;

use std::collections::HashMap;
use std::hash::Hash;

use crate::source::Span;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The spec cannot be used.
    Error,
    /// The spec works, and probably not as meant.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A place and what to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// Shown beside it; may be empty.
    pub text: String,
}

/// One finding about a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// One line.
    pub message: String,
    /// Where the finding is.
    pub primary: Label,
    /// Other places that matter, in any file.
    pub labels: Vec<Label>,
    /// What to do.
    pub help: Vec<String>,
    /// What else is true.
    pub notes: Vec<String>,
    /// How many things it stands for, where it tells of several alike.
    pub count: usize,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            primary: Label { span, text: String::new() },
            labels: Vec::new(),
            help: Vec::new(),
            notes: Vec::new(),
            count: 1,
        }
    }

    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Text beside the primary place.
    #[must_use]
    pub fn here(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Another place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// How many things it stands for.
    #[must_use]
    pub fn counting(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    /// A line that says what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// The nearest known name, where one is near, as what was probably meant.
    #[must_use]
    pub fn did_you_mean<'a>(self, found: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(found, known) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// The same, and other help where no name is near.
    #[must_use]
    pub fn did_you_mean_or<'a>(
        self,
        found: &str,
        known: impl IntoIterator<Item = &'a str>,
        help: impl FnOnce() -> String,
    ) -> Self {
        match nearest(found, known) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self.help(help()),
        }
    }

    /// The same for types, which may also be known by their names in other languages.
    #[must_use]
    pub(crate) fn did_you_mean_type(
        self,
        found: &str,
        known: &[&'static str],
        help: impl FnOnce() -> String,
    ) -> Self {
        match type_alias(found).filter(|name| known.contains(name)) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self.did_you_mean_or(found, known.iter().copied(), help),
        }
    }

    /// A line of background.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
}

/// Each finding once: two phases may look at one expression, two families at one file.
pub fn once(found: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let key = |one: &Diagnostic| (one.code, one.primary.span, one.message.clone());
    grouped(found, key).into_iter().map(|(first, _)| first).collect()
}

/// The first finding of each key, and how many more there are of it.
pub fn grouped<K: Eq + Hash>(
    found: impl IntoIterator<Item = Diagnostic>,
    key: impl Fn(&Diagnostic) -> K,
) -> Vec<(Diagnostic, usize)> {
    let mut groups: Vec<(Diagnostic, usize)> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for diagnostic in found {
        let place = *places.entry(key(&diagnostic)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((first, more)) => {
                first.count += diagnostic.count;
                *more += 1;
            }
            None => groups.push((diagnostic, 0)),
        }
    }
    groups
}

/// Whether any of them is an error.
pub fn has_errors(diags: &[Diagnostic]) -> bool {
    diags.iter().any(|d| d.severity == Severity::Error)
}

/// The known name nearest to `found`: near enough to be a slip of the keyboard, or made of its words
/// and others.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let longest = found.chars().count();
    let slip = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(found, name), *name))
        .filter(|&(distance, name)| {
            let room = longest.max(name.chars().count());
            distance <= (room / 3).max(1) && distance < room
        })
        .min_by_key(|&(distance, name)| (distance, name.len(), name))
        .map(|(_, name)| name);
    slip.or_else(|| {
        let words: Vec<&str> = found.split('_').filter(|word| !word.is_empty()).collect();
        let holds =
            |name: &&&str| words.iter().all(|word| name.split('_').any(|part| part == *word));
        let enough = words.len() > 1 || words.iter().any(|word| word.len() > 5);
        known
            .iter()
            .filter(holds)
            .min_by_key(|name| (name.len(), **name))
            .copied()
            .filter(|_| enough)
    })
}

/// A type by the name it has in other languages.
fn type_alias(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "integer" | "i32" | "i64" | "size" | "number" | "long" => "int",
        "boolean" | "flag" | "switch" => "bool",
        "string" | "text" | "word" => "str",
        "double" | "real" | "f32" | "f64" | "f16" => "float",
        "array" => "tensor",
        "object" | "table" | "any" | "dict" | "map" => "json",
        "list" | "integers" => "ints",
        "strings" => "strs",
        _ => return None,
    })
}

/// A list of names for a sentence: "`a`, `b` or `c`".
pub fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}
