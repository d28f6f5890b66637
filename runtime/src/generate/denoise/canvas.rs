//! A canvas while it resolves: which positions stay, and when it is done. Only numbers of the host.

use std::collections::VecDeque;

use super::method::{Keep, Stopping};

/// What a step's logits say of each position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    /// The likeliest ids.
    pub best: Vec<u32>,
    /// Their probabilities for [`Keep::Confidence`], the entropies for [`Keep::Entropy`].
    pub scores: Vec<f32>,
    /// The entropies' mean, where something goes by it.
    pub mean_entropy: Option<f32>,
}

/// The ids of a block while they are refined.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    /// What the next pass reads.
    pub ids: Vec<u32>,
    /// What positions were when they were revealed.
    draft: Vec<u32>,
    /// Positions that stay: for good by confidence, in the last step by entropy.
    pub revealed: Vec<bool>,
    keep: Keep,
    stopping: Option<Stopping>,
    /// The likeliest ids of the last steps, oldest first: copies, as many as the stop looks at.
    history: VecDeque<Vec<u32>>,
}

impl Canvas {
    pub(super) fn new(ids: Vec<u32>, keep: Keep, stopping: Option<Stopping>) -> Self {
        Self {
            draft: ids.clone(),
            revealed: vec![false; ids.len()],
            ids,
            keep,
            stopping,
            history: VecDeque::new(),
        }
    }

    /// Takes what a step says; positions that do not stay become `noise`. Whether the canvas is done.
    pub(super) fn take(&mut self, step: &Judgement, noise: &[u32]) -> bool {
        match self.keep {
            Keep::Confidence(threshold) => {
                for at in sure(&step.scores, &self.revealed, threshold) {
                    self.draft[at] = step.best[at];
                    self.revealed[at] = true;
                }
                self.ids = merge(&self.revealed, &self.draft, noise);
                if self.revealed.iter().all(|revealed| *revealed) {
                    return true;
                }
            }
            Keep::Entropy(bound) => {
                // Nothing is remembered of the step before.
                self.revealed = low(&step.scores, bound);
                self.ids = merge(&self.revealed, &step.best, noise);
            }
        }
        self.stable(step)
    }

    /// Whether the stop is reached.
    fn stable(&mut self, step: &Judgement) -> bool {
        let Some(Stopping { canvases, entropy }) = self.stopping else { return false };
        let canvases = canvases as usize;
        let alike = self.history.len() == canvases && self.history.iter().all(|c| *c == step.best);
        let certain = step.mean_entropy.is_some_and(|mean| f64::from(mean) < entropy);
        if self.history.len() == canvases {
            self.history.pop_front();
        }
        self.history.push_back(step.best.clone());
        alike && certain
    }
}

/// Positions to reveal: those not revealed that are sure enough, else the surest of them.
fn sure(confidence: &[f32], revealed: &[bool], threshold: f32) -> Vec<usize> {
    let hidden = || (0..).zip(confidence).zip(revealed).filter(|(_, done)| !**done).map(|(x, _)| x);
    let sure: Vec<usize> =
        hidden().filter(|(_, p)| **p >= threshold).map(|(at, _): (usize, _)| at).collect();
    if !sure.is_empty() {
        return sure;
    }
    let mut best: Option<(usize, f32)> = None;
    for (at, p) in hidden() {
        // The first of equals; a probability that is no number is beaten by any.
        if best.is_none_or(|(_, most)| *p > most || (most.is_nan() && !p.is_nan())) {
            best = Some((at, *p));
        }
    }
    best.map(|(at, _)| at).into_iter().collect()
}

/// From the lowest entropy up, positions as long as those before them add up to at most `bound`.
fn low(entropy: &[f32], bound: f32) -> Vec<bool> {
    let mut order: Vec<usize> = (0..entropy.len()).collect();
    order.sort_by(|a, b| entropy[*a].total_cmp(&entropy[*b]));
    let (mut taken, mut sum) = (vec![false; entropy.len()], 0f32);
    for at in order {
        // In rising order the greatest so far is the entropy itself.
        sum += entropy[at];
        taken[at] = sum - entropy[at] <= bound;
    }
    taken
}

fn merge(stays: &[bool], ids: &[u32], noise: &[u32]) -> Vec<u32> {
    let pairs = ids.iter().zip(noise);
    stays.iter().zip(pairs).map(|(stays, (id, noise))| if *stays { *id } else { *noise }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(best: &[u32], scores: &[f32]) -> Judgement {
        let mean = scores.iter().sum::<f32>() / scores.len() as f32;
        Judgement { best: best.to_vec(), scores: scores.to_vec(), mean_entropy: Some(mean) }
    }

    #[test]
    fn sure_positions_stay_as_they_were_when_revealed() {
        let mut canvas = Canvas::new(vec![9, 9, 9, 9], Keep::Confidence(0.9), None);
        assert!(!canvas.take(&step(&[1, 2, 3, 4], &[0.9, 0.1, 0.95, 0.2]), &[5, 6, 7, 8]));
        assert_eq!(canvas.ids, [1, 6, 3, 8]);
        // A revealed position keeps its id though another is likelier now.
        assert!(!canvas.take(&step(&[7, 2, 7, 4], &[0.99, 0.3, 0.99, 0.2]), &[5, 6, 7, 8]));
        assert_eq!(canvas.ids, [1, 2, 3, 8], "the surest is forced where none is sure");
        assert!(canvas.take(&step(&[7, 7, 7, 4], &[0.0, 0.0, 0.0, 0.0]), &[5, 6, 7, 8]));
        assert_eq!(canvas.ids, [1, 2, 3, 4]);
    }

    #[test]
    fn of_equals_the_first_is_forced_and_of_no_numbers_one() {
        assert_eq!(sure(&[0.2, 0.5, 0.5], &[false; 3], 0.9), [1]);
        assert_eq!(sure(&[f32::NAN, 0.1], &[false; 2], 0.9), [1]);
        assert_eq!(sure(&[f32::NAN; 2], &[true, false], 0.9), [1]);
        assert_eq!(sure(&[0.1], &[true], 0.0), [0usize; 0]);
    }

    #[test]
    fn positions_of_low_entropy_share_the_bound() {
        assert_eq!(low(&[0.3, 0.05, 0.06, 0.2], 0.1), [false, true, true, false]);
        // The first is always taken: nothing stands before it.
        assert_eq!(low(&[3.0, 2.0], 0.0), [false, true]);
        let mut canvas = Canvas::new(vec![9, 9], Keep::Entropy(0.0), None);
        assert!(!canvas.take(&step(&[1, 2], &[0.1, 0.2]), &[5, 6]));
        assert_eq!(canvas.ids, [1, 6]);
        assert!(!canvas.take(&step(&[3, 4], &[0.2, 0.1]), &[7, 8]));
        assert_eq!(canvas.ids, [7, 4], "what stayed before does not count");
    }

    #[test]
    fn a_stop_needs_as_many_canvases_alike_and_little_entropy() {
        let stopping = Some(Stopping { canvases: 2, entropy: 0.5 });
        let mut canvas = Canvas::new(vec![0, 0], Keep::Entropy(0.0), stopping);
        let mut take =
            |best: [u32; 2], entropy: f32| canvas.take(&step(&best, &[entropy; 2]), &[0, 0]);
        assert!(!take([1, 2], 0.1));
        assert!(!take([1, 2], 0.1));
        assert!(!take([1, 2], 0.6), "alike but uncertain");
        assert!(take([1, 2], 0.4));
        assert!(!take([1, 3], 0.1));
        assert!(!take([1, 3], 0.1));
        assert!(take([1, 3], 0.1));
    }
}
