//! Linear recurrences in their general form, and what the position before held.

use mlx_rs::Array;

use super::recurrent::{after_held, run};
use super::scan::{self, idle};
use crate::cache::Slot;
use crate::pass::Pass;
use crate::{Result, ops};

/// Each position's predecessor: [B, L, C] -> [B, L, C], zeros before the first. State: the last
/// input.
///
/// # Errors
/// When the layer keeps no states, or MLX refuses.
pub fn previous(cx: &mut Pass<'_>, slot: Slot, x: &Array) -> Result<Array> {
    let (input, l) = after_held(cx, slot, x, 1, "input of `previous`")?;
    ops::slice(&input, 1, 0, l)
}

/// S = S diag(decay) + v kᵀ; y = S q. Queries, keys and decays [B, L, H, K], values [B, L, H, V]
/// -> [B, L, H, V]. State: float32 [B, H, V, K].
///
/// # Errors
/// When the layer keeps no states, or the shapes do not agree.
pub fn gated_linear(
    cx: &mut Pass<'_>,
    slot: Slot,
    q: &Array,
    k: &Array,
    v: &Array,
    decay: &Array,
) -> Result<Array> {
    let shape = [q.dim(0), v.dim(2), v.dim(3), q.dim(3)];
    let inputs = [q, k, v, decay].map(Clone::clone);
    run(cx, slot, &shape, inputs, |[q, k, v, decay], real, state| {
        let (v, decay) = (idle(v, real, 0.0)?, idle(decay, real, 1.0)?);
        scan::linear_steps([q, k, &v, &decay], None, state)
    })
}

/// S = S diag(decay) + (S a) bᵀ + v kᵀ; y = S q. Shapes as in [`gated_linear`], `a` and `b` as the
/// keys.
///
/// # Errors
/// When the layer keeps no states, or the shapes do not agree.
#[allow(clippy::too_many_arguments)]
pub fn low_rank_recurrence(
    cx: &mut Pass<'_>,
    slot: Slot,
    q: &Array,
    k: &Array,
    v: &Array,
    decay: &Array,
    a: &Array,
    b: &Array,
) -> Result<Array> {
    let shape = [q.dim(0), v.dim(2), v.dim(3), q.dim(3)];
    let inputs = [q, k, v, decay, a, b].map(Clone::clone);
    run(cx, slot, &shape, inputs, |[q, k, v, decay, a, b], real, state| {
        let (v, decay) = (idle(v, real, 0.0)?, idle(decay, real, 1.0)?);
        scan::linear_steps([q, k, &v, &decay], Some((a, &idle(b, real, 0.0)?)), state)
    })
}

/// h = decay h + x, feature by feature: [B, L, C] -> [B, L, C]. State: float32 [B, C].
///
/// # Errors
/// When the layer keeps no states, or the shapes do not agree.
pub fn decayed_sum(cx: &mut Pass<'_>, slot: Slot, x: &Array, decay: &Array) -> Result<Array> {
    let shape = [x.dim(0), x.dim(2)];
    let inputs = [x, decay].map(Clone::clone);
    run(cx, slot, &shape, inputs, |[x, decay], real, state| {
        scan::sum_steps(&idle(x, real, 0.0)?, &idle(decay, real, 1.0)?, state)
    })
}
