//! Why a graph needs a tensor, for the message when it is missing.

use super::pattern::Pattern;
use crate::config::{Key, Reader};

/// Why a graph needs some tensors: a condition over the configuration that holds, or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    tensors: Vec<Pattern>,
    because: String,
}

impl Reason {
    /// `tensors` are patterns of names; `condition` is as the family's document has it; `keys` are
    /// the keys that it reads, each with its paths. A pattern that cannot be read fits nothing.
    pub fn new(
        tensors: &[&str],
        (condition, holds): (&str, bool),
        keys: &[(&str, &[&str])],
        config: &Reader<'_>,
    ) -> Reason {
        let tensors = tensors.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
        let told = keys.iter().map(|(name, paths)| config.told(Key::new(name).paths(paths)));
        let told: Vec<String> = told.collect();
        Reason { tensors, because: format!("{} ({})", because(condition, holds), told.join(", ")) }
    }

    /// Whether it is about this tensor.
    pub fn concerns(&self, tensor: &str) -> bool {
        self.tensors.iter().any(|pattern| pattern.matches(tensor).is_some())
    }

    /// The reason, in words.
    pub fn because(&self) -> &str {
        &self.because
    }
}

/// `it is needed because ...`
pub fn because(condition: &str, holds: bool) -> String {
    let holds = if holds { "holds" } else { "does not hold" };
    format!("it is needed because `{condition}` {holds}")
}
