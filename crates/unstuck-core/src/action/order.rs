//! Which strategy comes first. The one place that orders, so that it can be replaced by the decision stage.

use std::cmp::Ordering;

/// What the order depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rank {
    /// The chance that it helps.
    pub(super) confidence: f64,
    /// How many turns of the agent it takes.
    pub(super) iterations: u32,
    /// Its place in the kind's chain.
    pub(super) given: usize,
    /// What its score is multiplied by, for the task at hand.
    pub(super) fitness: f64,
}

impl Rank {
    /// Confidence × simplicity: the more turns it takes, the less it counts.
    fn score(&self) -> f64 {
        self.fitness * self.confidence / f64::from(self.iterations.max(1)).sqrt()
    }

    /// The better one first; the given priority decides between equals.
    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        other
            .score()
            .total_cmp(&self.score())
            .then(self.given.cmp(&other.given))
    }
}
