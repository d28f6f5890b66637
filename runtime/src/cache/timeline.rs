//! Which position each column of each row holds, and where a pass begins.

use mlx_rs::Array;

use crate::array::from_i32s;
use crate::{Error, Result};

/// Which column is next and where each row begins. Column `t` of row `b` is position `t - pads[b]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// Columns appended so far, the next column's number.
    pub time: i32,
    /// For each row the column of its first token; may be negative after old columns were dropped.
    pub pads: Vec<i32>,
}

impl Timeline {
    /// Rows; 0 before the first append.
    pub fn rows(&self) -> usize {
        self.pads.len()
    }

    /// Tokens of row `b`.
    pub fn tokens(&self, b: usize) -> i32 {
        self.pads.get(b).map_or(0, |pad| self.time - pad)
    }

    /// The pad of all rows when they agree.
    pub fn common_pad(&self) -> Option<i32> {
        let first = self.pads.first().copied().unwrap_or(0);
        self.pads.iter().all(|&p| p == first).then_some(first)
    }

    /// Whether any row has padding in front of its first token at or after column `first`.
    pub fn padded_from(&self, first: i32) -> bool {
        self.pads.iter().any(|&p| p > first)
    }

    /// The position of the next token.
    pub fn offset(&self) -> Offset {
        match self.common_pad() {
            Some(pad) => Offset::Same(self.time - pad),
            None => {
                let rows: Vec<i32> = self.pads.iter().map(|p| self.time - p).collect();
                let array = from_i32s(&rows);
                Offset::Rows(rows, array)
            }
        }
    }

    /// The column count after `n` more.
    pub fn after(&self, n: i32) -> Result<i32> {
        self.time
            .checked_add(n)
            .filter(|&t| t <= 1 << 30)
            .ok_or_else(|| Error::cache("more than 2^30 positions"))
    }
}

/// Where the tokens of a pass begin: one position, or one for each row.
#[derive(Debug, Clone)]
pub enum Offset {
    /// All rows at the same position.
    Same(i32),
    /// A position a row, on the host and as int32 \[B\].
    Rows(Vec<i32>, Array),
}

impl Offset {
    /// The greatest of the rows.
    pub fn last(&self) -> i32 {
        match self {
            Offset::Same(offset) => *offset,
            Offset::Rows(rows, _) => rows.iter().copied().max().unwrap_or(0),
        }
    }
}
