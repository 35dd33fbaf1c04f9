//! The remaining budget of a run during its attempts, shared by all its sessions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use unstuck_core::Timestamp;
use unstuck_core::event::{BudgetReached, BudgetScope, BudgetUnit};
use unstuck_core::money::ActiveUsageBudget;

use crate::usage::CallUsage;

/// The remaining budget of a run during its attempts.
#[derive(Debug, Default)]
pub struct RemainingRunBudget(Mutex<RunBudgetState>);

#[derive(Debug, Default)]
struct RunBudgetState {
    limits: Vec<ActiveUsageBudget>,
    /// The number of the day (UTC) whose usage the limits of a day include.
    day: i64,
}

impl RemainingRunBudget {
    /// Sets the limits at the start of an attempt, and the usage of attempts in progress that they do not include. The
    /// usage of a day already includes it.
    pub fn set_limits(&self, limits: &[ActiveUsageBudget], under_way: CallUsage, now: Timestamp) {
        let mut own = self.lock();
        own.day = now.day_number();
        own.limits.clear();
        own.limits.extend(limits.iter().map(|limit| {
            let more = match limit.scope {
                BudgetScope::Day | BudgetScope::GatewayDay => 0.0,
                BudgetScope::Run | BudgetScope::Session | BudgetScope::Policy => {
                    used_amount(under_way, limit.unit)
                }
            };
            ActiveUsageBudget {
                used: limit.used + more,
                ..*limit
            }
        }));
    }

    /// Adds the usage of a call.
    pub(crate) fn add_usage(&self, used: CallUsage) {
        for limit in &mut self.lock().limits {
            limit.used += used_amount(used, limit.unit);
        }
    }

    /// Raises the usage of all runs on a day to totals known from elsewhere; what is known here may be newer.
    pub(crate) fn raise_day_usage(&self, usd: f64, tokens: u64, now: Timestamp) {
        let mut own = self.lock();
        let is_new_day = own.day != now.day_number();
        own.day = now.day_number();
        let of_day = |limit: &&mut ActiveUsageBudget| limit.scope == BudgetScope::Day;
        for limit in own.limits.iter_mut().filter(of_day) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number of tokens, compared roughly"
            )]
            let total = match limit.unit {
                BudgetUnit::Usd => usd,
                BudgetUnit::Tokens => tokens as f64,
            };
            limit.used = if is_new_day {
                total
            } else {
                limit.used.max(total)
            };
        }
    }

    /// Returns true if the usage of all runs of a day is limited.
    pub(crate) fn has_day_limit(&self) -> bool {
        let limits = &self.lock().limits;
        limits.iter().any(|limit| limit.scope == BudgetScope::Day)
    }

    /// Returns the first limit that is reached, if any.
    pub(crate) fn reached_limit(&self) -> Option<BudgetReached> {
        let limits = &self.lock().limits;
        limits.iter().find_map(|limit| limit.check_reached(0.0))
    }

    fn lock(&self) -> MutexGuard<'_, RunBudgetState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the used amount in the unit of a budget; cached tokens are not counted, as agents do not count them either.
fn used_amount(used: CallUsage, unit: BudgetUnit) -> f64 {
    let tokens = used.tokens.unwrap_or_default();
    #[expect(
        clippy::cast_precision_loss,
        reason = "a number of tokens, compared roughly"
    )]
    match unit {
        BudgetUnit::Usd => used.cost_usd.unwrap_or(0.0),
        BudgetUnit::Tokens => (tokens.input + tokens.output) as f64,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limit(scope: BudgetScope, unit: BudgetUnit) -> ActiveUsageBudget {
        ActiveUsageBudget {
            scope,
            unit,
            used: 1.0,
            limit: 2.0,
            configured: 2.0,
        }
    }

    fn usd(usd: f64) -> CallUsage {
        CallUsage {
            cost_usd: Some(usd),
            tokens: None,
        }
    }

    #[test]
    fn calls_of_all_sessions_reach_the_limit_together() {
        let purse = RemainingRunBudget::default();
        let now = Timestamp::from_seconds(1_794_744_000);
        let run = limit(BudgetScope::Run, BudgetUnit::Usd);
        purse.set_limits(&[run], usd(0.5), now);
        purse.add_usage(usd(0.4));
        assert_eq!(purse.reached_limit(), None);
        purse.add_usage(usd(0.2));
        let reached = purse.reached_limit().expect("2.1 of 2.0");
        assert!((reached.raise_to - 4.1).abs() < 1e-9, "{reached:?}");
        purse.set_limits(&[], CallUsage::default(), now);
        assert_eq!(purse.reached_limit(), None, "no limit");
    }

    #[test]
    fn usage_of_other_processes_reaches_the_limit_of_a_day() {
        let noon = Timestamp::from_seconds(1_794_744_000);
        for (unit, cost, tokens) in [(BudgetUnit::Usd, 2.0, 0), (BudgetUnit::Tokens, 0.0, 2)] {
            let purse = RemainingRunBudget::default();
            let limits = [limit(BudgetScope::Day, unit), limit(BudgetScope::Run, unit)];
            assert!(!purse.has_day_limit());
            // Attempts in progress are included in the usage of the day, and not in that of the run.
            purse.set_limits(&limits, usd(0.5), noon);
            assert!(purse.has_day_limit());
            purse.raise_day_usage(0.0, 0, noon);
            purse.add_usage(usd(0.4));
            assert_eq!(purse.reached_limit(), None, "{unit:?}");
            purse.raise_day_usage(cost, tokens, noon);
            let reached = purse.reached_limit().expect("others have spent the rest");
            assert_eq!(reached.scope, BudgetScope::Day);
            let next_day = noon.after(Duration::from_secs(12 * 3600));
            purse.raise_day_usage(0.1, 0, next_day);
            assert_eq!(purse.reached_limit(), None, "{unit:?} of the next day");
        }
    }
}
