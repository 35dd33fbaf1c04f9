//! A budget that is used up, as the event that asks about it carries it.

use serde::{Deserialize, Serialize};

use crate::money::format_usd;

/// Which budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// Of one run (`[budget] per_run`).
    Run,
    /// Of all runs of the last 24 hours (`[budget] per_day`).
    Day,
    /// Of one session (`[gateway.budgets] per_session`).
    Session,
    /// Of all sessions of a day in UTC (`[gateway.budgets] per_day`).
    GatewayDay,
    /// Of the policy (`maxCost`).
    Policy,
}

impl BudgetScope {
    /// Whose money it is, as the subject of "has used".
    const fn subject(self) -> &'static str {
        match self {
            Self::Run => "this run",
            Self::Day => "the last 24 hours",
            Self::Session => "this session",
            Self::GatewayDay => "all sessions of today (UTC)",
            Self::Policy => "this session (maxCost)",
        }
    }

    /// Whether all sessions of a run share it.
    pub const fn is_shared_by_run(self) -> bool {
        matches!(self, Self::Run | Self::Day)
    }
}

/// What a budget counts.
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

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    /// Which one.
    pub scope: BudgetScope,
    /// What it counts.
    pub unit: BudgetUnit,
    /// What has been used.
    pub used: f64,
    /// What was allowed.
    pub limit: f64,
    /// What is allowed in all once a person approves.
    pub raise_to: f64,
}

impl BudgetReached {
    /// A budget of which so much is used; approval allows the configured amount once more, from here on.
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

    /// What is used up, in one sentence without a full stop.
    pub fn description(&self) -> String {
        let tokens = match self.unit {
            BudgetUnit::Usd => "",
            BudgetUnit::Tokens => " tokens",
        };
        format!(
            "the budget is used up: {} of {}{tokens} by {}",
            self.unit.format_amount(self.used),
            self.unit.format_amount(self.limit),
            self.scope.subject(),
        )
    }

    /// What approval does.
    pub fn approval_effect(&self) -> String {
        let tokens = match self.unit {
            BudgetUnit::Usd => "",
            BudgetUnit::Tokens => " tokens",
        };
        format!(
            "allows up to {}{tokens} for {}, and goes on",
            self.unit.format_amount(self.raise_to),
            self.scope.subject()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_says_the_amount_that_it_allows() {
        let reached = BudgetReached::new(BudgetScope::Run, BudgetUnit::Usd, 41.6, 20.0, 20.0);
        assert_eq!(
            reached.description(),
            "the budget is used up: $41.60 of $20.00 by this run"
        );
        assert_eq!(
            reached.approval_effect(),
            "allows up to $61.60 for this run, and goes on"
        );
        let tokens = BudgetReached::new(BudgetScope::Run, BudgetUnit::Tokens, 90.0, 100.0, 100.0);
        assert_eq!(tokens.raise_to, 200.0, "less was used than is allowed");
        assert!(tokens.description().contains("90 of 100 tokens"));
    }

    #[test]
    fn a_small_budget_is_not_told_as_nothing() {
        let reached = BudgetReached::new(BudgetScope::Run, BudgetUnit::Usd, 0.08, 0.001, 0.001);
        assert!(
            reached.description().contains("$0.08 of $0.0010"),
            "{}",
            reached.description()
        );
    }
}
