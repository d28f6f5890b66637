//! Failures of operations, carried through minijinja's error.

use minijinja::{Error, ErrorKind};

use crate::template::FailureKind;

/// What a failing operation says; the source of minijinja's error.
#[derive(Debug, Clone, thiserror::Error)]
pub(in super::super) enum Failure {
    /// `raise_exception` was called.
    #[error("{0}")]
    Raised(String),
    /// An operation failed.
    #[error("{1}")]
    Operation(FailureKind, String),
    /// A bound was passed.
    #[error("{0}")]
    Bound(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::new(ErrorKind::InvalidOperation, failure.to_string()).with_source(failure)
    }
}

/// A failure of a kind.
pub(in super::super) fn fail<T>(kind: FailureKind, message: impl Into<String>) -> super::Result<T> {
    Err(Failure::Operation(kind, message.into()).into())
}

/// Python's TypeError.
pub(in super::super) fn type_error<T>(message: impl Into<String>) -> super::Result<T> {
    fail(FailureKind::Type, message)
}

/// Python's ValueError.
pub(in super::super) fn value_error<T>(message: impl Into<String>) -> super::Result<T> {
    fail(FailureKind::Value, message)
}

/// Jinja2's UndefinedError.
pub(in super::super) fn undefined<T>(message: impl Into<String>) -> super::Result<T> {
    fail(FailureKind::Undefined, message)
}

/// Jinja2's SecurityError.
pub(in super::super) fn security<T>(message: impl Into<String>) -> super::Result<T> {
    fail(FailureKind::Security, message)
}

/// What Python can do and this cannot.
pub(in super::super) fn unsupported<T>(message: impl Into<String>) -> super::Result<T> {
    fail(FailureKind::Unsupported, message)
}
