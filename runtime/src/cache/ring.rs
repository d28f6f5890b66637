//! Columns as long as some query sees them, newer ones in the places of older ones.

use mlx_rs::Array;

use super::planes::{self, Planes};
use super::sight::Sight;
use super::timeline::Timeline;
use crate::{Error, Result, array, ops};

/// A slot that holds no column.
pub(super) const HOLE: i32 = i32::MAX;

/// Columns as long as some query may still see them. One by one they are written over those that
/// are out of sight; several at once are put in order of time first.
#[derive(Debug, Clone)]
pub(super) struct RingStore {
    planes: Planes,
    /// The column in each slot of the buffers in use, [`HOLE`] where there is none.
    times: Vec<i32>,
    /// Slots the buffers have.
    capacity: i32,
    /// The slot to be written over next, once the buffer is full: that of the oldest column.
    cursor: usize,
    /// Columns were dropped on the grounds that no query from here on sees them.
    floor: i32,
    sight: Sight,
    limit: i32,
    step: i32,
    axis: usize,
}

impl RingStore {
    /// `limit`: columns that a single row needs at most.
    pub fn new(axis: usize, step: i32, sight: Sight, limit: i32) -> Self {
        RingStore {
            planes: Vec::new(),
            times: Vec::new(),
            capacity: 0,
            cursor: 0,
            floor: 0,
            sight,
            limit,
            step,
            axis,
        }
    }

    /// A store that holds these columns of these times.
    pub fn holding(like: &RingStore, planes: Planes, times: Vec<i32>, floor: i32) -> Self {
        let capacity = planes.first().map_or(0, |p| p.dim(like.axis as i32));
        RingStore { planes, times, capacity, cursor: 0, floor, ..like.bare() }
    }

    /// A store of these slots.
    pub fn restored(
        like: &RingStore,
        planes: Planes,
        times: Vec<i32>,
        cursor: usize,
        floor: i32,
    ) -> Self {
        RingStore { cursor, ..RingStore::holding(like, planes, times, floor) }
    }

    /// The slot to be written over next.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    fn bare(&self) -> RingStore {
        RingStore::new(self.axis, self.step, self.sight.clone(), self.limit)
    }

    /// The column of each slot.
    pub fn times(&self) -> &[i32] {
        &self.times
    }

    /// The earliest query for which all columns are still there.
    pub fn floor(&self) -> i32 {
        self.floor
    }

    /// The buffers.
    pub fn buffers(&self) -> &[Array] {
        &self.planes
    }

    fn seen(&self, query: i32, column: i32, line: &Timeline) -> bool {
        column != HOLE
            && line
                .pads
                .iter()
                .any(|&pad| column >= pad && self.sight.sees(query - pad, column - pad))
    }

    /// Adds one column at `line.time`.
    pub fn append_one(&mut self, new: &[Array], line: &Timeline) -> Result<()> {
        let time = line.time;
        let slot = self.free_slot(line)?;
        match slot {
            Some(slot) => {
                planes::write(&mut self.planes, new, self.axis, slot as i32)?;
                // The slot lies within the columns in use.
                self.times[slot] = time;
                self.cursor = (slot + 1) % self.times.len();
            }
            None => {
                let at = self.times.len() as i32;
                if at == self.capacity {
                    let room = (self.limit - at).clamp(1, self.step);
                    let source = if self.planes.is_empty() { new } else { &self.planes };
                    self.planes = source
                        .iter()
                        .map(|x| planes::grown(x, self.axis, at, at + room))
                        .collect::<Result<_>>()?;
                    self.capacity = at + room;
                }
                planes::write(&mut self.planes, new, self.axis, at)?;
                self.times.push(time);
            }
        }
        Ok(())
    }

    /// A slot in use that may be written over by the column at `line.time`.
    fn free_slot(&mut self, line: &Timeline) -> Result<Option<usize>> {
        let time = line.time;
        if self.times.is_empty() {
            return Ok(None);
        }
        if let (Some(pad), true) = (line.common_pad(), self.sight.by_age()) {
            let sees = |column: i32| column != HOLE && self.sight.sees(time - pad, column - pad);
            let newest = self.times[(self.cursor + self.times.len() - 1) % self.times.len()];
            // In a buffer in ring order the cursor stands at the oldest column.
            let oldest = self.times[self.cursor];
            if self.times.len() as i32 <= self.limit && newest == time - 1 && oldest != HOLE {
                if !sees(newest) {
                    self.drop_all(time);
                    return Ok(None);
                }
                if sees(oldest) {
                    return Ok(None);
                }
                self.floor = self.floor.max(time);
                return Ok(Some(self.cursor));
            }
        }
        let free: Vec<usize> =
            (0..self.times.len()).filter(|&i| !self.seen(time, self.times[i], line)).collect();
        if free.iter().any(|&i| self.times[i] != HOLE) {
            self.floor = self.floor.max(time);
        }
        if free.len() == self.times.len() {
            self.drop_all(time);
            return Ok(None);
        }
        if self.times.len() as i32 > self.limit && free.len() > 1 {
            self.order(time, line)?;
            return Ok(None);
        }
        // From the cursor on, so that a ring stays a ring.
        let next = free.iter().find(|&&i| i >= self.cursor).or(free.first());
        Ok(next.copied())
    }

    fn drop_all(&mut self, time: i32) {
        if self.times.iter().any(|&t| t != HOLE) {
            self.floor = self.floor.max(time);
        }
        self.times.clear();
        self.cursor = 0;
    }

    /// Keeps the columns that a query at `time` sees, in order of time.
    fn order(&mut self, time: i32, line: &Timeline) -> Result<()> {
        let slots = self.kept(time, line);
        if slots.len() < self.times.iter().filter(|&&t| t != HOLE).count() {
            self.floor = self.floor.max(time);
        }
        self.planes = self.picked(&slots)?;
        self.times = slots.iter().map(|&i| self.times[i as usize]).collect();
        self.capacity = self.times.len() as i32;
        self.cursor = 0;
        Ok(())
    }

    /// The slots of columns that a query at `time` sees, in order of time.
    fn kept(&self, time: i32, line: &Timeline) -> Vec<i32> {
        let mut slots: Vec<i32> = (0..self.times.len() as i32)
            .filter(|&i| self.seen(time, self.times[i as usize], line))
            .collect();
        slots.sort_by_key(|&i| self.times[i as usize]);
        slots
    }

    /// The planes of these slots, as few copies as possible.
    fn picked(&self, slots: &[i32]) -> Result<Planes> {
        // At most two runs of slots: a ring in order of time.
        let mut runs: Vec<(i32, i32)> = Vec::new();
        for &slot in slots {
            let n = runs.len();
            match runs.last_mut() {
                Some((_, end)) if *end == slot => *end += 1,
                _ if n == 2 => return planes::pick(&self.planes, self.axis, slots),
                _ => runs.push((slot, slot + 1)),
            }
        }
        let view = |&(a, b): &(i32, i32)| planes::view(&self.planes, self.axis, a, b);
        match runs.as_slice() {
            [] => planes::view(&self.planes, self.axis, 0, 0),
            [run] => view(run),
            [a, b, ..] => planes::joined(&view(a)?, &view(b)?, self.axis),
        }
    }

    /// Adds `n` columns from `line.time` on. All that the first of them sees stays.
    pub fn append_many(&mut self, new: &[Array], n: i32, line: &Timeline) -> Result<()> {
        let time = line.time;
        if self.times.is_empty() {
            self.planes = new.to_vec();
        } else {
            self.order(time, line)?;
            self.planes = if self.times.is_empty() {
                new.to_vec()
            } else {
                let mut joined = Vec::with_capacity(new.len());
                for (old, new) in self.planes.iter().zip(new) {
                    joined.push(ops::concat(&[old, new], self.axis as i32)?);
                }
                joined
            };
        }
        self.times.extend(time..time + n);
        self.capacity = self.times.len() as i32;
        self.cursor = 0;
        Ok(())
    }

    /// The columns in use, in the order of [`RingStore::times`].
    pub fn fetch(&self) -> Result<Planes> {
        if self.times.len() as i32 == self.capacity {
            return Ok(self.planes.clone());
        }
        planes::view(&self.planes, self.axis, 0, self.times.len() as i32)
    }

    /// The columns in use in order of time, and their times.
    pub fn ordered(&self) -> Result<(Planes, Vec<i32>)> {
        let mut slots: Vec<i32> =
            (0..self.times.len() as i32).filter(|&i| self.times[i as usize] != HOLE).collect();
        slots.sort_by_key(|&i| self.times[i as usize]);
        let times = slots.iter().map(|&i| self.times[i as usize]).collect();
        Ok((self.picked(&slots)?, times))
    }

    /// The times of columns in use, in order.
    pub fn ordered_times(&self) -> Vec<i32> {
        let mut times: Vec<i32> = self.times.iter().copied().filter(|&t| t != HOLE).collect();
        times.sort_unstable();
        times
    }

    /// Whether the columns from `time` on can be forgotten: all that a query there sees is stored.
    pub fn can_trim_to(&self, time: i32) -> bool {
        time >= self.floor
    }

    /// Forgets the columns from `time` on.
    pub fn trim_to(&mut self, time: i32) -> Result<()> {
        if !self.can_trim_to(time) {
            return Err(Error::cache(format!(
                "cannot trim to position {time}: what it sees was dropped at position {}",
                self.floor
            )));
        }
        for slot in &mut self.times {
            if *slot >= time {
                *slot = HOLE;
            }
        }
        while self.times.last() == Some(&HOLE) {
            self.times.pop();
        }
        self.cursor = if self.times.is_empty() { 0 } else { self.cursor % self.times.len() };
        Ok(())
    }

    /// Moves the columns of row `b` on by `shifts[b]`; those at `end` and beyond are forgotten.
    pub fn roll(&mut self, shifts: &[i32], end: i32) -> Result<()> {
        let (mut planes, own) = self.ordered()?;
        // What a row lacks moves with it.
        let floor = self.floor + shifts.iter().copied().max().unwrap_or(0);
        let mut times: Vec<i32> = shifts
            .iter()
            .flat_map(|shift| own.iter().map(move |t| t + shift))
            .filter(|&t| t < end)
            .collect();
        times.sort_unstable();
        times.dedup();
        if times.is_empty() {
            *self = RingStore { floor, ..self.bare() };
            return Ok(());
        }
        // Columns that a row dropped long ago are read as zeros, and not seen.
        let missing = own.len() as i32;
        for plane in &mut planes {
            *plane = ops::pad(plane, self.axis as i32, 0, 1)?;
        }
        let index: Vec<i32> = shifts
            .iter()
            .flat_map(|shift| {
                let own = &own;
                times
                    .iter()
                    .map(move |t| own.binary_search(&(t - shift)).map_or(missing, |i| i as i32))
            })
            .collect();
        let planes = planes::picked_by_row(&planes, self.axis, shifts.len(), &index)?;
        *self = RingStore::holding(self, planes, times, floor);
        Ok(())
    }

    /// Renumbers all columns by `shift`.
    pub fn shift(&mut self, shift: i32) {
        for time in self.times.iter_mut().filter(|t| **t != HOLE) {
            *time += shift;
        }
        self.floor += shift;
    }

    /// Replaces the buffers by others of the same slots.
    pub fn replace(&mut self, planes: Planes) {
        self.capacity = planes.first().map_or(0, |p| p.dim(self.axis as i32));
        self.planes = planes;
    }

    /// The same columns placed at these times, zeros where this store lacks one.
    pub fn spread(&self, times: &[i32]) -> Result<Planes> {
        let (mut planes, own) = self.ordered()?;
        if own == times {
            return Ok(planes);
        }
        let missing = own.len() as i32;
        for plane in &mut planes {
            *plane = ops::pad(plane, self.axis as i32, 0, 1)?;
        }
        let index: Vec<i32> =
            times.iter().map(|t| own.binary_search(t).map_or(missing, |i| i as i32)).collect();
        let index = array::from_i32s(&index);
        planes.iter().map(|x| ops::take(x, &index, self.axis as i32)).collect()
    }
}
