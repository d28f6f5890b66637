//! Columns in pages of one arena, each row with a table of its pages.

use mlx_rs::Array;

use super::planes::{self, Planes};
use super::timeline::Timeline;
use crate::{Error, Result, ops};

/// Columns in pages of a shared arena. Each row has a table of pages and counts its own positions,
/// so that padding takes no room. Pages lie one after the other along the axis of positions: pages
/// in a row are read as they lie, and only scattered ones are gathered.
#[derive(Debug, Clone)]
pub(super) struct PagedStore {
    /// Planes of one row: [1, .., pages · block, ..].
    arenas: Planes,
    pages: i32,
    /// Pages nobody uses, the lowest last.
    free: Vec<i32>,
    rows: Vec<Row>,
    block: i32,
    axis: usize,
}

#[derive(Debug, Clone, Default)]
struct Row {
    table: Vec<i32>,
    len: i32,
}

impl Row {
    fn in_a_row(&self) -> bool {
        self.table.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b))
    }
}

impl PagedStore {
    pub fn new(axis: usize, block: i32) -> Self {
        PagedStore { arenas: Vec::new(), pages: 0, free: Vec::new(), rows: Vec::new(), block, axis }
    }

    /// The arenas.
    pub fn buffers(&self) -> &[Array] {
        &self.arenas
    }

    /// The same pages written otherwise.
    pub fn replace(&mut self, arenas: Planes) {
        self.arenas = arenas;
    }

    /// Adds `n` columns from `line.time` on.
    pub fn append(&mut self, new: &[Array], n: i32, line: &Timeline) -> Result<()> {
        if self.rows.is_empty() {
            self.rows = vec![Row::default(); line.pads.len()];
        }
        for (b, pad) in (0..).zip(&line.pads) {
            // Columns before the row's first token are not kept.
            let skip = (pad - line.time).clamp(0, n);
            self.append_row(new, b, skip, n)?;
        }
        Ok(())
    }

    /// Adds the columns `from..to` of row `b` of `new` to row `b`.
    fn append_row(&mut self, new: &[Array], b: usize, from: i32, to: i32) -> Result<()> {
        let mut at = from;
        while at < to {
            let len = self.rows.get(b).map_or(0, |row| row.len);
            let within = len % self.block;
            if within == 0 {
                let last = self.rows.get(b).and_then(|row| row.table.last().copied());
                let page = self.take_page(new, last.map_or(0, |page| page + 1))?;
                if let Some(row) = self.rows.get_mut(b) {
                    row.table.push(page);
                }
            }
            let n = (self.block - within).min(to - at);
            let page = self.rows.get(b).and_then(|row| row.table.last().copied()).unwrap_or(0);
            let part = planes::view(new, self.axis, at, at + n)?;
            let part = planes::view(&part, 0, b as i32, b as i32 + 1)?;
            planes::write(&mut self.arenas, &part, self.axis, page * self.block + within)?;
            if let Some(row) = self.rows.get_mut(b) {
                row.len += n;
            }
            at += n;
        }
        Ok(())
    }

    /// A free page, `wanted` if it is free; the arenas grow by half when there is none.
    fn take_page(&mut self, like: &[Array], wanted: i32) -> Result<i32> {
        if self.free.is_empty() {
            let pages = (self.pages + (self.pages / 2).max(1)).max(1);
            let used = self.pages * self.block;
            let source = if self.arenas.is_empty() { like } else { &self.arenas };
            let capacity = pages
                .checked_mul(self.block)
                .ok_or_else(|| Error::cache("more pages than positions"))?;
            let mut arenas = Vec::with_capacity(source.len());
            for plane in source {
                let one = planes::columns(plane, 0, 0, 1)?;
                arenas.push(planes::grown(&one, self.axis, used, capacity)?);
            }
            self.arenas = arenas;
            self.free.extend((self.pages..pages).rev());
            self.pages = pages;
        }
        match self.free.iter().position(|page| *page == wanted) {
            Some(at) => Ok(self.free.remove(at)),
            None => self.free.pop().ok_or_else(|| Error::cache("no free page")),
        }
    }

    /// The columns up to `time`, zeros where a row has none.
    pub fn fetch(&self, time: i32) -> Result<Planes> {
        if self.arenas.is_empty() {
            return Err(Error::cache("pages without a column"));
        }
        if let [row] = self.rows.as_slice()
            && row.len == time
        {
            return self.read(row);
        }
        let mut parts: Vec<Planes> = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let front = time - row.len;
            parts.push(if row.len == 0 {
                self.arenas
                    .iter()
                    .map(|arena| {
                        let mut shape = arena.shape().to_vec();
                        (shape[0], shape[self.axis]) = (1, time);
                        Ok(mlx_rs::ops::zeros_dtype(&shape, arena.dtype())?)
                    })
                    .collect::<Result<_>>()?
            } else {
                self.read(row)?
                    .iter()
                    .map(|x| ops::pad(x, self.axis as i32, front, 0))
                    .collect::<Result<_>>()?
            });
        }
        let mut joined = Vec::with_capacity(self.arenas.len());
        for i in 0..self.arenas.len() {
            let column: Vec<&Array> = parts.iter().filter_map(|p| p.get(i)).collect();
            joined.push(ops::concat(&column, 0)?);
        }
        Ok(joined)
    }

    /// The columns of a row: a view where its pages lie one after the other, else a copy.
    fn read(&self, row: &Row) -> Result<Planes> {
        if row.in_a_row() {
            let start = row.table.first().map_or(0, |page| page * self.block);
            return planes::view(&self.arenas, self.axis, start, start + row.len);
        }
        let columns: Vec<i32> = row
            .table
            .iter()
            .flat_map(|page| (0..self.block).map(move |i| page * self.block + i))
            .take(row.len as usize)
            .collect();
        planes::pick(&self.arenas, self.axis, &columns)
    }

    /// Forgets the last `n` positions of row `b`.
    fn trim_row(&mut self, b: usize, n: i32) -> Result<()> {
        let Some(row) = self.rows.get_mut(b) else { return Ok(()) };
        if n > row.len {
            return Err(Error::cache(format!("cannot trim {n} of {} positions", row.len)));
        }
        row.len -= n;
        let pages = (row.len + self.block - 1) / self.block;
        let freed = row.table.split_off(pages as usize);
        self.free.extend(freed.into_iter().rev());
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    /// Forgets the last `n` positions of every row.
    pub fn trim(&mut self, n: i32) -> Result<()> {
        (0..self.rows.len()).try_for_each(|b| self.trim_row(b, n))
    }

    /// Forgets the last `n[b]` positions of row `b`.
    pub fn trim_each(&mut self, n: &[i32]) -> Result<()> {
        n.iter().enumerate().try_for_each(|(b, &n)| self.trim_row(b, n))
    }

    /// Keeps these rows, in this order.
    pub fn filter(&mut self, keep: &[usize]) -> Result<()> {
        let rows: Vec<Row> = keep.iter().filter_map(|&b| self.rows.get(b).cloned()).collect();
        for (b, row) in self.rows.iter().enumerate() {
            if !keep.contains(&b) {
                self.free.extend(&row.table);
            }
        }
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        self.rows = rows;
        // A row that is left alone is read at every token from now on.
        if let [row] = self.rows.as_slice()
            && !row.in_a_row()
        {
            *self = self.extract(0)?;
        }
        Ok(())
    }

    /// Adds the rows of another store behind its own, `count` of them.
    pub fn extend(&mut self, own: usize, other: &PagedStore, count: usize) -> Result<()> {
        if self.rows.is_empty() {
            self.rows = vec![Row::default(); own];
        }
        let first = self.rows.len();
        self.rows.extend(vec![Row::default(); count]);
        for (i, row) in other.rows.iter().enumerate() {
            if row.len > 0 {
                let columns = other.read(row)?;
                self.append_from(&columns, first + i, row.len)?;
            }
        }
        Ok(())
    }

    /// Adds `n` columns of a single row to row `b`.
    fn append_from(&mut self, columns: &[Array], b: usize, n: i32) -> Result<()> {
        // Rows of `new` are counted like the store's: the single row stands at number `b`.
        let row = std::mem::take(&mut self.rows);
        let mut alone =
            PagedStore { rows: vec![row.get(b).cloned().unwrap_or_default()], ..self.take() };
        let done = alone.append_row(columns, 0, 0, n);
        let own = alone.rows.pop().unwrap_or_default();
        *self = alone;
        self.rows = row;
        if let Some(slot) = self.rows.get_mut(b) {
            *slot = own;
        }
        done
    }

    /// This store without its rows, leaving an empty one behind.
    fn take(&mut self) -> PagedStore {
        let empty = PagedStore::new(self.axis, self.block);
        std::mem::replace(self, empty)
    }

    /// Row `b` alone, in pages of its own.
    pub fn extract(&self, b: usize) -> Result<PagedStore> {
        let mut alone = PagedStore::new(self.axis, self.block);
        alone.rows.push(Row::default());
        if let Some(row) = self.rows.get(b)
            && row.len > 0
        {
            let columns = self.read(row)?;
            alone.append_row(&columns, 0, 0, row.len)?;
        }
        Ok(alone)
    }

    /// The columns of row `b`; `None` when it has none.
    pub fn row(&self, b: usize) -> Result<Option<Planes>> {
        match self.rows.get(b) {
            Some(row) if row.len > 0 => self.read(row).map(Some),
            _ => Ok(None),
        }
    }

    /// Adds a row that holds these columns.
    pub fn push_row(&mut self, columns: Option<&[Array]>) -> Result<()> {
        let b = self.rows.len();
        self.rows.push(Row::default());
        match columns {
            Some(columns) => {
                let n = columns.first().map_or(0, |x| x.dim(self.axis as i32));
                self.append_from(columns, b, n)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
