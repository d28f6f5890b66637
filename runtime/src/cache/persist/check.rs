//! What a file's header has to be before it is believed.

use mlx_rs::Array;

use super::header::{Header, LayerHeader, StoreHeader, TokensHeader};
use super::load::{Failure, bad};
use super::{Identity, PersistErrorKind};
use crate::Dtype;
use crate::cache::ring::HOLE;
use crate::cache::sight::Sight;
use crate::cache::tokens::{Store, TokenCache};
use crate::cache::{CachePlan, CacheSet, LayerCache, Timeline};

/// Rows and positions that a file may have.
const MAX_ROWS: usize = 1 << 12;
const MAX_TIME: i32 = 1 << 30;

pub(super) fn check(
    header: &Header,
    identity: &Identity,
    composition: &str,
) -> Result<(), Failure> {
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
            return Err(Failure::File(PersistErrorKind::Foreign { what, expected, found }));
        }
    }
    if identity.weights != own.weights {
        let (expected, found) = (identity.weights.clone(), own.weights.clone());
        return Err(Failure::File(PersistErrorKind::Weights { expected, found }));
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

impl CachePlan {
    /// Checks, before arrays are read, that the layers are the plan's and name all arrays.
    pub(super) fn check_counts(&self, header: &Header) -> Result<(), Failure> {
        let set = self.make();
        if set.layers.len() != header.layers.len() {
            return bad("layers", set.layers.len().to_string(), header.layers.len().to_string());
        }
        let mut named: usize = 0;
        for (i, (layer, described)) in set.layers.iter().zip(&header.layers).enumerate() {
            let count = match (layer, described) {
                (LayerCache::Tokens(_), LayerHeader::Tokens(described)) => count(&described.store),
                (LayerCache::States(_), LayerHeader::States { arrays }) => {
                    if *arrays == 0 && header.time > 0 {
                        let expected = format!("states after {} tokens", header.time);
                        return bad(&format!("layer {i}"), expected, format!("{arrays} arrays"));
                    }
                    *arrays
                }
                (LayerCache::Nothing, LayerHeader::Nothing) => 0,
                _ => return bad(&format!("layer {i}"), "the plan's kind of cache", "another"),
            };
            named = named.saturating_add(count);
        }
        if named != header.arrays.len() {
            let found = header.arrays.len().to_string();
            return bad("arrays", format!("{named}, as many as layers name"), found);
        }
        Ok(())
    }
}

/// Arrays that a layer names.
fn count(store: &StoreHeader) -> usize {
    match store {
        StoreHeader::Append { arrays } | StoreHeader::Window { arrays, .. } => *arrays,
        StoreHeader::Paged { arrays, rows } => {
            arrays.saturating_mul(rows.iter().filter(|held| **held).count())
        }
        StoreHeader::Rows { rows } => {
            rows.iter().map(|row| count(&row.cache.store)).fold(0, usize::saturating_add)
        }
    }
}

impl CachePlan {
    /// Checks a set against what the graph stores, where the plan knows it.
    pub(super) fn check_held(&self, set: &CacheSet) -> Result<(), Failure> {
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
            // Before the first token there are none.
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

pub(super) fn check_rows(x: &Array, rows: usize, what: &str) -> Result<(), Failure> {
    match x.shape().first() {
        Some(&b) if b as usize == rows => Ok(()),
        _ => bad(what, format!("arrays of {rows} rows"), format!("{:?}", x.shape())),
    }
}

/// Checks that planes have these rows and columns.
pub(super) fn check_planes(
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
    let required = cache.kind.layout.required();
    match cache.codes.split(planes) {
        Ok(parts) if parts.len() >= required => Ok(()),
        _ => bad(what, "the arrays of its codes", format!("{} arrays", planes.len())),
    }
}

/// Checks whether and when what is stored was rewritten against the plan's word.
pub(super) fn check_conversion(
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

pub(super) fn check_times(
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

/// Checks that a window holds all that queries from its floor on see of the columns so far: the floor's
/// query of those before it, and each later column's next query of that column. What is out of sight
/// stays so, and nothing else is seen.
pub(super) fn check_sight(
    sight: &Sight,
    times: &[i32],
    floor: i32,
    line: &Timeline,
    what: &str,
) -> Result<(), Failure> {
    let mut held: Vec<i32> = times.to_vec();
    held.sort_unstable();
    for &pad in &line.pads {
        for t in pad..line.time {
            let query = floor.max(t + 1);
            if sight.sees(query - pad, t - pad) && held.binary_search(&t).is_err() {
                return bad(what, format!("column {t}, which is still seen"), "none");
            }
        }
    }
    Ok(())
}
