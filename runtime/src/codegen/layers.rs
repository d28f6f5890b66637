//! Layers of a config in generated code: how many there are, and where each keeps its state.

use std::collections::HashMap;

use crate::cache::{CacheLayer, Slot};
use crate::{Error, Result};

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
