//! Logits of every position, for comparison with other programs.

use mlx_rs::Array;

use super::{Model, Session};
use crate::cache::CacheSet;
use crate::graph::TokenPhases;
use crate::{Error, Result, ops};

/// The lengths of the appends of `total` tokens: those of `chunks`, else one of all.
///
/// # Errors
/// The chunks do not add up to the total, or one is 0.
pub(crate) fn append_lengths(chunks: Option<&[usize]>, total: usize) -> Result<Vec<usize>> {
    let Some(chunks) = chunks else { return Ok(vec![total]) };
    let sum = chunks.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
    if sum == Some(total) && !chunks.contains(&0) {
        return Ok(chunks.to_vec());
    }
    let list: Vec<String> = chunks.iter().map(ToString::to_string).collect();
    let expected = format!("numbers from 1 that add up to {total}");
    Err(Error::input("chunks", expected, list.join(",")))
}

impl Model {
    /// The logits after every token: ids int32 [B, T] -> float32 [B, T, V].
    ///
    /// Without `chunks` in one forward; with them through the caches in appends of those lengths, a
    /// single token as a decode.
    ///
    /// # Errors
    /// The chunks do not add up to T, or one is 0.
    pub fn logits(&self, ids: &Array, chunks: Option<&[usize]>) -> Result<Array> {
        self.logits_after(&mut self.cache_plan().make(), ids, chunks)
    }

    /// The same for ids that follow what a session holds, which holds them then too; only the tokens of
    /// a single row are known afterwards.
    ///
    /// # Errors
    /// As [`Model::logits`].
    pub fn logits_in(
        &self,
        session: &mut Session,
        ids: &Array,
        chunks: Option<&[usize]>,
    ) -> Result<Array> {
        let logits = self.logits_after(&mut session.caches, ids, chunks);
        let known = ids.to_vec_cast::<u32>().map_err(|e| Error::Mlx(e.to_string()));
        match (&logits, known) {
            (Ok(_), Ok(ids)) => session.ids.extend(ids),
            _ => session.clear(),
        }
        logits
    }

    fn logits_after(
        &self,
        caches: &mut CacheSet,
        ids: &Array,
        chunks: Option<&[usize]>,
    ) -> Result<Array> {
        let graph = self.graph().autoregressive()?;
        let &[_, total] = ids.shape() else {
            return Err(Error::input("ids", "rows and tokens", format!("{:?}", ids.shape())));
        };
        let chunks = append_lengths(chunks, total as usize)?;
        let (mut parts, mut at) = (Vec::new(), 0);
        for chunk in &chunks {
            let end = at + *chunk as i32;
            let part = ops::slice(ids, 1, at, end)?;
            let hidden = match chunk {
                1 if chunks.len() > 1 => graph.decode(caches, &part)?,
                _ => graph.prompt(caches, &part)?,
            };
            let logits = ops::to_f32(&TokenPhases::logits(graph, &hidden)?)?;
            logits.eval()?;
            parts.push(logits);
            at = end;
        }
        ops::concat(&parts.iter().collect::<Vec<_>>(), 1)
    }
}
