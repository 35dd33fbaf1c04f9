//! Today's spending of all sessions, and remaining budgets.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use unstuck_core::Timestamp;

/// The remaining amount of a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BudgetRemaining {
    /// The amount in USD.
    pub(crate) usd: f64,
    pub(crate) owner: BudgetOwner,
}

/// The owner of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetOwner {
    Session,
    Day,
    Policy,
}

impl fmt::Display for BudgetOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "the session budget",
            Self::Day => "today's budget",
            Self::Policy => "maxCost of the policy",
        })
    }
}

/// The spending of all sessions today (UTC), in USD.
#[derive(Debug, Default)]
pub(crate) struct DaySpending(Mutex<(i64, f64)>);

impl DaySpending {
    /// Adds an amount.
    pub(crate) fn add(&self, usd: f64, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let today = now.day_number();
        if known.0 != today {
            *known = (today, 0.0);
        }
        known.1 += usd;
    }

    /// Raises the total to an amount known from elsewhere; the local one may be newer.
    pub(crate) fn raise_to(&self, usd: f64, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let today = now.day_number();
        let here = if known.0 == today { known.1 } else { 0.0 };
        *known = (today, here.max(usd));
    }

    /// Returns today's total.
    pub(crate) fn today(&self, now: Timestamp) -> f64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 == now.day_number() {
            known.1
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_day_starts_at_zero() {
        let spending = DaySpending::default();
        let noon = Timestamp::from_seconds(1_794_744_000);
        spending.add(1.5, noon);
        spending.add(0.5, noon);
        assert_eq!(spending.today(noon), 2.0);
        let next = noon.after(std::time::Duration::from_secs(86_400));
        assert_eq!(spending.today(next), 0.0);
    }
}
