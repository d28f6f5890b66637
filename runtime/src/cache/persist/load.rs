use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use mlx_rs::Array;

use super::arrays::{dtype_of, hash, short_hash};
use super::header::{ArrayHeader, Header, LayerHeader, StoreHeader, TokensHeader};
use super::{Identity, MAGIC, MAX_HEADER, PersistError, Trouble, VERSION, aligned, io};
use crate::array::from_bytes;
use crate::cache::rowwise::{Row, RowStore};
use crate::cache::tokens::{Store, TokenCache};
use crate::cache::window::{HOLE, WindowStore};
use crate::cache::{CachePlan, CacheSet, LayerCache, StateCache, Timeline};
use crate::{Dtype, Error, Result};

/// Rows and positions that a file may have.
const MAX_ROWS: usize = 1 << 12;
const MAX_TIME: i32 = 1 << 30;

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
            let (header, arrays) = loading.read(identity, composition)?;
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
        if set.layers.len() != header.layers.len() {
            return bad("layers", set.layers.len().to_string(), header.layers.len().to_string());
        }
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
        if arrays.next().is_some() {
            return bad("arrays", "as many as layers name", "more");
        }
        self.check_held(&set)?;
        set.line = line;
        Ok(set)
    }
}

impl CachePlan {
    /// Checks a set against what the graph stores, where the plan knows it.
    fn check_held(&self, set: &CacheSet) -> Result<(), Failure> {
        let Some(stored) = &self.stored else { return Ok(()) };
        for (i, (layer, expected)) in set.layers.iter().zip(stored).enumerate() {
            let held: Vec<(Vec<i32>, Dtype)> = match layer {
                LayerCache::Tokens(cache) => {
                    let one = |x: &Array| (x.shape().to_vec(), x.dtype());
                    let fits = |cache: &TokenCache| {
                        let planes: Vec<_> = cache.arrays().into_iter().map(one).collect();
                        planes.is_empty() || alike(cache, &planes, expected)
                    };
                    let ok = match &cache.store {
                        Store::Rows(rows) => rows.rows.iter().all(|row| fits(&row.cache)),
                        _ => fits(cache),
                    };
                    if !ok {
                        return bad(
                            &format!("layer {i}"),
                            format!("{expected:?} a token"),
                            "others",
                        );
                    }
                    continue;
                }
                LayerCache::States(cache) => {
                    cache.states().iter().map(|x| (x.shape().to_vec(), x.dtype())).collect()
                }
                LayerCache::Nothing => continue,
            };
            let same = held.is_empty()
                || (held.len() == expected.len()
                    && held.iter().zip(expected).all(|((a, ad), (b, bd))| {
                        ad == bd && a.iter().skip(1).eq(b.iter().skip(1))
                    }));
            if !same {
                return bad(
                    &format!("layer {i}"),
                    format!("{expected:?} a row"),
                    format!("{held:?}"),
                );
            }
        }
        Ok(())
    }
}

/// Whether planes are what codes make of these arrays, axes of rows and tokens aside.
fn alike(cache: &TokenCache, planes: &[(Vec<i32>, Dtype)], stored: &[(Vec<i32>, Dtype)]) -> bool {
    let expected = cache.codes.0.iter().zip(stored).flat_map(|(code, (shape, dtype))| {
        let width = shape.last().copied().unwrap_or(0);
        code.layout(width, *dtype).into_iter().map(move |(width, dtype)| {
            let mut shape = shape.clone();
            if let Some(last) = shape.last_mut() {
                *last = width;
            }
            (shape, dtype)
        })
    });
    let axis = cache.kind.axis;
    let rest = |shape: &[i32]| -> Vec<i32> {
        let axes = shape.iter().enumerate().skip(1).filter(|(a, _)| *a != axis);
        axes.map(|(_, n)| *n).collect()
    };
    let expected: Vec<_> = expected.collect();
    planes.len() == expected.len()
        && planes.iter().zip(&expected).all(|((a, ad), (b, bd))| ad == bd && rest(a) == rest(b))
}

/// A fault of the file, or another one.
pub(in crate::cache) enum Failure {
    File(Trouble),
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
    Err(Failure::File(Trouble::Header {
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

fn check_rows(x: &Array, rows: usize, what: &str) -> Result<(), Failure> {
    match x.shape().first() {
        Some(&b) if b as usize == rows => Ok(()),
        _ => bad(what, format!("arrays of {rows} rows"), format!("{:?}", x.shape())),
    }
}

/// Checks that planes have these rows and columns.
fn check_planes(
    planes: &[Array],
    cache: &TokenCache,
    rows: usize,
    columns: usize,
    what: &str,
) -> Result<(), Failure> {
    for x in planes {
        check_rows(x, rows, what)?;
        match x.shape().get(cache.kind.axis) {
            Some(&n) if n as usize == columns && x.ndim() == cache.kind.axis + 2 => {}
            _ => {
                return bad(what, format!("{columns} columns"), format!("{:?}", x.shape()));
            }
        }
    }
    match cache.codes.split(planes) {
        Ok(_) => Ok(()),
        Err(_) => bad(what, "the arrays of its codes", format!("{} arrays", planes.len())),
    }
}

/// Fills a fresh cache with what a file holds.
fn fill(
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
        (Store::Window(store), StoreHeader::Window { arrays: n, times, cursor, floor }) => {
            let planes = take(arrays, *n, what)?;
            check_times(times, *cursor, *floor, line.time, what)?;
            if !times.is_empty() {
                check_planes(&planes, &fresh.with(&cache.codes), rows, times.len(), what)?;
            }
            Store::Window(WindowStore::restored(store, planes, times.clone(), *cursor, *floor))
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

/// Checks whether and when what is stored was rewritten against the plan's word.
fn check_conversion(
    fresh: &TokenCache,
    described: &TokensHeader,
    line: &Timeline,
    what: &str,
) -> Result<(), Failure> {
    let start = fresh.later.as_ref().map(|later| later.start);
    let longest = (0..line.rows()).map(|b| line.tokens(b)).max().unwrap_or(0);
    let fits = match (start, described.delayed, described.reusable_from) {
        (Some(start), true, None) => longest < start.max(1),
        (Some(1..), true, Some(_)) | (Some(1..), false, None) => false,
        (Some(start @ 1..), false, Some(from)) => (start..=MAX_TIME).contains(&from),
        (_, _, from) => from.is_none(),
    };
    if fits {
        return Ok(());
    }
    let found = format!("{:?} of {longest} tokens", described.reusable_from);
    bad(what, "a record of when it was rewritten", found)
}

fn check_times(
    times: &[i32],
    cursor: usize,
    floor: i32,
    time: i32,
    what: &str,
) -> Result<(), Failure> {
    let mut seen: Vec<i32> = times.iter().copied().filter(|&t| t != HOLE).collect();
    seen.sort_unstable();
    let twice = seen.windows(2).any(|pair| pair.first() == pair.last());
    let range = seen.iter().all(|&t| (-MAX_TIME..time).contains(&t));
    let holes = times.last() == Some(&HOLE);
    if twice
        || !range
        || holes
        || cursor >= times.len().max(1)
        || !(-MAX_TIME..=time).contains(&floor)
    {
        return bad(what, format!("distinct columns before {time}"), "others");
    }
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
            return Err(Failure::File(Trouble::Kind));
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
        Err(Failure::File(Trouble::Truncated { expected, found: self.length }))
    }

    fn read(
        mut self,
        identity: &Identity,
        composition: &str,
    ) -> Result<(Header, Vec<Array>), Failure> {
        let lead = MAGIC.len() as u64 + 16;
        if self.length < lead {
            let start = self.bytes(self.length.min(MAGIC.len() as u64))?;
            if !MAGIC.starts_with(&start) {
                return Err(Failure::File(Trouble::Kind));
            }
            return self.truncated(lead);
        }
        if self.bytes(MAGIC.len() as u64)? != MAGIC {
            return Err(Failure::File(Trouble::Kind));
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
            return Err(Failure::File(Trouble::Damaged("the header".into())));
        }
        let header = parse(&text)?;
        check(&header, identity, composition)?;
        let start = aligned(lead + size);
        let mut arrays = Vec::with_capacity(header.arrays.len());
        for (i, described) in header.arrays.iter().enumerate() {
            arrays.push(self.array(i, described, start)?);
        }
        Ok((header, arrays))
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
            return Err(Failure::File(Trouble::Damaged(what)));
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
        Failure::File(Trouble::Header {
            what: "text".into(),
            expected: "a description of caches".into(),
            found: e.to_string(),
        })
    };
    let Versioned { version } = serde_json::from_slice(text).map_err(wrong)?;
    if version != VERSION {
        return Err(Failure::File(Trouble::Version { expected: VERSION, found: version }));
    }
    serde_json::from_slice(text).map_err(wrong)
}

fn check(header: &Header, identity: &Identity, composition: &str) -> Result<(), Failure> {
    let own = &header.identity;
    let pairs = [
        ("model", &identity.model, &own.model),
        ("configuration", &identity.config, &own.config),
        ("tokenizer", &identity.tokenizer, &own.tokenizer),
        ("set of adapters", &identity.namespace, &own.namespace),
        ("set of codecs", &identity.codecs, &own.codecs),
        ("composition", &composition.to_owned(), &header.composition),
    ];
    for (what, expected, found) in pairs {
        if expected != found {
            let (expected, found) = (expected.clone(), found.clone());
            return Err(Failure::File(Trouble::Foreign { what, expected, found }));
        }
    }
    if identity.weights != own.weights {
        let (expected, found) = (identity.weights.clone(), own.weights.clone());
        return Err(Failure::File(Trouble::Weights { expected, found }));
    }
    let time = header.time;
    let fits = (0..=MAX_TIME).contains(&time)
        && (1..=MAX_ROWS).contains(&header.pads.len())
        && header.pads.iter().all(|pad| (0..=time).contains(pad));
    if !fits {
        return bad(
            "rows",
            format!("rows that begin within 0..={time}"),
            format!("{:?}", header.pads),
        );
    }
    let held = header.pads.iter().map(|pad| (time - pad) as usize);
    if !held.eq(header.tokens.iter().map(Vec::len)) {
        return bad("tokens", "as many as the caches hold", "others");
    }
    Ok(())
}
