//! What the run and all runs of a day may use, looked at before each attempt.

use std::time::Duration;

use unstuck_core::Timestamp;
use unstuck_store::{RunFilter, Store};

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

/// What has been used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) usd: f64,
    pub(super) tokens: u64,
    /// How often a person has allowed as much again.
    pub(super) raises: u32,
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

    /// Why no further attempt may be made without asking, if none may.
    pub(super) async fn reached(
        &self,
        own: Used,
        now: Timestamp,
    ) -> Result<Option<String>, RunError> {
        let times = f64::from(own.raises.saturating_add(1));
        if let Some(why) = over(own, self.budget.per_run, times, "this run") {
            return Ok(Some(why));
        }
        if self.budget.per_day == Allowance::default() {
            return Ok(None);
        }
        let filter = RunFilter {
            since: Some(now.before(DAY)),
            ..RunFilter::default()
        };
        let all = self.store.runs(&filter).await?;
        let of_day = all.iter().fold(Used::default(), |sum, run| Used {
            usd: sum.usd + run.cost_usd,
            tokens: sum.tokens + run.tokens,
            ..sum
        });
        Ok(over(
            of_day,
            self.budget.per_day,
            times,
            "the last 24 hours",
        ))
    }
}

fn over(used: Used, allowed: Allowance, times: f64, who: &str) -> Option<String> {
    let usd = allowed.usd.map(|usd| usd * times);
    if let Some(most) = usd.filter(|most| used.usd >= *most) {
        return Some(format!(
            "the budget is used up: ${:.2} of ${most:.2} by {who}; resuming allows as much again",
            used.usd
        ));
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a number of tokens, compared roughly"
    )]
    let tokens = allowed.tokens.map(|tokens| tokens as f64 * times);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a number of tokens, compared roughly"
    )]
    let most = tokens.filter(|most| used.tokens as f64 >= *most)?;
    Some(format!(
        "the budget is used up: {} of {most:.0} tokens by {who}; resuming allows as much again",
        used.tokens
    ))
}
