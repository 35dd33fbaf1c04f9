//! What a run may still use while its attempts are under way: shared by all its sessions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use unstuck_core::event::{BudgetReached, BudgetUnit};
use unstuck_core::money::ActiveBudget;

use crate::usage::CallUsage;

/// What a run may still use while its attempts are under way.
#[derive(Debug, Default)]
pub struct RunBudget(Mutex<Vec<ActiveBudget>>);

impl RunBudget {
    /// The limits as they stand when an attempt begins, and what attempts that are still under way have used beyond.
    pub fn set_limits(&self, limits: &[ActiveBudget], under_way: CallUsage) {
        let mut own = self.lock();
        own.clear();
        own.extend(limits.iter().map(|limit| ActiveBudget {
            used: limit.used + used_amount(under_way, limit.unit),
            ..*limit
        }));
    }

    /// A call has used so much.
    pub(crate) fn add_usage(&self, used: CallUsage) {
        for limit in self.lock().iter_mut() {
            limit.used += used_amount(used, limit.unit);
        }
    }

    /// The first limit that is reached, if one is.
    pub(crate) fn reached_limit(&self) -> Option<BudgetReached> {
        self.lock()
            .iter()
            .find_map(|limit| limit.check_reached(0.0))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ActiveBudget>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was used of a unit; tokens that a provider kept are not counted, as agents do not count them.
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
    fn a_limit_is_reached_by_the_calls_of_all_sessions_together() {
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
