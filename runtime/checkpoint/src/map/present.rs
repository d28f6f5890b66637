//! What a checkpoint holds, for conditions of weight maps.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::pattern::Pattern;
use super::rule::dim;
use crate::tensors::Dtype;

/// Name, type and shape.
pub(super) type Tensor = (Box<str>, Dtype, Vec<usize>);

/// What a checkpoint holds, after prefixes are stripped and before anything is dropped or mapped.
///
/// Answers are kept, so a condition may ask again for every tensor.
#[derive(Debug, Default)]
pub struct Present {
    /// In order of names.
    tensors: Vec<Tensor>,
    kept: Mutex<HashMap<String, Found>>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    count: usize,
    first: Option<usize>,
}

impl Present {
    pub(super) fn new(mut tensors: Vec<Tensor>) -> Self {
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        Present { tensors, kept: Mutex::default() }
    }

    /// Whether a tensor matches `pattern`.
    ///
    /// # Errors
    /// Here and below: when the pattern cannot be read.
    pub fn any(&self, pattern: &str) -> Result<bool, String> {
        Ok(self.find(pattern)?.count > 0)
    }

    /// How many tensors match.
    pub fn count(&self, pattern: &str) -> Result<i64, String> {
        Ok(self.find(pattern)?.count as i64)
    }

    /// An axis of the first match by name, from the end when `axis` is negative; `None` without a
    /// match or such an axis.
    pub fn dim(&self, pattern: &str, axis: i64) -> Result<Option<i64>, String> {
        Ok(self.first(pattern)?.and_then(|(_, _, shape)| dim(shape, axis)))
    }

    /// How many axes the first match has.
    pub fn rank(&self, pattern: &str) -> Result<Option<i64>, String> {
        Ok(self.first(pattern)?.map(|(_, _, shape)| shape.len() as i64))
    }

    /// The type of the first match.
    pub fn dtype(&self, pattern: &str) -> Result<Option<Dtype>, String> {
        Ok(self.first(pattern)?.map(|(_, dtype, _)| *dtype))
    }

    /// All names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|(name, _, _)| &**name)
    }

    fn first(&self, pattern: &str) -> Result<Option<&Tensor>, String> {
        Ok(self.find(pattern)?.first.and_then(|at| self.tensors.get(at)))
    }

    fn find(&self, text: &str) -> Result<Found, String> {
        let kept = |p: &Mutex<HashMap<String, Found>>| {
            p.lock().unwrap_or_else(PoisonError::into_inner).get(text).copied()
        };
        if let Some(found) = kept(&self.kept) {
            return Ok(found);
        }
        let pattern = Pattern::parse(text).map_err(|e| e.to_string())?;
        let mut found = Found { count: 0, first: None };
        if let Some(name) = pattern.as_literal() {
            found.first = self.tensors.binary_search_by(|t| (*t.0).cmp(name)).ok();
            found.count = usize::from(found.first.is_some());
            return Ok(found);
        }
        let prefix = pattern.literal_prefix();
        let start = self.tensors.partition_point(|t| &*t.0 < prefix);
        for (at, tensor) in self.tensors.iter().enumerate().skip(start) {
            if !tensor.0.starts_with(prefix) {
                break;
            }
            if pattern.matches(&tensor.0).is_some() {
                found.count += 1;
                found.first.get_or_insert(at);
            }
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(text.to_owned(), found);
        Ok(found)
    }
}
