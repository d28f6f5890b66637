//! What can go wrong between a chat template and a prompt.

use std::path::PathBuf;

use crate::tokenizer::TokenizerError;

/// An error of finding, parsing or rendering a chat template.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The model folder has no template and the family no renderer of its own.
    #[error("{}: no chat template found", dir.display())]
    NotFound {
        /// The model folder.
        dir: PathBuf,
    },
    /// There are named templates, but not the one that is needed.
    #[error("no chat template named `default`; there are: {names}")]
    NoDefault {
        /// The names, with commas.
        names: String,
    },
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file that holds templates or special tokens is malformed.
    #[error("{}: `{place}`: expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Dotted path of the value.
        place: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// The tokenizer's files are malformed.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The template is not Jinja2, or uses a construct that cannot be served.
    #[error("{origin}: line {line}: {message}{}", excerpt(snippet))]
    Syntax {
        /// Where the template comes from.
        origin: String,
        /// Line of the template, from 1.
        line: usize,
        /// What is wrong, with the construct.
        message: String,
        /// The line's text.
        snippet: String,
    },
    /// The template called `raise_exception`.
    #[error("the chat template refuses: {message}")]
    Raised {
        /// The template's own words.
        message: String,
        /// Line of the call, from 1.
        line: usize,
    },
    /// A rendering failed, as it would fail in Jinja2.
    #[error("{origin}: line {line}: {kind}: {message}{}", excerpt(snippet))]
    Render {
        /// Where the template comes from.
        origin: String,
        /// Line of the template, from 1.
        line: usize,
        /// What sort of failure it is.
        kind: FailureKind,
        /// What is wrong, with the construct.
        message: String,
        /// The line's text.
        snippet: String,
    },
    /// A rendering went past its bounds.
    #[error("{origin}: line {line}: the template went past its bound of {bound}")]
    Bound {
        /// Where the template comes from.
        origin: String,
        /// Line of the template, from 1.
        line: usize,
        /// Which bound.
        bound: String,
    },
    /// A renderer that stands in for a template failed.
    #[error("cannot render the chat: {message}")]
    Fallback {
        /// The renderer's reason.
        message: String,
    },
}

/// The sorts of failure of a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Something undefined was used.
    Undefined,
    /// What the sandbox forbids.
    Security,
    /// A value of the wrong type.
    Type,
    /// A value out of range, or that cannot be converted.
    Value,
    /// A division by zero, or a number too large.
    Arithmetic,
    /// A construct of Jinja2 or Python that cannot be served here.
    Unsupported,
    /// Anything else.
    Other,
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Undefined => "undefined",
            Self::Security => "not allowed",
            Self::Type => "type error",
            Self::Value => "value error",
            Self::Arithmetic => "arithmetic error",
            Self::Unsupported => "cannot be served",
            Self::Other => "error",
        })
    }
}

fn excerpt(snippet: &str) -> String {
    let line = snippet.trim();
    if line.is_empty() {
        return String::new();
    }
    let cut: String = line.chars().take(120).collect();
    let dots = if cut.len() < line.len() { " ..." } else { "" };
    format!("\n  | {cut}{dots}")
}
