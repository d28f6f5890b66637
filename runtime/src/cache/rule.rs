use mlx_rs::Array;

use crate::Result;
use crate::ops;

/// Which earlier positions a query sees. Once a position is out of sight it stays so for every
/// later query; that is what lets storages drop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// All of them.
    All,
    /// The last so many, its own included.
    Window(i32),
    /// Those of its own chunk of so many positions.
    Chunk(i32),
    /// The first `sink` positions and the last `window`.
    SinkWindow {
        /// Positions kept from the beginning.
        sink: i32,
        /// Positions kept before the query, its own included.
        window: i32,
    },
}

impl Rule {
    /// Whether a query at position `q` sees position `k`, `k <= q`.
    pub fn sees(self, q: i32, k: i32) -> bool {
        match self {
            Rule::All => true,
            Rule::Window(window) => q - k < window,
            Rule::Chunk(chunk) => q.div_euclid(chunk) == k.div_euclid(chunk),
            Rule::SinkWindow { sink, window } => k < sink || q - k < window,
        }
    }

    /// The condition for arrays of positions; `None` when it always holds.
    pub(super) fn array(self, q: &Array, k: &Array) -> Result<Option<Array>> {
        let near = |window: i32| -> Result<Array> {
            let bound = ops::add(k, &Array::from_int(window))?;
            ops::less(q, &bound)
        };
        Ok(match self {
            Rule::All => None,
            Rule::Window(window) => Some(near(window)?),
            Rule::Chunk(chunk) => {
                let chunk = Array::from_int(chunk);
                Some(ops::equal(&ops::floor_div(q, &chunk)?, &ops::floor_div(k, &chunk)?)?)
            }
            Rule::SinkWindow { sink, window } => {
                let sink = ops::less(k, &Array::from_int(sink))?;
                Some(ops::logical_or(&sink, &near(window)?)?)
            }
        })
    }

    /// Whether what a query sees depends on positions and not only on distances.
    pub(super) fn absolute(self) -> bool {
        matches!(self, Rule::Chunk(_) | Rule::SinkWindow { .. })
    }

    /// Whether sight ends with age: of two positions the older one is never seen alone.
    pub(super) fn by_age(self) -> bool {
        !matches!(self, Rule::SinkWindow { .. })
    }
}
