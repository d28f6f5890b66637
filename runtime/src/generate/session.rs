//! The caches of a conversation, and which tokens they hold.

use crate::Result;
use crate::cache::{CachePlan, CacheSet};

/// Caches that live from one request to the next: what a new prompt shares with the tokens read
/// before is not read again.
#[derive(Debug)]
pub struct Session {
    pub(super) caches: CacheSet,
    /// The tokens that the caches hold.
    pub(super) ids: Vec<u32>,
    plan: CachePlan,
}

impl Session {
    /// A session without tokens.
    pub fn new(plan: &CachePlan) -> Self {
        Self { caches: plan.make(), ids: Vec::new(), plan: plan.clone() }
    }

    /// Tokens that the caches hold.
    pub fn tokens(&self) -> &[u32] {
        &self.ids
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.caches = self.plan.make();
        self.ids.clear();
    }

    /// Brings the caches to the longest beginning of `prompt` that they can hold and that leaves a
    /// token to read; gives its length.
    ///
    /// # Errors
    /// MLX's.
    pub(super) fn reuse(&mut self, prompt: &[u32]) -> Result<usize> {
        let most = prompt.len().saturating_sub(1);
        let common = self.ids.iter().zip(prompt).take(most).take_while(|(a, b)| a == b).count();
        let surplus = self.ids.len() - common;
        // A count of tokens fits: the caches refuse more than 2^30.
        let surplus_i32 = i32::try_from(surplus).unwrap_or(i32::MAX);
        if surplus > 0 && common > 0 && self.caches.can_trim(surplus_i32) {
            self.caches.trim(surplus_i32)?;
            self.ids.truncate(common);
        } else if surplus > 0 {
            self.clear();
        }
        Ok(self.ids.len())
    }
}
