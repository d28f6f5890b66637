//! Layers of a config in generated code: how many there are, and where each keeps its state.

use std::collections::HashMap;
use std::ops::Range;

use crate::cache::{CacheLayer, Slot};
use crate::{Error, Result};

/// More rounds than any model has; a larger number in a config is a mistake or an attack.
const MAX_ROUNDS: i64 = 1 << 16;

/// The rounds of a loop over the config's numbers.
///
/// # Errors
/// When there would be more than 65,536.
pub fn rounds_of(from: i64, to: i64) -> Result<Range<i64>> {
    if to.saturating_sub(from) > MAX_ROUNDS {
        return Err(Error::Check(format!("{to} rounds are more than {MAX_ROUNDS}")));
    }
    Ok(from..to)
}

/// A layer of a kind that the family does not declare.
pub fn unknown_kind(kind: &str, layer: i64, kinds: &[&str]) -> Error {
    Error::Check(format!("layer {layer} is {kind:?}, which is none of {}", kinds.join(", ")))
}

/// Slots as layers ask for them: an owner gets its own, a reader that of its kind's last owner.
#[derive(Debug, Default)]
pub struct SlotPlan {
    layers: Vec<CacheLayer>,
    last: HashMap<&'static str, Slot>,
}

impl SlotPlan {
    /// The slot of the next layer.
    ///
    /// # Errors
    /// When it owns none and no layer of its kind before it does.
    pub fn place(&mut self, kind: &'static str, owner: bool, layer: CacheLayer) -> Result<Slot> {
        if owner {
            let slot = u32::try_from(self.layers.len())
                .map(Slot::new)
                .map_err(|_| Error::Check("too many layers".into()))?;
            self.layers.push(layer);
            self.last.insert(kind, slot);
            return Ok(slot);
        }
        self.last.get(kind).copied().ok_or_else(|| {
            Error::Check(format!(
                "a {kind} layer shares keys and values, and no layer of its kind before it has any"
            ))
        })
    }

    /// What each slot remembers.
    pub fn finish(self) -> Vec<CacheLayer> {
        self.layers
    }
}
