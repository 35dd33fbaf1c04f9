//! The budgets per run and per day, checked before each attempt.

use unstuck_core::event::{BudgetScope, BudgetUnit};
use unstuck_core::money::{ActiveUsageBudget, BudgetRaises};
use unstuck_core::usage_budget::{ConfiguredUsageBudgets, UsageBudgetLimit};
use unstuck_core::{SessionId, Timestamp};
use unstuck_store::{CostGroupBy, SpendingQuery, Store};

use super::error::RunError;

/// Returns the limit of each unit.
fn allowance_limits(allowance: UsageBudgetLimit) -> impl Iterator<Item = (BudgetUnit, f64)> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a number of tokens, compared roughly"
    )]
    let tokens = allowance
        .tokens
        .map(|tokens| (BudgetUnit::Tokens, tokens as f64));
    let usd = allowance.usd.map(|usd| (BudgetUnit::Usd, usd));
    usd.into_iter().chain(tokens)
}

/// The usage so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BudgetUsage {
    pub(super) usd: f64,
    pub(super) tokens: u64,
}

impl BudgetUsage {
    fn in_unit(self, unit: BudgetUnit) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number of tokens, compared roughly"
        )]
        match unit {
            BudgetUnit::Usd => self.usd,
            BudgetUnit::Tokens => self.tokens as f64,
        }
    }
}

/// Checks the usage against the budgets.
pub(super) struct BudgetTracker<'a> {
    budget: ConfiguredUsageBudgets,
    store: &'a Store,
}

impl<'a> BudgetTracker<'a> {
    pub(super) fn new(budget: ConfiguredUsageBudgets, store: &'a Store) -> Self {
        Self { budget, store }
    }

    /// Returns the budgets of a session's attempt that is about to begin.
    pub(super) async fn limits_for_attempt(
        &self,
        own: BudgetUsage,
        raised: &BudgetRaises,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Vec<ActiveUsageBudget>, RunError> {
        let limit = |scope, used: BudgetUsage, (unit, configured)| ActiveUsageBudget {
            scope,
            unit,
            used: used.in_unit(unit),
            limit: raised.effective_limit(scope, unit, session, configured, now),
            configured,
        };
        let per_run = allowance_limits(self.budget.per_run);
        let mut limits: Vec<_> = per_run
            .map(|one| limit(BudgetScope::Run, own, one))
            .collect();
        if self.budget.per_day != UsageBudgetLimit::default() {
            let used = self.usage_since(now.start_of_day()).await?;
            let per_day = allowance_limits(self.budget.per_day);
            limits.extend(per_day.map(|one| limit(BudgetScope::Day, used, one)));
        }
        Ok(limits)
    }

    /// Returns the usage of all runs since a timestamp, as reported by agents or measured by the gateway.
    async fn usage_since(&self, since: Timestamp) -> Result<BudgetUsage, RunError> {
        let query = SpendingQuery {
            group_by: CostGroupBy::Day,
            since: Some(since),
            ..SpendingQuery::default()
        };
        let days = self.store.spending(&query).await?;
        Ok(days
            .iter()
            .fold(BudgetUsage::default(), |sum, day| BudgetUsage {
                usd: sum.usd + day.cost_usd,
                tokens: sum.tokens + day.new_tokens(),
            }))
    }
}
