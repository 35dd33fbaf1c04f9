//! What the run and all runs of a day may use, looked at before each attempt.

use std::time::Duration;

use unstuck_core::budget::{Allowance, Budget};
use unstuck_core::event::{BudgetScope, BudgetUnit};
use unstuck_core::money::{BudgetLimit, RaisedBudgets};
use unstuck_core::{SessionId, Timestamp};
use unstuck_store::{SpendingQuery, SpentBy, Store};

use super::error::RunError;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What may be used of each unit.
fn limits_of(allowance: Allowance) -> impl Iterator<Item = (BudgetUnit, f64)> {
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

/// What has been used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Used {
    pub(super) usd: f64,
    pub(super) tokens: u64,
}

impl Used {
    fn of(self, unit: BudgetUnit) -> f64 {
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

/// Watches over what may be used.
pub(super) struct Purse<'a> {
    budget: Budget,
    store: &'a Store,
}

impl<'a> Purse<'a> {
    pub(super) fn new(budget: Budget, store: &'a Store) -> Self {
        Self { budget, store }
    }

    /// The budgets that hold for an attempt of a session that is about to begin.
    pub(super) async fn limits(
        &self,
        own: Used,
        raised: &RaisedBudgets,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Vec<BudgetLimit>, RunError> {
        let limit = |scope, used: Used, (unit, configured)| BudgetLimit {
            scope,
            unit,
            used: used.of(unit),
            limit: raised.limit(scope, unit, session, configured, now),
            configured,
        };
        let per_run = limits_of(self.budget.per_run);
        let mut limits: Vec<_> = per_run
            .map(|one| limit(BudgetScope::Run, own, one))
            .collect();
        if self.budget.per_day != Allowance::default() {
            let used = self.used_since(now.before(DAY)).await?;
            let per_day = limits_of(self.budget.per_day);
            limits.extend(per_day.map(|one| limit(BudgetScope::Day, used, one)));
        }
        Ok(limits)
    }

    /// What all runs have used since then: what agents told, and what the gateway saw of the others.
    async fn used_since(&self, since: Timestamp) -> Result<Used, RunError> {
        let query = SpendingQuery {
            by: SpentBy::Day,
            since: Some(since),
            ..SpendingQuery::default()
        };
        let days = self.store.spending(&query).await?;
        Ok(days.iter().fold(Used::default(), |sum, day| Used {
            usd: sum.usd + day.cost_usd,
            tokens: sum.tokens + day.new_tokens(),
        }))
    }
}
