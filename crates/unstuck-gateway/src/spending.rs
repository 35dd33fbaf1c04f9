//! What all sessions have spent today, and what a budget has left.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use unstuck_core::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// The number of a day (UTC).
pub(crate) fn day_number(moment: Timestamp) -> i64 {
    moment.millis().div_euclid(DAY_MS)
}

/// What a budget has left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BudgetRemaining {
    /// In USD.
    pub(crate) usd: f64,
    pub(crate) owner: BudgetOwner,
}

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetOwner {
    Session,
    Day,
    Policy,
}

impl fmt::Display for BudgetOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "the session has",
            Self::Day => "today's budget has",
            Self::Policy => "maxCost of the policy has",
        })
    }
}

/// What all sessions have spent today (UTC), in USD.
#[derive(Debug, Default)]
pub(crate) struct DaySpending(Mutex<(i64, f64)>);

impl DaySpending {
    /// Adds to it.
    pub(crate) fn add(&self, usd: f64, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let today = day_number(now);
        if known.0 != today {
            *known = (today, 0.0);
        }
        known.1 += usd;
    }

    /// Others know of so much; what is known here may be newer.
    pub(crate) fn raise_to(&self, usd: f64, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let today = day_number(now);
        let here = if known.0 == today { known.1 } else { 0.0 };
        *known = (today, here.max(usd));
    }

    /// What was spent today.
    pub(crate) fn today(&self, now: Timestamp) -> f64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 == day_number(now) {
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
    fn a_new_day_begins_with_nothing_spent() {
        let spending = DaySpending::default();
        let noon = Timestamp::from_seconds(1_794_744_000);
        spending.add(1.5, noon);
        spending.add(0.5, noon);
        assert_eq!(spending.today(noon), 2.0);
        let next = noon.after(std::time::Duration::from_secs(86_400));
        assert_eq!(spending.today(next), 0.0);
    }
}
