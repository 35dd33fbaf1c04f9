//! What a run and all runs of a day may use.

use serde::{Deserialize, Serialize};

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageBudget {
    /// By one run.
    pub per_run: UsageLimit,
    /// By all runs of a day.
    pub per_day: UsageLimit,
}

/// How much may be used; what is not said is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageLimit {
    /// Money, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// The lower of two limits: one that is not said is no limit.
pub fn lower_limit(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let limits = [one, other].into_iter().flatten();
    limits.min_by(f64::total_cmp)
}

impl UsageLimit {
    /// The lower of each amount: a limit that is not said in one of them is that of the other.
    fn min(self, other: Self) -> Self {
        let tokens = [self.tokens, other.tokens].into_iter().flatten();
        Self {
            usd: lower_limit(self.usd, other.usd),
            tokens: tokens.min(),
        }
    }
}

impl UsageBudget {
    /// What is in effect while a run continues after its configuration was changed: what was lowered is in effect at once, and
    /// what was raised from the next run on, since only a person's answer raises the budget of a run.
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

    /// W1: to take over a changed configuration never raises the budget of a run that goes on.
    #[test]
    fn a_change_lowers_a_budget_and_never_raises_it() {
        let of = |usd: Option<f64>, tokens: Option<u64>| UsageBudget {
            per_run: UsageLimit { usd, tokens },
            ..UsageBudget::default()
        };
        let before = of(Some(20.0), None);
        assert_eq!(before.tightened_to(of(Some(100.0), None)), before);
        assert_eq!(before.tightened_to(of(None, None)), before);
        let lower = of(Some(5.0), Some(1000));
        assert_eq!(before.tightened_to(lower), lower);
    }
}
