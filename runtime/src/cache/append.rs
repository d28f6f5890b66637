//! All columns in one buffer, which grows by whole steps.

use mlx_rs::Array;

use super::planes::{self, Planes};
use crate::{Error, Result};

/// Columns one after the other in a buffer that grows by whole steps and is written in place.
#[derive(Debug, Clone)]
pub(super) struct AppendStore {
    /// Buffers of `capacity` columns; empty before the first append.
    planes: Planes,
    capacity: i32,
    /// Columns that the next buffer holds at least.
    least: i32,
    len: i32,
    step: i32,
    axis: usize,
}

impl AppendStore {
    pub fn new(axis: usize, step: i32) -> Self {
        AppendStore { planes: Vec::new(), capacity: 0, least: 0, len: 0, step, axis }
    }

    /// The next buffer has room for `columns` in all.
    pub fn reserve(&mut self, columns: i32) {
        self.least = columns;
    }

    /// Columns in use.
    pub fn len(&self) -> i32 {
        self.len
    }

    /// The buffers.
    pub fn buffers(&self) -> &[Array] {
        &self.planes
    }

    /// Adds columns after the last.
    pub fn append(&mut self, new: &[Array]) -> Result<()> {
        let Some(n) = new.first().map(|x| x.dim(self.axis as i32)) else { return Ok(()) };
        let needed = self.len + n;
        if needed > self.capacity {
            let capacity = whole_steps(needed.max(self.least), self.step);
            let source = if self.planes.is_empty() { new } else { &self.planes };
            // A fresh buffer takes only the types and widths of the first columns.
            let len = if self.planes.is_empty() { 0 } else { self.len };
            self.planes = source
                .iter()
                .map(|x| planes::grown(x, self.axis, len, capacity))
                .collect::<Result<_>>()?;
            self.capacity = capacity;
        }
        planes::write(&mut self.planes, new, self.axis, self.len)?;
        self.len = needed;
        Ok(())
    }

    /// The columns in use.
    pub fn fetch(&self) -> Result<Planes> {
        if self.len == self.capacity {
            return Ok(self.planes.clone());
        }
        planes::view(&self.planes, self.axis, 0, self.len)
    }

    /// Forgets the last `n` columns.
    pub fn trim(&mut self, n: i32) -> Result<()> {
        if n > self.len {
            return Err(Error::cache(format!("cannot trim {n} of {} positions", self.len)));
        }
        self.len -= n;
        Ok(())
    }

    /// Replaces the buffers by others of as many columns in use.
    pub fn replace(&mut self, planes: Planes, len: i32) {
        self.capacity = planes.first().map_or(0, |p| p.dim(self.axis as i32));
        self.planes = planes;
        self.len = len.min(self.capacity);
    }

    /// Replaces the buffers by copies of these columns with room for more.
    pub fn replace_grown(&mut self, columns: &[Array]) -> Result<()> {
        let len = columns.first().map_or(0, |p| p.dim(self.axis as i32));
        let capacity = whole_steps(len + 1, self.step);
        self.planes = columns
            .iter()
            .map(|x| planes::grown(x, self.axis, len, capacity))
            .collect::<Result<_>>()?;
        (self.len, self.capacity) = (len, capacity);
        Ok(())
    }
}

/// `n` rounded up to whole steps.
fn whole_steps(n: i32, step: i32) -> i32 {
    (n + step - 1) / step * step
}
