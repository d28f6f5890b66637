//! From a set of caches to a file.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use mlx_rs::Array;

use super::arrays::{dtype_name, hash, short_hash};
use super::header::{ArrayHeader, Header, LayerHeader, RowHeader, StoreHeader, TokensHeader};
use super::{ALIGN, Identity, MAGIC, PersistError, PersistErrorKind, VERSION, aligned, io};
use crate::array::with_bytes;
use crate::cache::planes;
use crate::cache::tokens::{Store, TokenCache};
use crate::cache::{CacheSet, LayerCache};
use crate::{Error, Result};

impl CacheSet {
    /// Writes the caches and the tokens that they hold, one list a row, to `file`.
    ///
    /// # Errors
    /// When the tokens are not those of the rows, the set is unusable, or the file cannot be
    /// written; what was there before stays then.
    pub fn save(
        &self,
        file: &Path,
        identity: &Identity,
        composition: &str,
        tokens: &[Vec<u32>],
    ) -> Result<()> {
        self.check()?;
        let rows = self.rows();
        let fits = tokens.len() == rows
            && tokens.iter().enumerate().all(|(b, t)| t.len() as i64 == i64::from(self.tokens(b)));
        if !fits {
            let held: Vec<i32> = (0..rows).map(|b| self.tokens(b)).collect();
            let given: Vec<usize> = tokens.iter().map(Vec::len).collect();
            return Err(Error::input(
                "tokens of saved caches",
                format!("{held:?} tokens by row"),
                format!("{given:?}"),
            ));
        }
        let mut arrays: Vec<Array> = Vec::new();
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            layers.push(match layer {
                LayerCache::Tokens(cache) => {
                    LayerHeader::Tokens(describe(cache, self.line.time, rows, &mut arrays)?)
                }
                LayerCache::States(cache) => {
                    arrays.extend(cache.states().iter().cloned());
                    LayerHeader::States { arrays: cache.states().len() }
                }
                LayerCache::Nothing => LayerHeader::Nothing,
            });
        }
        let mut header = Header {
            version: VERSION,
            identity: identity.clone(),
            composition: composition.to_owned(),
            created_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            tokens: tokens.to_vec(),
            time: self.line.time,
            pads: self.line.pads.clone(),
            layers,
            arrays: Vec::with_capacity(arrays.len()),
        };
        let mut offset = 0;
        for array in &arrays {
            let dtype = dtype_name(array.dtype())
                .ok_or_else(|| Error::cache(format!("{:?} is not saved", array.dtype())))?;
            let (bytes, hash) = with_bytes(array, |b| (b.len() as u64, hash(b)))?;
            header.arrays.push(ArrayHeader {
                offset,
                bytes,
                shape: array.shape().to_vec(),
                dtype: dtype.to_owned(),
                hash,
            });
            offset = aligned(offset + bytes);
        }
        let text = serde_json::to_vec(&header).map_err(|e| Error::cache(e.to_string()))?;
        write(file, &text, &arrays)
    }
}

fn write(file: &Path, header: &[u8], arrays: &[Array]) -> Result<()> {
    let failed = io(file);
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut out =
        tempfile::Builder::new().prefix(".caches-").tempfile_in(folder).map_err(&failed)?;
    let start = aligned(MAGIC.len() as u64 + 16 + header.len() as u64);
    let mut put = |bytes: &[u8]| out.as_file_mut().write_all(bytes).map_err(&failed);
    put(MAGIC)?;
    put(&(header.len() as u64).to_le_bytes())?;
    put(&short_hash(header).to_le_bytes())?;
    put(header)?;
    let padding = [0_u8; ALIGN as usize];
    let fill = |n: u64| padding.get(..n as usize).unwrap_or_default();
    put(fill(start - (MAGIC.len() as u64 + 16 + header.len() as u64)))?;
    for array in arrays {
        let written = with_bytes(array, |bytes| {
            put(bytes)?;
            let n = bytes.len() as u64;
            put(fill(aligned(n) - n))
        })?;
        written?;
    }
    out.as_file().sync_all().map_err(&failed)?;
    out.persist(file).map_err(|e| PersistError {
        file: file.to_owned(),
        what: PersistErrorKind::Io(e.error.to_string()),
    })?;
    Ok(())
}

fn describe(
    cache: &TokenCache,
    time: i32,
    rows: usize,
    arrays: &mut Vec<Array>,
) -> Result<TokensHeader> {
    let axis = cache.kind.axis;
    let store = match &cache.store {
        Store::Append(store) => {
            let planes = planes::view(store.buffers(), axis, 0, time)?;
            let n = planes.len();
            arrays.extend(planes);
            StoreHeader::Append { arrays: n }
        }
        Store::Ring(store) => {
            let planes = if store.times().is_empty() { Vec::new() } else { store.fetch()? };
            let n = planes.len();
            arrays.extend(planes);
            StoreHeader::Window {
                arrays: n,
                times: store.times().to_vec(),
                cursor: store.cursor(),
                floor: store.floor(),
            }
        }
        Store::Paged(store) => {
            let mut held = Vec::with_capacity(rows);
            let mut n = 0;
            for b in 0..rows {
                let row = store.row(b)?;
                held.push(row.is_some());
                if let Some(planes) = row {
                    n = planes.len();
                    arrays.extend(planes);
                }
            }
            StoreHeader::Paged { arrays: n, rows: held }
        }
        Store::Rows(store) => {
            let mut described = Vec::with_capacity(store.rows.len());
            for row in &store.rows {
                let cache = describe(&row.cache, row.tokens, 1, arrays)?;
                described.push(RowHeader { tokens: row.tokens, cache });
            }
            StoreHeader::Rows { rows: described }
        }
    };
    Ok(TokensHeader {
        signature: cache.signature(),
        codes: cache.codes.clone(),
        delayed: cache.later.is_some(),
        reusable_from: cache.reusable_from,
        store,
    })
}
