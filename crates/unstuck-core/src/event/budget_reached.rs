//! A reached budget, as recorded in the event that escalates it.

use serde::{Deserialize, Serialize};

use crate::money::format_usd;

/// The scope of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// One run (`[budget] per_run`).
    Run,
    /// All runs of a day in UTC (`[budget] per_day`).
    Day,
    /// One session (`[gateway.budgets] per_session`).
    Session,
    /// All sessions of a day in UTC (`[gateway.budgets] per_day`).
    GatewayDay,
    /// The policy (`maxCost`).
    Policy,
}

impl BudgetScope {
    /// Returns the subject of "has used".
    const fn subject(self) -> &'static str {
        match self {
            Self::Run => "this run",
            Self::Day => "all runs today (UTC)",
            Self::Session => "this session",
            Self::GatewayDay => "all sessions today (UTC)",
            Self::Policy => "this session (maxCost)",
        }
    }

    /// True if all sessions of a run share the budget.
    pub const fn is_shared_by_run(self) -> bool {
        matches!(self, Self::Run | Self::Day)
    }
}

/// The unit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Money, in USD.
    Usd,
    /// Tokens.
    Tokens,
}

impl BudgetUnit {
    fn format_amount(self, amount: f64) -> String {
        match self {
            Self::Usd => format_usd(amount),
            Self::Tokens => format!("{amount:.0}"),
        }
    }
}

/// A budget that is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    /// The scope of the budget.
    pub scope: BudgetScope,
    /// The unit of the budget.
    pub unit: BudgetUnit,
    /// The amount used.
    pub used: f64,
    /// The limit.
    pub limit: f64,
    /// The new limit after approval.
    pub raise_to: f64,
}

impl BudgetReached {
    /// Creates a reached budget; approval allows the configured amount once more from the current usage.
    pub fn new(
        scope: BudgetScope,
        unit: BudgetUnit,
        used: f64,
        limit: f64,
        configured: f64,
    ) -> Self {
        Self {
            scope,
            unit,
            used,
            limit,
            raise_to: used.max(limit) + configured,
        }
    }

    /// Describes the reached budget in one sentence without a full stop.
    pub fn description(&self) -> String {
        let tokens = match self.unit {
            BudgetUnit::Usd => "",
            BudgetUnit::Tokens => " tokens",
        };
        format!(
            "budget exceeded: {} of {}{tokens} for {}",
            self.unit.format_amount(self.used),
            self.unit.format_amount(self.limit),
            self.scope.subject(),
        )
    }

    /// Describes the effect of approval.
    pub fn approval_effect(&self) -> String {
        let tokens = match self.unit {
            BudgetUnit::Usd => "",
            BudgetUnit::Tokens => " tokens",
        };
        format!(
            "raise the limit to {}{tokens} for {} and continue",
            self.unit.format_amount(self.raise_to),
            self.scope.subject()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_shows_the_new_limit() {
        let reached = BudgetReached::new(BudgetScope::Run, BudgetUnit::Usd, 41.6, 20.0, 20.0);
        assert_eq!(
            reached.description(),
            "budget exceeded: $41.60 of $20.00 for this run"
        );
        assert_eq!(
            reached.approval_effect(),
            "raise the limit to $61.60 for this run and continue"
        );
        let tokens = BudgetReached::new(BudgetScope::Run, BudgetUnit::Tokens, 90.0, 100.0, 100.0);
        assert_eq!(tokens.raise_to, 200.0, "less was used than is allowed");
        assert!(tokens.description().contains("90 of 100 tokens"));
    }

    #[test]
    fn a_small_budget_is_not_shown_as_zero() {
        let reached = BudgetReached::new(BudgetScope::Run, BudgetUnit::Usd, 0.08, 0.001, 0.001);
        assert!(
            reached.description().contains("$0.08 of $0.0010"),
            "{}",
            reached.description()
        );
    }
}
