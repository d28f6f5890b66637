//! Arrays that some models lack.

use crate::{Array, Error, Result};

/// The array, where the config says that there is one.
///
/// # Errors
/// When there is none.
pub fn present(x: Option<&Array>) -> Result<Array> {
    x.cloned()
        .ok_or_else(|| Error::Unsupported("an array that the config promises is absent".into()))
}
