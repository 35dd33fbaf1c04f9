//! Learned success rates of strategies by failure kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::FailureKind;

/// The weight of the chain's own confidence, as a number of observations.
const PRIOR_WEIGHT: f64 = 4.0;

/// The successes and failures of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StrategyOutcomeTally {
    /// The number of successes.
    pub worked: u32,
    /// The number of failures.
    pub failed: u32,
}

/// The success counts of each strategy by failure kind; empty ones change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SuccessRates {
    tallies: BTreeMap<FailureKind, BTreeMap<String, StrategyOutcomeTally>>,
}

impl SuccessRates {
    /// Creates empty success rates.
    pub const fn empty() -> Self {
        Self {
            tallies: BTreeMap::new(),
        }
    }

    /// Records the result of a strategy.
    pub fn record(&mut self, kind: FailureKind, strategy: &str, worked: bool) {
        let of_kind = self.tallies.entry(kind).or_default();
        let tally = of_kind.entry(strategy.to_owned()).or_default();
        if worked {
            tally.worked = tally.worked.saturating_add(1);
        } else {
            tally.failed = tally.failed.saturating_add(1);
        }
    }

    /// Returns the success counts of a strategy for a kind.
    pub fn counts_for(&self, kind: FailureKind, strategy: &str) -> StrategyOutcomeTally {
        let of_kind = self.tallies.get(&kind);
        of_kind
            .and_then(|tallies| tallies.get(strategy))
            .copied()
            .unwrap_or_default()
    }

    /// Returns the success rates of one kind alone.
    #[must_use]
    pub fn for_kind(&self, kind: FailureKind) -> Self {
        let tallies = self.tallies.get(&kind).cloned();
        Self {
            tallies: tallies.map(|one| (kind, one)).into_iter().collect(),
        }
    }

    /// Returns the adjusted confidence of a strategy: the mean of a Beta distribution that starts at the chain's
    /// confidence and is updated by observations.
    pub fn adjusted_confidence(&self, kind: FailureKind, strategy: &str, confidence: f64) -> f64 {
        let StrategyOutcomeTally { worked, failed } = self.counts_for(kind, strategy);
        let (worked, failed) = (f64::from(worked), f64::from(failed));
        (confidence * PRIOR_WEIGHT + worked) / (PRIOR_WEIGHT + worked + failed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// S2-28: without history the chain's confidence is unchanged.
    #[test]
    fn empty_success_rates_change_nothing() {
        assert_eq!(
            SuccessRates::empty().adjusted_confidence(FailureKind::Timeout, "simplify", 0.8),
            0.8
        );
    }

    /// S2-24, S2-28: successes raise it, failures lower it.
    #[test]
    fn successes_raise_and_failures_lower_the_confidence() {
        let mut odds = SuccessRates::empty();
        for _ in 0..4 {
            odds.record(FailureKind::Timeout, "good", true);
            odds.record(FailureKind::Timeout, "bad", false);
        }
        assert_eq!(
            odds.adjusted_confidence(FailureKind::Timeout, "good", 0.5),
            0.75
        );
        assert_eq!(
            odds.adjusted_confidence(FailureKind::Timeout, "bad", 0.5),
            0.25
        );
        assert_eq!(
            odds.adjusted_confidence(FailureKind::RateLimit, "good", 0.5),
            0.5
        );
        let json = serde_json::to_value(&odds).unwrap();
        assert_eq!(json["timeout"]["good"]["worked"], 4);
    }

    proptest! {
        #[test]
        fn the_confidence_stays_a_probability(
            confidence in 0.0..=1.0_f64, results in proptest::collection::vec(any::<bool>(), 0..50),
        ) {
            let mut odds = SuccessRates::empty();
            for worked in results {
                odds.record(FailureKind::Stuck, "s", worked);
            }
            let adjusted = odds.adjusted_confidence(FailureKind::Stuck, "s", confidence);
            prop_assert!((0.0..=1.0).contains(&adjusted));
        }
    }
}
