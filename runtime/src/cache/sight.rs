//! What a query sees of what is stored: as a test of two positions and as an array.

use std::sync::Arc;

use mlx_rs::Array;

use crate::Result;
use crate::ops;

/// Which earlier positions a query sees. Once a position is out of sight it stays so for every
/// later query; that is what lets storages drop it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sight {
    /// All of them.
    All,
    /// The last so many, its own included.
    Window(i32),
    /// Those of its own chunk of so many positions.
    Chunk(i32),
    /// Those for which a condition holds.
    Where(Arc<Condition>),
}

/// A condition on the positions of a query and of a key before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The first is less than the second.
    Less(Term, Term),
    /// All hold.
    And(Vec<Condition>),
    /// At least one holds.
    Or(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// A whole number made of positions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Term {
    /// The query's position.
    Query,
    /// The key's position.
    Key,
    /// A constant.
    Number(i32),
    /// A sum.
    Add(Box<[Term; 2]>),
    /// A difference.
    Sub(Box<[Term; 2]>),
    /// A quotient by a constant above 0, rounded down.
    Div(Box<Term>, i32),
}

impl Sight {
    /// Whether a query at position `q` sees position `k`, `k <= q`.
    pub fn sees(&self, q: i32, k: i32) -> bool {
        match self {
            Sight::All => true,
            Sight::Window(window) => q - k < *window,
            Sight::Chunk(chunk) => q.div_euclid(*chunk) == k.div_euclid(*chunk),
            Sight::Where(condition) => condition.holds(q, k),
        }
    }

    /// The condition for arrays of positions; `None` when it always holds.
    pub(super) fn array(&self, q: &Array, k: &Array) -> Result<Option<Array>> {
        Ok(match self {
            Sight::All => None,
            Sight::Window(window) => Some(ops::less(q, &ops::add(k, &Array::from_int(*window))?)?),
            Sight::Chunk(chunk) => {
                let chunk = Array::from_int(*chunk);
                Some(ops::equal(&ops::floor_div(q, &chunk)?, &ops::floor_div(k, &chunk)?)?)
            }
            Sight::Where(condition) => Some(condition.array(q, k)?),
        })
    }

    /// Whether what a query sees depends on positions and not only on distances.
    pub(super) fn absolute(&self) -> bool {
        matches!(self, Sight::Chunk(_) | Sight::Where(_))
    }

    /// Whether sight ends with age: of two positions the older one is never seen alone.
    pub(super) fn by_age(&self) -> bool {
        !matches!(self, Sight::Where(_))
    }
}

impl Condition {
    fn holds(&self, q: i32, k: i32) -> bool {
        match self {
            Condition::Less(a, b) => a.value(q, k) < b.value(q, k),
            Condition::And(all) => all.iter().all(|c| c.holds(q, k)),
            Condition::Or(any) => any.iter().any(|c| c.holds(q, k)),
            Condition::Not(other) => !other.holds(q, k),
        }
    }

    fn array(&self, q: &Array, k: &Array) -> Result<Array> {
        let join = |parts: &[Condition], start: bool| -> Result<Array> {
            let mut joined = Array::from_bool(start);
            for part in parts {
                let part = part.array(q, k)?;
                joined = if start {
                    ops::logical_and(&joined, &part)?
                } else {
                    ops::logical_or(&joined, &part)?
                };
            }
            Ok(joined)
        };
        match self {
            Condition::Less(a, b) => ops::less(&a.array(q, k)?, &b.array(q, k)?),
            Condition::And(all) => join(all, true),
            Condition::Or(any) => join(any, false),
            Condition::Not(other) => ops::equal(&other.array(q, k)?, &Array::from_bool(false)),
        }
    }
}

impl Term {
    /// Wider than positions, so that nothing overflows.
    fn value(&self, q: i32, k: i32) -> i64 {
        match self {
            Term::Query => i64::from(q),
            Term::Key => i64::from(k),
            Term::Number(n) => i64::from(*n),
            Term::Add(terms) => terms[0].value(q, k).saturating_add(terms[1].value(q, k)),
            Term::Sub(terms) => terms[0].value(q, k).saturating_sub(terms[1].value(q, k)),
            Term::Div(term, by) => term.value(q, k).div_euclid(i64::from((*by).max(1))),
        }
    }

    fn array(&self, q: &Array, k: &Array) -> Result<Array> {
        match self {
            Term::Query => Ok(q.clone()),
            Term::Key => Ok(k.clone()),
            Term::Number(n) => Ok(Array::from_int(*n)),
            Term::Add(terms) => ops::add(&terms[0].array(q, k)?, &terms[1].array(q, k)?),
            Term::Sub(terms) => ops::sub(&terms[0].array(q, k)?, &terms[1].array(q, k)?),
            Term::Div(term, by) => {
                ops::floor_div(&term.array(q, k)?, &Array::from_int((*by).max(1)))
            }
        }
    }
}
