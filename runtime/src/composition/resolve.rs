//! From what is asked for to the record of a load.

use super::{Composition, DraftDepth, KvRequest, LayerScheme, Paging};
use crate::backend::Backend;
use crate::{Error, Result};

/// Rows of one forward when the caller states none.
pub const DEFAULT_MAX_ROWS: u32 = 8;

/// Tokens of a part of a prompt when neither the caller nor `SPECC_PREFILL_CHUNK` says otherwise.
pub const PREFILL_CHUNK_TOKENS: u32 = 2048;

/// The environment's word on the tokens of a part of a prompt.
pub const CHUNK_VARIABLE: &str = "SPECC_PREFILL_CHUNK";

const MIXED_TOKEN_BUDGET: i64 = 256;
const BLOCK_SIZE: i64 = 256;

/// Keys and values in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagingRequest {
    /// Positions of a page; 256 when absent.
    pub block_size: Option<i64>,
    /// Whether reads go through the page table; no when absent.
    pub direct: Option<bool>,
}

/// A drafter that was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftRequest {
    /// Its tokens each round.
    pub tokens: i64,
    /// Whether the number adapts.
    pub adaptive: bool,
}

/// What the caller decided; what is absent takes the default named on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompositionRequest {
    /// How keys and values are stored; in the activations' type.
    pub kv: KvRequest,
    /// Pages; none.
    pub paged_kv: Option<PagingRequest>,
    /// Cuts layers that keep all positions down to a window; not.
    pub max_kv: Option<i64>,
    /// A drafter; none.
    pub draft: Option<DraftRequest>,
    /// Rows of one forward; [`DEFAULT_MAX_ROWS`].
    pub max_rows: Option<i64>,
    /// Tokens of a part of a prompt; `SPECC_PREFILL_CHUNK`, else [`PREFILL_CHUNK_TOKENS`].
    pub prefill_chunk_tokens: Option<i64>,
    /// One argmax over greedy rows; yes.
    pub vector_greedy_sampling: Option<bool>,
    /// Forwards that decode and read a prompt; no.
    pub mixed_prefill: Option<bool>,
    /// Prompt tokens that such a forward carries; 256.
    pub mixed_token_budget: Option<i64>,
    /// The last token of a prompt goes alone; yes.
    pub prefill_tail_split: Option<bool>,
    /// Forced continuations in one span; no.
    pub grammar_jump: Option<bool>,
    /// Drafts by argmax; no.
    pub greedy_draft: Option<bool>,
}

/// The record for a model whose `kv_config.json` names `kv_layers` (empty without one).
///
/// # Errors
/// The first of: the KV scheme, rows, drafts, the mixed budget, the page size, the window.
pub fn resolve_composition(
    request: &CompositionRequest,
    kv_layers: &[LayerScheme],
) -> Result<Composition> {
    let kv = request.kv.resolve(kv_layers)?;
    compose(request, kv)
}

/// The record of this machine without a model.
///
/// # Errors
/// As [`resolve_composition`].
pub fn machine_composition(request: &CompositionRequest) -> Result<Composition> {
    compose(request, super::KvScheme::Bf16)
}

fn compose(request: &CompositionRequest, kv: super::KvScheme) -> Result<Composition> {
    let max_rows = positive(request.max_rows.unwrap_or(i64::from(DEFAULT_MAX_ROWS)), "maxRows")?;
    let draft_depth = match request.draft {
        None => DraftDepth::Fixed(0),
        Some(draft) => {
            let max = positive(draft.tokens, "draft tokens")?;
            if draft.adaptive {
                DraftDepth::Adaptive { adaptive: true, max }
            } else {
                DraftDepth::Fixed(max)
            }
        }
    };
    let mixed_token_budget =
        positive(request.mixed_token_budget.unwrap_or(MIXED_TOKEN_BUDGET), "mixedTokenBudget")?;
    let paged_kv = match request.paged_kv {
        None => None,
        Some(paging) => Some(Paging {
            block_size: positive(paging.block_size.unwrap_or(BLOCK_SIZE), "paged KV block size")?,
            direct: paging.direct.unwrap_or(false),
        }),
    };
    let variable = std::env::var(CHUNK_VARIABLE).ok();
    let chunk = chunk_tokens(request.prefill_chunk_tokens, variable.as_deref());
    let max_kv = request.max_kv.map(|window| positive(window, "max KV window")).transpose()?;
    Ok(Composition {
        device: Backend::current()?.name().to_owned(),
        kv,
        paged_kv,
        max_kv,
        draft_depth,
        prefill_chunk_tokens: chunk.unwrap_or(PREFILL_CHUNK_TOKENS),
        prefill_chunk_asked: chunk.is_some(),
        max_rows,
        vector_greedy_sampling: request.vector_greedy_sampling.unwrap_or(true),
        mixed_prefill: request.mixed_prefill.unwrap_or(false),
        mixed_token_budget,
        prefill_tail_split: request.prefill_tail_split.unwrap_or(true),
        grammar_jump: request.grammar_jump.unwrap_or(false),
        greedy_draft: request.greedy_draft.unwrap_or(false),
    })
}

fn positive(value: i64, what: &str) -> Result<u32> {
    u32::try_from(value)
        .ok()
        .filter(|v| (1..=1 << 30).contains(v))
        .ok_or_else(|| Error::Composition(format!("composition {what} must be a positive integer")))
}

/// The caller's number, else the environment's where it is one: rounded down, at least 1.
pub(super) fn chunk_tokens(asked: Option<i64>, environment: Option<&str>) -> Option<u32> {
    let environment = || environment?.trim().parse::<f64>().ok();
    let number = asked.map(|n| n as f64).or_else(environment).filter(|n| !n.is_nan())?;
    Some(number.floor().clamp(1.0, f64::from(1 << 30)) as u32)
}
