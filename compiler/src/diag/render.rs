//! Text and JSON forms of diagnostics.
