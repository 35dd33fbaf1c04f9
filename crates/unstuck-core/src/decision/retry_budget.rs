//! The retry budget of one upstream: retries stay a share of first attempts, so that they never amplify an outage.
//!
//! One token bucket per upstream is shared by all its sessions. A floor refills it slowly even without first attempts,
//! so that a single session is never starved.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The settings of a retry budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryBudgetSettings {
    /// The maximum number of saved retries; 10 by default.
    pub capacity: f64,
    /// The amount added by each first attempt; 0.2 by default, so one retry for five first attempts.
    pub deposit: f64,
    /// The amount added by each minute; 6 by default, so one retry every 10 s.
    pub floor_per_minute: f64,
}

impl Default for RetryBudgetSettings {
    fn default() -> Self {
        Self {
            capacity: 10.0,
            deposit: 0.2,
            floor_per_minute: 6.0,
        }
    }
}

/// The retry budget of one upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpstreamRetryBudget {
    settings: RetryBudgetSettings,
    tokens: f64,
    #[serde(rename = "at")]
    updated_at: Timestamp,
}

impl UpstreamRetryBudget {
    /// Creates a full budget; a capacity below one retry is raised to one.
    pub fn full(mut settings: RetryBudgetSettings, now: Timestamp) -> Self {
        settings.capacity = settings.capacity.max(1.0);
        Self {
            settings,
            tokens: settings.capacity,
            updated_at: now,
        }
    }

    /// Returns the number of available retries at this time.
    pub fn tokens(&self, now: Timestamp) -> f64 {
        let minutes = now.since(self.updated_at).as_secs_f64() / 60.0;
        (self.tokens + minutes * self.settings.floor_per_minute).min(self.settings.capacity)
    }

    /// Records a first attempt.
    pub fn on_first_attempt(&mut self, now: Timestamp) {
        self.set(self.tokens(now) + self.settings.deposit, now);
    }

    /// Takes one retry; returns `false` and takes nothing if there is none.
    pub fn try_spend(&mut self, now: Timestamp) -> bool {
        let tokens = self.tokens(now);
        let enough = tokens >= 1.0 - f64::EPSILON;
        self.set(if enough { tokens - 1.0 } else { tokens }, now);
        enough
    }

    /// Returns the time until a retry is available; zero if one is available now.
    ///
    /// Without a floor the wait is a minute: other first attempts may have added to it by then.
    pub fn time_until_retry(&self, now: Timestamp) -> Duration {
        let missing = 1.0 - self.tokens(now);
        if missing <= f64::EPSILON {
            return Duration::ZERO;
        }
        let seconds = missing * 60.0 / self.settings.floor_per_minute;
        // Rounded up to a whole millisecond: slightly too early, the token would still be missing.
        Duration::try_from_secs_f64(seconds)
            .map_or(Duration::from_secs(60), |wait| {
                Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX - 1) + 1)
            })
            .min(Duration::from_secs(3600))
    }

    fn set(&mut self, tokens: f64, now: Timestamp) {
        self.tokens = tokens.clamp(0.0, self.settings.capacity);
        self.updated_at = self.updated_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    /// S4-35: retries are a share of first attempts.
    #[test]
    fn a_storm_of_failures_gets_few_retries() {
        let mut budget = UpstreamRetryBudget::full(RetryBudgetSettings::default(), at(0));
        let mut retries = 0;
        for _ in 0..1000 {
            budget.on_first_attempt(at(0));
            retries += u32::from(budget.try_spend(at(0)));
        }
        assert!((200..=210).contains(&retries), "{retries}");
    }

    #[test]
    fn a_single_session_is_never_starved() {
        let mut budget = UpstreamRetryBudget::full(RetryBudgetSettings::default(), at(0));
        while budget.try_spend(at(0)) {}
        let wait = budget.time_until_retry(at(0));
        assert!(!wait.is_zero() && wait <= Duration::from_secs(11));
        assert!(budget.try_spend(at(0).after(wait)));
    }

    #[test]
    fn the_budget_round_trips_through_json() {
        let budget = UpstreamRetryBudget::full(RetryBudgetSettings::default(), at(5));
        let json = serde_json::to_string(&budget).unwrap();
        assert_eq!(
            serde_json::from_str::<UpstreamRetryBudget>(&json).unwrap(),
            budget
        );
    }

    proptest! {
        #[test]
        fn the_announced_wait_is_always_enough(
            spent in 0_u32..40, floor in 0.1..100.0_f64, capacity in 1.0..50.0_f64, start in 0_i64..2_000_000_000,
        ) {
            let settings = RetryBudgetSettings { capacity, deposit: 0.1, floor_per_minute: floor };
            let mut budget = UpstreamRetryBudget::full(settings, at(start));
            for _ in 0..spent {
                budget.try_spend(at(start));
            }
            let later = at(start).after(budget.time_until_retry(at(start)));
            prop_assert!(budget.try_spend(later));
        }
    }
}
