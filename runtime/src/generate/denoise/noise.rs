//! Where the ids of a canvas come from before the model has a say.

use std::collections::VecDeque;

use mlx_rs::{Array, random, transforms};

use crate::{Error, Result};

/// Draws canvases of ids.
pub trait Noise {
    /// `length` ids, each below `vocabulary`.
    ///
    /// # Errors
    /// There are none left, or MLX's.
    fn canvas(&mut self, length: usize, vocabulary: u32) -> Result<Vec<u32>>;
}

/// Draws of a request's own key, which is split for each: no request sees another's.
#[derive(Debug)]
pub struct SeededNoise {
    key: Array,
}

impl SeededNoise {
    /// The draws that a seed fixes.
    ///
    /// # Errors
    /// MLX's.
    pub fn new(seed: u64) -> Result<Self> {
        Ok(Self { key: random::key(seed)? })
    }
}

impl Noise for SeededNoise {
    fn canvas(&mut self, length: usize, vocabulary: u32) -> Result<Vec<u32>> {
        let wrong = |what: &str, n: usize| Error::input(what, "31 bits", n.to_string());
        let length = i32::try_from(length).map_err(|_| wrong("length of a canvas", length))?;
        let bound = vocabulary as usize;
        let bound = i32::try_from(vocabulary).map_err(|_| wrong("vocabulary", bound))?;
        let (rest, own) = random::split(&self.key, 2)?;
        let ids = random::randint::<_, i32>(0, bound, &[length], &own)?;
        // The key too, lest it hold on to all draws before.
        transforms::eval([&ids, &rest])?;
        self.key = rest;
        let ids = ids.try_as_slice::<i32>().map_err(|e| Error::Mlx(e.to_string()))?;
        Ok(ids.iter().map(|id| id.unsigned_abs()).collect())
    }
}

/// Draws that were recorded, in order.
#[derive(Debug)]
pub struct RecordedNoise {
    left: VecDeque<Vec<u32>>,
    count: usize,
}

impl RecordedNoise {
    /// These draws.
    pub fn new(draws: Vec<Vec<u32>>) -> Self {
        Self { count: draws.len(), left: draws.into() }
    }
}

impl Noise for RecordedNoise {
    fn canvas(&mut self, length: usize, vocabulary: u32) -> Result<Vec<u32>> {
        let number = self.count - self.left.len();
        let what = format!("draw {number}");
        let expected = format!("{length} ids");
        let Some(draw) = self.left.pop_front() else {
            let found = format!("no more than {} draws", self.count);
            return Err(Error::input(what, expected, found));
        };
        if draw.len() != length {
            return Err(Error::input(what, expected, draw.len().to_string()));
        }
        match draw.iter().find(|id| **id >= vocabulary) {
            Some(id) => Err(Error::input(what, format!("ids below {vocabulary}"), id.to_string())),
            None => Ok(draw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(noise: &mut dyn Noise, count: usize) -> Vec<Vec<u32>> {
        (0..count).map(|_| noise.canvas(12, 100).unwrap()).collect()
    }

    #[test]
    fn a_seed_fixes_all_draws_and_no_request_moves_another_s() {
        let _alone = crate::alone();
        let (mut a, mut b) = (SeededNoise::new(7).unwrap(), SeededNoise::new(7).unwrap());
        let together: Vec<_> = (0..5).map(|_| (draws(&mut a, 1), draws(&mut b, 1))).collect();
        assert!(together.iter().all(|(a, b)| a == b));
        let alone = draws(&mut SeededNoise::new(7).unwrap(), 5);
        let first: Vec<_> = together.into_iter().flat_map(|(a, _)| a).collect();
        assert_eq!(alone, first);
        let mut all = alone.clone();
        all.extend(draws(&mut SeededNoise::new(8).unwrap(), 5));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10, "a draw came twice");
        assert!(all.iter().flatten().all(|id| *id < 100));
    }

    #[test]
    fn recorded_draws_are_not_believed() {
        let mut noise =
            RecordedNoise::new(vec![vec![1, 2], vec![3], vec![4, 100], vec![u32::MAX, 0]]);
        let mut draw = || noise.canvas(2, 100).map_err(|e| e.to_string());
        assert_eq!(draw(), Ok(vec![1, 2]));
        let said: Vec<String> = (0..4).map(|_| draw().unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        draw 1: expected 2 ids, found 1
        draw 2: expected ids below 100, found 100
        draw 3: expected ids below 100, found 4294967295
        draw 4: expected 2 ids, found no more than 4 draws
        ");
    }
}
