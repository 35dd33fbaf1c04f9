//! Usage budgets of a run and of all runs of a day.

use serde::{Deserialize, Serialize};

/// The usage budgets from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfiguredUsageBudgets {
    /// The limit of one run.
    pub per_run: UsageBudgetLimit,
    /// The limit of all runs of a day (UTC).
    pub per_day: UsageBudgetLimit,
}

/// Limits of usage; an absent limit is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageBudgetLimit {
    /// Money in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Number of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Returns the lower of two limits; an absent one is unlimited.
pub fn lower_limit(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let limits = [one, other].into_iter().flatten();
    limits.min_by(f64::total_cmp)
}

impl UsageBudgetLimit {
    /// Returns the lower limit for each unit; an absent one is unlimited.
    fn min(self, other: Self) -> Self {
        let tokens = [self.tokens, other.tokens].into_iter().flatten();
        Self {
            usd: lower_limit(self.usd, other.usd),
            tokens: tokens.min(),
        }
    }
}

impl ConfiguredUsageBudgets {
    /// Returns the budget of a running run after its configuration changed: lowered limits apply at once, raised limits
    /// from the next run on, since only a human's answer raises the budget of a run.
    #[must_use]
    pub fn tightened_to(self, now: Self) -> Self {
        Self {
            per_run: self.per_run.min(now.per_run),
            per_day: self.per_day.min(now.per_day),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W1: a configuration reload never raises the budget of an active run.
    #[test]
    fn a_reload_lowers_a_budget_and_never_raises_it() {
        let of = |usd: Option<f64>, tokens: Option<u64>| ConfiguredUsageBudgets {
            per_run: UsageBudgetLimit { usd, tokens },
            ..ConfiguredUsageBudgets::default()
        };
        let before = of(Some(20.0), None);
        assert_eq!(before.tightened_to(of(Some(100.0), None)), before);
        assert_eq!(before.tightened_to(of(None, None)), before);
        let lower = of(Some(5.0), Some(1000));
        assert_eq!(before.tightened_to(lower), lower);
    }
}
