//! From a file to a set of caches of a plan.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use mlx_rs::Array;

use super::arrays::{dtype_of, hash, short_hash};
use super::check::{check, check_conversion, check_planes, check_rows, check_sight, check_times};
use super::header::{ArrayHeader, Header, LayerHeader, StoreHeader, TokensHeader};
use super::{Identity, MAGIC, MAX_HEADER, PersistError, PersistErrorKind, VERSION, aligned, io};
use crate::array::from_bytes;
use crate::cache::ring::RingStore;
use crate::cache::rowwise::{Row, RowStore};
use crate::cache::tokens::{Store, TokenCache};
use crate::cache::{CachePlan, CacheSet, LayerCache, StateCache, Timeline};
use crate::{Error, Result};

impl CachePlan {
    /// Reads a file that [`CacheSet::save`] wrote for the same model and composition: the caches,
    /// and the tokens of each row.
    ///
    /// # Errors
    /// When the file is not whole, not what was written, or of another model or composition.
    pub fn load(
        &self,
        file: &Path,
        identity: &Identity,
        composition: &str,
    ) -> Result<(CacheSet, Vec<Vec<u32>>)> {
        let loaded = Loading::open(file).and_then(|loading| {
            let (loading, header, start) = loading.header(identity, composition)?;
            // Nothing is read before it is known to be wanted, and once at most.
            self.check_counts(&header)?;
            let arrays = loading.arrays(&header, start)?;
            let set = self.restore(&header, arrays)?;
            Ok((set, header.tokens))
        });
        loaded.map_err(|what| match what {
            Failure::File(what) => PersistError { file: file.to_owned(), what }.into(),
            Failure::Other(error) => error,
        })
    }

    fn restore(&self, header: &Header, arrays: Vec<Array>) -> Result<CacheSet, Failure> {
        let mut set = self.make();
        let line = Timeline { time: header.time, pads: header.pads.clone() };
        let mut arrays = arrays.into_iter();
        for (i, (layer, described)) in set.layers.iter_mut().zip(&header.layers).enumerate() {
            let what = format!("layer {i}");
            match (&mut *layer, described) {
                (LayerCache::Tokens(cache), LayerHeader::Tokens(described)) => {
                    fill(cache, described, &line, &mut arrays, &what)?;
                }
                (LayerCache::States(cache), LayerHeader::States { arrays: n }) => {
                    let states = take(&mut arrays, *n, &what)?;
                    for x in &states {
                        check_rows(x, line.rows(), &what)?;
                    }
                    *cache = StateCache::holding(states);
                }
                (LayerCache::Nothing, LayerHeader::Nothing) => {}
                _ => return bad(&what, "the plan's kind of cache", "another"),
            }
        }
        self.check_held(&set)?;
        set.line = line;
        Ok(set)
    }
}

/// A fault of the file, or another one.
pub(in crate::cache) enum Failure {
    File(PersistErrorKind),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

pub(in crate::cache) fn bad<T>(
    what: &str,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Result<T, Failure> {
    Err(Failure::File(PersistErrorKind::Header {
        what: what.to_owned(),
        expected: expected.into(),
        found: found.into(),
    }))
}

fn take(
    arrays: &mut impl Iterator<Item = Array>,
    n: usize,
    what: &str,
) -> Result<Vec<Array>, Failure> {
    // Never more than the file has: `take` stops at its end.
    let taken: Vec<Array> = arrays.take(n).collect();
    if taken.len() == n { Ok(taken) } else { bad(what, format!("{n} arrays"), "fewer") }
}

/// Fills a fresh cache with what a file holds, which has to be called what it is.
fn fill(
    cache: &mut TokenCache,
    described: &TokensHeader,
    line: &Timeline,
    arrays: &mut impl Iterator<Item = Array>,
    what: &str,
) -> Result<(), Failure> {
    place(cache, described, line, arrays, what)?;
    // Rows of their own say it each for themselves, and nothing has no name.
    let own = cache.signature();
    let named = matches!(cache.store, Store::Rows(_)) || cache.arrays().is_empty();
    if named || own == described.signature {
        return Ok(());
    }
    bad(what, own, &described.signature)
}

fn place(
    cache: &mut TokenCache,
    described: &TokensHeader,
    line: &Timeline,
    arrays: &mut impl Iterator<Item = Array>,
    what: &str,
) -> Result<(), Failure> {
    let fresh = cache.clone();
    match (&cache.later, described.delayed) {
        (_, false) if described.codes == cache.codes && cache.later.is_none() => {}
        (Some(later), false) if described.codes == later.codes => {
            cache.codes = later.codes.clone();
            cache.later = None;
        }
        (Some(_), true) if described.codes == cache.codes => {}
        // The rows say for themselves.
        _ if matches!(described.store, StoreHeader::Rows { .. }) => {}
        _ => return bad(what, fresh.signature(), &described.signature),
    }
    if !matches!(described.store, StoreHeader::Rows { .. }) {
        check_conversion(&fresh, described, line, what)?;
        cache.reusable_from = described.reusable_from;
    }
    let rows = line.rows();
    let store = match (&mut cache.store, &described.store) {
        (_, StoreHeader::Rows { rows: described }) => {
            if described.len() != rows || fresh.later.is_none() {
                return bad(what, format!("{rows} rows"), described.len().to_string());
            }
            let mut own = Vec::with_capacity(rows);
            for (b, row) in described.iter().enumerate() {
                if row.tokens != line.tokens(b)
                    || matches!(row.cache.store, StoreHeader::Rows { .. })
                {
                    return bad(what, format!("{} tokens", line.tokens(b)), row.tokens.to_string());
                }
                let mut alone = fresh.clone();
                let line = Timeline { time: row.tokens, pads: vec![0] };
                fill(&mut alone, &row.cache, &line, arrays, what)?;
                own.push(Row { cache: alone, tokens: row.tokens });
            }
            Store::Rows(RowStore { rows: own })
        }
        (Store::Append(store), StoreHeader::Append { arrays: n }) => {
            let planes = take(arrays, *n, what)?;
            if !planes.is_empty() || line.time > 0 {
                check_planes(&planes, &fresh.with(&cache.codes), rows, line.time as usize, what)?;
                store.replace_grown(&planes)?;
            }
            return Ok(());
        }
        (Store::Ring(store), StoreHeader::Window { arrays: n, times, cursor, floor }) => {
            let planes = take(arrays, *n, what)?;
            check_times(times, *cursor, *floor, line.time, what)?;
            check_sight(&fresh.kind.sight, times, *floor, line, what)?;
            if times.is_empty() && !planes.is_empty() {
                return bad(what, "no arrays of no columns", planes.len().to_string());
            }
            if !times.is_empty() {
                check_planes(&planes, &fresh.with(&cache.codes), rows, times.len(), what)?;
            }
            Store::Ring(RingStore::restored(store, planes, times.clone(), *cursor, *floor))
        }
        (Store::Paged(store), StoreHeader::Paged { arrays: n, rows: held }) => {
            if held.len() != rows {
                return bad(what, format!("{rows} rows"), held.len().to_string());
            }
            let with = fresh.with(&cache.codes);
            for (b, held) in held.iter().enumerate() {
                let tokens = line.tokens(b);
                if *held != (tokens > 0) {
                    return bad(what, format!("{tokens} tokens of row {b}"), "others");
                }
                if !held {
                    store.push_row(None)?;
                    continue;
                }
                let planes = take(arrays, *n, what)?;
                check_planes(&planes, &with, 1, tokens as usize, what)?;
                store.push_row(Some(&planes))?;
            }
            return Ok(());
        }
        _ => return bad(what, "a place for columns as the plan has it", "another"),
    };
    cache.store = store;
    Ok(())
}

struct Loading<'f> {
    file: &'f Path,
    input: File,
    length: u64,
}

impl<'f> Loading<'f> {
    fn open(file: &'f Path) -> Result<Loading<'f>, Failure> {
        let failed = |e| Failure::File(io(file)(e).what);
        let input = File::open(file).map_err(failed)?;
        let meta = input.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(Failure::File(PersistErrorKind::Kind));
        }
        Ok(Loading { file, input, length: meta.len() })
    }

    /// `n` bytes from here on; `n` was compared with the file's length before.
    fn bytes(&mut self, n: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; n as usize];
        self.input.read_exact(&mut bytes).map_err(|e| Failure::File(io(self.file)(e).what))?;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, Failure> {
        let bytes = self.bytes(8)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn truncated<T>(&self, expected: u64) -> Result<T, Failure> {
        Err(Failure::File(PersistErrorKind::Truncated { expected, found: self.length }))
    }

    /// The header, and where the arrays begin.
    fn header(
        mut self,
        identity: &Identity,
        composition: &str,
    ) -> Result<(Self, Header, u64), Failure> {
        let lead = MAGIC.len() as u64 + 16;
        if self.length < lead {
            let start = self.bytes(self.length.min(MAGIC.len() as u64))?;
            if !MAGIC.starts_with(&start) {
                return Err(Failure::File(PersistErrorKind::Kind));
            }
            return self.truncated(lead);
        }
        if self.bytes(MAGIC.len() as u64)? != MAGIC {
            return Err(Failure::File(PersistErrorKind::Kind));
        }
        let (size, sum) = (self.number()?, self.number()?);
        if size > MAX_HEADER {
            return bad("length", format!("at most {MAX_HEADER}"), size.to_string());
        }
        if self.length < lead + size {
            return self.truncated(lead + size);
        }
        let text = self.bytes(size)?;
        if short_hash(&text) != sum {
            return Err(Failure::File(PersistErrorKind::Damaged("the header".into())));
        }
        let header = parse(&text)?;
        check(&header, identity, composition)?;
        Ok((self, header, aligned(lead + size)))
    }

    /// All arrays; they lie one behind the other, so that no byte is read twice.
    fn arrays(mut self, header: &Header, start: u64) -> Result<Vec<Array>, Failure> {
        let mut arrays = Vec::with_capacity(header.arrays.len());
        let mut end = 0;
        for (i, described) in header.arrays.iter().enumerate() {
            if described.offset < end {
                let found = described.offset.to_string();
                return bad(&format!("array {i}"), format!("an offset from {end} on"), found);
            }
            arrays.push(self.array(i, described, start)?);
            // What was read lies within the file.
            end = described.offset + described.bytes;
        }
        Ok(arrays)
    }

    fn array(&mut self, i: usize, described: &ArrayHeader, start: u64) -> Result<Array, Failure> {
        let what = format!("array {i}");
        let Some(dtype) = dtype_of(&described.dtype) else {
            return bad(&what, "a known type", &described.dtype);
        };
        let item = crate::array::dtype_bytes(dtype) as u64;
        let bytes = described.shape.iter().try_fold(item, |n, &d| {
            n.checked_mul(u64::try_from(d).ok()?).filter(|&n| n <= i64::MAX as u64)
        });
        if bytes != Some(described.bytes) || described.shape.len() > 8 {
            let shape = format!("the bytes of {} {:?}", described.dtype, described.shape);
            return bad(&what, shape, described.bytes.to_string());
        }
        let end = start
            .checked_add(described.offset)
            .and_then(|at| at.checked_add(described.bytes))
            .unwrap_or(u64::MAX);
        if end > self.length {
            return self.truncated(end);
        }
        self.input
            .seek(SeekFrom::Start(start + described.offset))
            .map_err(|e| Failure::File(io(self.file)(e).what))?;
        let data = self.bytes(described.bytes)?;
        if hash(&data) != described.hash {
            return Err(Failure::File(PersistErrorKind::Damaged(what)));
        }
        Ok(from_bytes(&data, &described.shape, dtype)?)
    }
}

fn parse(text: &[u8]) -> Result<Header, Failure> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let wrong = |e: serde_json::Error| {
        Failure::File(PersistErrorKind::Header {
            what: "text".into(),
            expected: "a description of caches".into(),
            found: e.to_string(),
        })
    };
    let Versioned { version } = serde_json::from_slice(text).map_err(wrong)?;
    if version != VERSION {
        return Err(Failure::File(PersistErrorKind::Version { expected: VERSION, found: version }));
    }
    serde_json::from_slice(text).map_err(wrong)
}
