//! How a prompt is cut into forwards.

use super::bind::Workspace;

/// What is known when the next forward of a prompt is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefillState {
    /// Tokens of the prompt.
    pub length: usize,
    /// Tokens that the caches hold already.
    pub position: usize,
    /// The most tokens of a forward, at least 1.
    pub chunk: usize,
    /// The last token is read alone, with the arithmetic of a decode.
    pub tail_split: bool,
    /// A number of tokens after which the caches are wanted as they are then.
    pub snapshot_at: Option<usize>,
}

/// Whether logits follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefillKind {
    /// Only the caches matter.
    Drain,
    /// The last tokens, whose logits choose the first new token.
    Final,
}

/// One forward of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefillStep {
    /// Its first token.
    pub start: usize,
    /// One past its last token.
    pub end: usize,
    /// Whether logits follow.
    pub kind: PrefillKind,
    /// The caches are wanted as they are after it.
    pub snapshot: bool,
    /// A batch may run a step of its own before the next one.
    pub batch_yield: bool,
}

impl PrefillState {
    /// The next forward. There is one as long as `position < length`.
    pub fn next(&self) -> PrefillStep {
        let Self { length, position, tail_split, .. } = *self;
        let chunk = self.chunk.max(1);
        let remaining = length.saturating_sub(position);
        let batch_yield = !tail_split || remaining.saturating_sub(1) > chunk;
        let step =
            |end, kind, snapshot| PrefillStep { start: position, end, kind, snapshot, batch_yield };
        // At least one token stays behind a snapshot, so that there are logits to choose by.
        if let Some(at) = self.snapshot_at.filter(|at| *at > position && *at < length) {
            let end = at.min(position + chunk);
            return step(end, PrefillKind::Drain, end == at);
        }
        let threshold = if tail_split { 1 } else { chunk };
        if remaining > threshold {
            let take = if tail_split { chunk.min(remaining - 1) } else { chunk };
            step(position + take, PrefillKind::Drain, false)
        } else {
            step(length, PrefillKind::Final, false)
        }
    }
}

/// Bytes of scores that a forward may hold at once where a graph declares a bound.
const MOST_SCORES: u64 = 1 << 30;

/// Bytes of the scores that the largest of these layers holds at once: `chunk` queries at the end of
/// `context` tokens, 2 bytes a score. Passes of at most 8 queries hold none.
pub fn score_bytes(layers: &[Workspace], chunk: usize, context: usize) -> u64 {
    let queries = chunk.min(context) as u64;
    if queries <= 8 {
        return 0;
    }
    let one = |layer: &Workspace| {
        let keys = match layer.window {
            Some(window) => (context as u64).min(window.max(0) as u64 + queries),
            None => context as u64,
        };
        2 * (layer.heads.max(0) as u64) * queries * keys
    };
    layers.iter().map(one).max().unwrap_or(0)
}

/// The chunk in which a prompt of `context` tokens is read: halved, never below 8, until the scores of
/// these layers fit a GiB.
pub fn bounded_chunk(layers: &[Workspace], mut chunk: usize, context: usize) -> usize {
    while chunk > 8 && score_bytes(layers, chunk, context) > MOST_SCORES {
        chunk = (chunk / 2).max(8);
    }
    chunk
}

/// A snapshot that is worth its memory: none below 256 tokens, or within what is cached.
pub fn useful_snapshot(at: Option<usize>, cached: usize) -> Option<usize> {
    at.filter(|at| *at >= 256 && *at > cached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(
        length: usize,
        from: usize,
        chunk: usize,
        tail_split: bool,
        snapshot_at: Option<usize>,
    ) -> String {
        let mut position = from;
        let mut out = Vec::new();
        while position < length {
            let step = PrefillState { length, position, chunk, tail_split, snapshot_at }.next();
            let kind = match step.kind {
                PrefillKind::Drain => "",
                PrefillKind::Final => "!",
            };
            let mark = if step.snapshot { "*" } else { "" };
            let yields = if step.batch_yield { "y" } else { "" };
            out.push(format!("{}-{}{kind}{mark}{yields}", step.start, step.end));
            position = step.end;
        }
        out.join(" ")
    }

    #[test]
    fn prompts_in_chunks() {
        let rows = [
            all(1, 0, 4, true, None),
            all(2, 0, 4, true, None),
            all(9, 0, 4, true, None),
            all(10, 0, 4, true, None),
            all(10, 0, 4, false, None),
            all(8, 0, 4, false, None),
            all(10, 7, 4, true, None),
            all(10, 9, 4, true, None),
            all(12, 0, 4, true, Some(6)),
            all(12, 0, 4, false, Some(8)),
            all(12, 6, 4, true, Some(6)),
            all(12, 0, 4, true, Some(12)),
            all(5, 0, 0, true, None),
        ];
        insta::assert_snapshot!(rows.join("\n"), @r"
        0-1!
        0-1 1-2!
        0-4y 4-8 8-9!
        0-4y 4-8y 8-9 9-10!
        0-4y 4-8y 8-10!y
        0-4y 4-8!y
        7-9 9-10!
        9-10!
        0-4y 4-6*y 6-10y 10-11 11-12!
        0-4y 4-8*y 8-12!y
        6-10y 10-11 11-12!
        0-4y 4-8y 8-11 11-12!
        0-1y 1-2y 2-3y 3-4 4-5!
        ");
    }

    #[test]
    fn snapshots_that_do_not_pay_are_left_out() {
        assert_eq!(useful_snapshot(Some(255), 0), None);
        assert_eq!(useful_snapshot(Some(256), 0), Some(256));
        assert_eq!(useful_snapshot(Some(300), 300), None);
        assert_eq!(useful_snapshot(None, 0), None);
    }

    #[test]
    fn chunks_shrink_until_their_scores_fit() {
        let full = [Workspace { heads: 16, window: None }];
        assert_eq!(score_bytes(&full, 2048, 2048), 2 * 16 * 2048 * 2048);
        assert_eq!(score_bytes(&full, 8, 1 << 20), 0);
        assert_eq!(bounded_chunk(&full, 2048, 2048), 2048);
        // 16 heads of 2048 queries over 32,768 keys are 2 GiB.
        assert_eq!(bounded_chunk(&full, 2048, 32_768), 1024);
        assert_eq!(bounded_chunk(&full, 2048, 1 << 24), 8);
        assert_eq!(bounded_chunk(&full, 5, 1 << 24), 5);
        let windows = [Workspace { heads: 16, window: Some(1024) }];
        assert_eq!(bounded_chunk(&windows, 2048, 1 << 24), 2048);
        assert_eq!(bounded_chunk(&[], 2048, 1 << 24), 2048);
    }

    proptest! {
        #[test]
        fn every_token_is_read_once_and_the_last_step_is_final(
            length in 1usize..200, from in 0usize..200, chunk in 1usize..40,
            tail_split: bool, snapshot_at in proptest::option::of(0usize..220),
        ) {
            let mut position = from % length;
            let start = position;
            let mut snapshots = 0;
            loop {
                let step = PrefillState { length, position, chunk, tail_split, snapshot_at }.next();
                prop_assert_eq!(step.start, position);
                prop_assert!(step.end > position && step.end <= length);
                prop_assert!(step.end - step.start <= chunk);
                snapshots += usize::from(step.snapshot);
                position = step.end;
                if step.kind == PrefillKind::Final {
                    prop_assert!(!tail_split || step.end - step.start == 1);
                    break;
                }
            }
            prop_assert_eq!(position, length);
            let wanted = snapshot_at.is_some_and(|at| at > start && at < length);
            prop_assert_eq!(snapshots, usize::from(wanted));
        }
    }
}
