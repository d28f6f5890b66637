//! Logits of every position, for comparison with other programs.

use mlx_rs::Array;

use super::Model;
use crate::graph::TokenPhases;
use crate::{Error, Result, ops};

impl Model {
    /// The logits after every token: ids int32 [B, T] -> float32 [B, T, V].
    ///
    /// Without `chunks` in one forward; with them through the caches in appends of those lengths, a
    /// single token as a decode.
    ///
    /// # Errors
    /// The chunks do not add up to T, or one is 0.
    pub fn logits(&self, ids: &Array, chunks: Option<&[usize]>) -> Result<Array> {
        let graph = self.graph().autoregressive()?;
        let &[_, total] = ids.shape() else {
            return Err(Error::input("ids", "rows and tokens", format!("{:?}", ids.shape())));
        };
        let whole = [total as usize];
        let chunks = chunks.unwrap_or(&whole);
        let sum = chunks.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
        if sum != Some(total as usize) || chunks.contains(&0) {
            let list: Vec<String> = chunks.iter().map(ToString::to_string).collect();
            return Err(Error::input(
                "chunks",
                format!("numbers from 1 that add up to {total}"),
                list.join(","),
            ));
        }
        let mut caches = self.cache_plan().make();
        let (mut parts, mut at) = (Vec::new(), 0);
        for chunk in chunks {
            let end = at + *chunk as i32;
            let part = ops::slice(ids, 1, at, end)?;
            let hidden = match chunk {
                1 if chunks.len() > 1 => graph.decode(&mut caches, &part)?,
                _ => graph.prompt(&mut caches, &part)?,
            };
            let logits = ops::to_f32(&TokenPhases::logits(graph, &hidden)?)?;
            logits.eval()?;
            parts.push(logits);
            at = end;
        }
        ops::concat(&parts.iter().collect::<Vec<_>>(), 1)
    }
}
