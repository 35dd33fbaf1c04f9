//! The remaining budget of a run during its attempts, shared by all its sessions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use unstuck_core::event::{BudgetReached, BudgetUnit};
use unstuck_core::money::ActiveBudget;

use crate::usage::CallUsage;

/// The remaining budget of a run during its attempts.
#[derive(Debug, Default)]
pub struct RunBudget(Mutex<Vec<ActiveBudget>>);

impl RunBudget {
    /// Sets the limits at the start of an attempt, and the usage of attempts in progress that they do not include.
    pub fn set_limits(&self, limits: &[ActiveBudget], under_way: CallUsage) {
        let mut own = self.lock();
        own.clear();
        own.extend(limits.iter().map(|limit| ActiveBudget {
            used: limit.used + used_amount(under_way, limit.unit),
            ..*limit
        }));
    }

    /// Adds the usage of a call.
    pub(crate) fn add_usage(&self, used: CallUsage) {
        for limit in self.lock().iter_mut() {
            limit.used += used_amount(used, limit.unit);
        }
    }

    /// Returns the first limit that is reached, if any.
    pub(crate) fn reached_limit(&self) -> Option<BudgetReached> {
        self.lock()
            .iter()
            .find_map(|limit| limit.check_reached(0.0))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ActiveBudget>> {
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
    use unstuck_core::event::BudgetScope;

    use super::*;

    #[test]
    fn calls_of_all_sessions_reach_the_limit_together() {
        let purse = RunBudget::default();
        let limit = ActiveBudget {
            scope: BudgetScope::Run,
            unit: BudgetUnit::Usd,
            used: 1.0,
            limit: 2.0,
            configured: 2.0,
        };
        let usd = |usd| CallUsage {
            cost_usd: Some(usd),
            tokens: None,
        };
        purse.set_limits(&[limit], usd(0.5));
        purse.add_usage(usd(0.4));
        assert_eq!(purse.reached_limit(), None);
        purse.add_usage(usd(0.2));
        let reached = purse.reached_limit().expect("2.1 of 2.0");
        assert!((reached.raise_to - 4.1).abs() < 1e-9, "{reached:?}");
        purse.set_limits(&[], CallUsage::default());
        assert_eq!(purse.reached_limit(), None, "no limit");
    }
}
