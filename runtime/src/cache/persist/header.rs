//! The header of a file of caches, as its JSON has it.

use serde::{Deserialize, Serialize};

use super::Identity;
use crate::cache::Codes;

/// Everything but the arrays.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub version: u32,
    pub identity: Identity,
    /// The composition's key.
    pub composition: String,
    /// Seconds since 1970.
    pub created_at: u64,
    /// The tokens of each row.
    pub tokens: Vec<Vec<u32>>,
    pub time: i32,
    pub pads: Vec<i32>,
    pub layers: Vec<LayerHeader>,
    /// All arrays in the order in which layers name them.
    pub arrays: Vec<ArrayHeader>,
}

/// One array of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ArrayHeader {
    pub offset: u64,
    pub bytes: u64,
    pub shape: Vec<i32>,
    pub dtype: String,
    /// The first 16 bytes of its SHA-256, in hexadecimal.
    pub hash: String,
}

/// One layer's cache; arrays are taken from [`Header::arrays`] in order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum LayerHeader {
    Tokens(TokensHeader),
    States { arrays: usize },
    Nothing,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TokensHeader {
    pub signature: String,
    pub codes: Codes,
    /// Whether the codes that take over later have not yet.
    pub delayed: bool,
    /// How many tokens there were when they did, some way in.
    pub reusable_from: Option<i32>,
    pub store: StoreHeader,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "store", rename_all = "kebab-case")]
pub(super) enum StoreHeader {
    /// Columns `0..time`.
    Append { arrays: usize },
    /// Columns by slot.
    Window { arrays: usize, times: Vec<i32>, cursor: usize, floor: i32 },
    /// The columns of each row.
    Paged { arrays: usize, rows: Vec<bool> },
    /// Each row by itself.
    Rows { rows: Vec<RowHeader> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RowHeader {
    pub tokens: i32,
    pub cache: TokensHeader,
}
