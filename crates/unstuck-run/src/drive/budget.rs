//! What the run and all runs of a day may use, looked at before each attempt.

use std::time::Duration;

use unstuck_core::event::{BudgetScope, BudgetUnit};
use unstuck_core::money::{BudgetLimit, RaisedBudgets};
use unstuck_core::{SessionId, Timestamp};
use unstuck_store::{SpendingQuery, SpentBy, Store};

use super::error::RunError;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// By one run.
    pub per_run: Allowance,
    /// By all runs of a day.
    pub per_day: Allowance,
}

/// How much may be used; what is not said is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Allowance {
    /// Money, in USD.
    pub usd: Option<f64>,
    /// Tokens.
    pub tokens: Option<u64>,
}

impl Allowance {
    /// The lower of each amount: a limit that is not said in one of them is that of the other.
    fn lower(self, other: Self) -> Self {
        let usd = [self.usd, other.usd].into_iter().flatten();
        let tokens = [self.tokens, other.tokens].into_iter().flatten();
        Self {
            usd: usd.min_by(f64::total_cmp),
            tokens: tokens.min(),
        }
    }

    /// What may be used of each unit.
    fn limits(self) -> impl Iterator<Item = (BudgetUnit, f64)> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number of tokens, compared roughly"
        )]
        let tokens = self
            .tokens
            .map(|tokens| (BudgetUnit::Tokens, tokens as f64));
        let usd = self.usd.map(|usd| (BudgetUnit::Usd, usd));
        usd.into_iter().chain(tokens)
    }
}

impl Budget {
    /// What counts while a run goes on after its configuration was changed: what was lowered counts at once, and what
    /// was raised from the next run on, since only a person's answer raises the budget of a run.
    pub(super) fn changed_to(self, now: Self) -> Self {
        Self {
            per_run: self.per_run.lower(now.per_run),
            per_day: self.per_day.lower(now.per_day),
        }
    }
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
        let per_run = self.budget.per_run.limits();
        let mut limits: Vec<_> = per_run
            .map(|one| limit(BudgetScope::Run, own, one))
            .collect();
        if self.budget.per_day != Allowance::default() {
            let used = self.used_since(now.before(DAY)).await?;
            let per_day = self.budget.per_day.limits();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// W1: to take over a changed configuration never raises the budget of a run that goes on.
    #[test]
    fn a_reload_lowers_a_budget_and_never_raises_it() {
        let of = |usd: Option<f64>, tokens: Option<u64>| Budget {
            per_run: Allowance { usd, tokens },
            ..Budget::default()
        };
        let before = of(Some(20.0), None);
        assert_eq!(before.changed_to(of(Some(100.0), None)), before);
        assert_eq!(before.changed_to(of(None, None)), before);
        let lower = of(Some(5.0), Some(1000));
        assert_eq!(before.changed_to(lower), lower);
    }
}
