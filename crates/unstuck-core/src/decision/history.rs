//! What has been done about this failure so far: plain data that decisions read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Kind, Level};
use crate::moment::Timestamp;

/// One retry that was decided on and made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The kind of failure that it was an answer to.
    pub kind: Kind,
    /// The level of that answer.
    pub level: Level,
    /// The strategy, where one of the chain was used.
    pub strategy: Option<String>,
    /// When it was decided on.
    pub at: Timestamp,
    /// How long was waited before it.
    #[serde(with = "crate::duration::millis", rename = "delay_ms")]
    pub delay: Duration,
    /// Whether that wait was one for a reset that the server stated.
    #[serde(default)]
    pub stated: bool,
    /// What it cost, in USD, as far as is known.
    #[serde(default)]
    pub cost: f64,
    /// What a dearer model was estimated to cost more, in USD.
    #[serde(default)]
    pub extra: f64,
}

/// What has been done in this episode so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// When the first failure was seen: the time that the work took before does not count as recovery.
    pub started: Timestamp,
    /// What the first try cost, and whatever else belongs to no retry, in USD.
    #[serde(default)]
    pub spent_before: f64,
    /// The retries, in order.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

impl History {
    /// The history of an episode in which nothing has been done yet.
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            spent_before: 0.0,
            attempts: Vec::new(),
        }
    }

    /// Takes in one more retry.
    pub fn record(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
    }

    /// How often it has been executed, the first try included.
    pub fn executions(&self) -> u32 {
        count(self.attempts.len()).saturating_add(1)
    }

    /// How many retries there were for a kind.
    pub fn retries(&self, kind: Kind) -> u32 {
        count(self.of(kind).count())
    }

    /// How many retries there were for a kind at a level.
    pub fn retries_at(&self, kind: Kind, level: Level) -> u32 {
        count(self.of(kind).filter(|one| one.level == level).count())
    }

    /// How often a strategy was used for a kind.
    pub fn uses(&self, kind: Kind, strategy: &str) -> u32 {
        let used = |one: &&Attempt| one.strategy.as_deref() == Some(strategy);
        count(self.of(kind).filter(used).count())
    }

    /// The wait before the newest retry for a kind.
    pub fn last_delay(&self, kind: Kind) -> Option<Duration> {
        self.of(kind).last().map(|one| one.delay)
    }

    /// What it has cost so far, in USD.
    pub fn spent(&self) -> f64 {
        self.spent_before + self.attempts.iter().map(|one| one.cost).sum::<f64>()
    }

    /// What dearer models were estimated to cost more so far, in USD.
    pub fn extra(&self) -> f64 {
        self.attempts.iter().map(|one| one.extra).sum()
    }

    /// How long it has been going on.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        now.since(self.started)
    }

    /// How long it has been going on, without the waits for resets that the server stated.
    pub fn busy(&self, now: Timestamp) -> Duration {
        let waits = self.attempts.iter().filter(|one| one.stated);
        let waited = waits.fold(Duration::ZERO, |sum, one| sum.saturating_add(one.delay));
        self.elapsed(now).saturating_sub(waited)
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(move |one| one.kind == kind)
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// One try as the REST API and the session stream tell it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryAttempt {
    /// The number of the try, from 1.
    pub attempt_number: u32,
    /// What went wrong.
    pub error: Kind,
    /// What was said about it.
    pub error_message: String,
    /// When it failed.
    pub timestamp: Timestamp,
    /// How long is waited before the next try, in milliseconds.
    pub delay_ms: u64,
    /// Whether the try that followed succeeded.
    pub succeeded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(kind: Kind, level: Level, strategy: Option<&str>) -> Attempt {
        Attempt {
            kind,
            level,
            strategy: strategy.map(str::to_owned),
            at: Timestamp::from_seconds(0),
            delay: Duration::from_secs(2),
            stated: false,
            cost: 0.25,
            extra: 0.0,
        }
    }

    #[test]
    fn the_history_counts_what_was_done_per_kind() {
        let mut history = History::new(Timestamp::from_seconds(0));
        history.record(attempt(Kind::Timeout, Level::Same, None));
        history.record(attempt(Kind::Timeout, Level::Alternative, Some("simplify")));
        history.record(attempt(Kind::RateLimit, Level::Same, None));
        assert_eq!(history.executions(), 4);
        assert_eq!(history.retries(Kind::Timeout), 2);
        assert_eq!(history.retries_at(Kind::Timeout, Level::Same), 1);
        assert_eq!(history.uses(Kind::Timeout, "simplify"), 1);
        assert_eq!(history.uses(Kind::RateLimit, "simplify"), 0);
        assert_eq!(history.spent(), 0.75);
    }

    #[test]
    fn waits_for_a_stated_reset_are_not_busy_time() {
        let mut history = History::new(Timestamp::from_seconds(0));
        history.record(Attempt {
            stated: true,
            delay: Duration::from_secs(3600),
            ..attempt(Kind::RateLimitTimed, Level::Same, None)
        });
        let now = Timestamp::from_seconds(3700);
        assert_eq!(history.busy(now), Duration::from_secs(100));
        assert_eq!(history.elapsed(now), Duration::from_secs(3700));
    }

    /// S4-20: the record of one try.
    #[test]
    fn a_retry_attempt_has_the_agreed_names() {
        let record = RetryAttempt {
            attempt_number: 1,
            error: Kind::RateLimit,
            error_message: "Too many requests".into(),
            timestamp: Timestamp::from_seconds(1_794_777_000),
            delay_ms: 1000,
            succeeded: false,
        };
        assert_eq!(
            serde_json::to_value(&record).unwrap(),
            serde_json::json!({
                "attemptNumber": 1, "error": "rate_limit", "errorMessage": "Too many requests",
                "timestamp": "2026-11-15T21:10:00Z", "delayMs": 1000, "succeeded": false
            })
        );
    }
}
