//! A text as one vector.

use mlx_rs::Array;
use specc_text::Tokenizer;

use super::Model;
use super::generation::row;
use crate::capabilities::Provided;
use crate::family::{Pooling, TextVector};
use crate::graph::{LoadedGraph, TokenPhases};
use crate::pass::Pass;
use crate::{Error, Result, ops};

/// The vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One number a hidden dimension.
    pub vector: Vec<f32>,
    /// Tokens of the text before it was cut at the model's limit; none when it was not.
    pub cut_from: Option<usize>,
    /// Tokens that the model saw.
    pub tokens: usize,
}

impl Model {
    /// The vector of a text, as the family says: pooled, and of length 1 where it normalises.
    ///
    /// A text longer than the model's positions is cut; its special tokens stay.
    ///
    /// # Errors
    /// The family says nothing about vectors, or there is no tokenizer.
    pub fn embed(&self, text: &str) -> Result<Embedded> {
        if !self.capabilities().embeddings {
            let what = format!("models of the family {} give no vectors", self.family().name);
            return Err(Error::Unsupported(what));
        }
        // A graph that pools by itself may leave the rest unsaid.
        let how = self.family().embedding.unwrap_or(TextVector::UNSAID);
        let limit = how.max_positions.map(|limit| limit(self.source())).transpose()?;
        let limit = limit.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
        let (ids, cut_from) = text_ids(self.tokenizer()?, text, &how, limit)?;
        self.check_ids(&ids)?;
        let ids_array = row(&ids)?;
        let vector = match self.graph() {
            LoadedGraph::Embedding(graph) => {
                let mut pass = Pass::whole(&ids_array, None)?;
                pool(&ops::to_f32(&graph.hidden(&mut pass, &ids_array)?)?, &how)?
            }
            LoadedGraph::Registered(parts) => match &parts.embed_pooled {
                Some(Provided::Function(pooled)) => {
                    ops::flatten(&ops::to_f32(&pooled(&ids_array)?)?, 0, -1)?
                }
                _ => return Err(Error::Unsupported("this graph pools nothing".into())),
            },
            graph => {
                let graph = graph.autoregressive()?;
                let hidden = graph.prompt(&mut self.bound().make_cache(), &ids_array)?;
                pool(&ops::to_f32(&hidden)?, &how)?
            }
        };
        vector.eval()?;
        let vector = vector.try_as_slice::<f32>().map_err(|e| Error::Mlx(e.to_string()))?.to_vec();
        Ok(Embedded { vector, cut_from, tokens: ids.len() })
    }
}

/// Hidden states [1, L, hidden] to one vector [hidden].
fn pool(hidden: &Array, how: &TextVector) -> Result<Array> {
    let n = hidden.dim(1);
    let pooled = match how.pooling {
        Pooling::Mean => ops::mean(hidden, 1, false)?,
        Pooling::First => ops::entry(hidden, 0, 1)?,
        Pooling::Last => ops::entry(hidden, n - 1, 1)?,
    };
    let pooled = ops::flatten(&pooled, 0, -1)?;
    if !how.normalise {
        return Ok(pooled);
    }
    let length = ops::sqrt(&ops::sum(&ops::square(&pooled)?, -1, true)?)?;
    // A vector of zeros stays one.
    let least = crate::array::scalar(1e-12, length.dtype());
    ops::div(&pooled, &ops::maximum(&length, &least)?)
}

/// The ids of a text with the tokenizer's special tokens, cut to `limit`; and its full length when
/// it was cut.
fn text_ids(
    tokenizer: &Tokenizer,
    text: &str,
    how: &TextVector,
    limit: Option<usize>,
) -> Result<(Vec<u32>, Option<usize>)> {
    let plain = tokenizer.encode(text, false)?;
    let (mut before, mut after) = surroundings(&tokenizer.encode(text, true)?, &plain);
    if let Some(token) = how.terminator {
        let Some(id) = tokenizer.token_to_id(token) else {
            let what = format!("the tokenizer has no {token:?}, with which a text has to end");
            return Err(Error::Unsupported(what));
        };
        if after.last().or(plain.last()) != Some(&id) {
            after.push(id);
        }
    }
    let total = before.len() + plain.len() + after.len();
    let limit = limit.unwrap_or(usize::MAX);
    let room = limit.saturating_sub(before.len() + after.len()).min(plain.len());
    before.extend_from_slice(&plain[..room]);
    before.append(&mut after);
    before.truncate(limit);
    Ok((before, (total > limit).then_some(total)))
}

/// The special tokens around a text.
fn surroundings(whole: &[u32], plain: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let extra = whole.len().saturating_sub(plain.len());
    let at = (0..=extra).find(|at| whole[*at..].starts_with(plain)).unwrap_or(0);
    let end = (at + plain.len()).min(whole.len());
    (whole[..at].to_vec(), whole[end..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::surroundings;

    #[test]
    fn special_tokens_are_found_on_both_sides() {
        assert_eq!(surroundings(&[1, 5, 6, 2], &[5, 6]), (vec![1], vec![2]));
        assert_eq!(surroundings(&[5, 6], &[5, 6]), (vec![], vec![]));
        assert_eq!(surroundings(&[1, 2], &[]), (vec![], vec![1, 2]));
    }
}
