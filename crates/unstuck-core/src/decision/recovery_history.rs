//! The recovery history of a failure, as plain data that decisions read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{FailureKind, RecoveryLevel};
use crate::time::Timestamp;

/// A retry that was decided on and made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryRecord {
    /// The failure kind.
    pub kind: FailureKind,
    /// The recovery level.
    pub level: RecoveryLevel,
    /// The strategy, if one of the chain was used.
    pub strategy: Option<String>,
    /// The time of the decision.
    pub at: Timestamp,
    /// The delay before it.
    #[serde(with = "crate::duration::millis", rename = "delay_ms")]
    pub delay: Duration,
    /// True if it waited for a reset stated by the server.
    #[serde(default)]
    #[serde(rename = "stated")]
    pub is_stated_reset: bool,
    /// The known cost in USD.
    #[serde(default)]
    pub cost: f64,
    /// The estimated extra cost of a more expensive model, in USD.
    #[serde(default)]
    #[serde(rename = "extra_cost", alias = "extra")]
    pub extra_cost: f64,
    /// True if it was bounded by time, so that it does not use up a number of attempts.
    #[serde(default)]
    #[serde(rename = "time_bound", alias = "timed")]
    pub is_time_bound: bool,
    /// True if it waited for the network, which uses up no limit.
    #[serde(default)]
    #[serde(rename = "waited_for_network", alias = "offline")]
    pub waited_for_network: bool,
}

/// An interval without attempts: the machine slept, or the supervisor was not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisionGap {
    /// The start of the interval.
    pub at: Timestamp,
    /// The duration of the interval.
    #[serde(
        with = "crate::duration::millis",
        rename = "duration_ms",
        alias = "lasted_ms"
    )]
    pub duration: Duration,
}

/// The number of waits for stated resets that are excluded from the time without progress; a reset that is stated again
/// and again without a single success is not a real one.
const MAX_FREE_RESETS: usize = 3;

/// The recovery history of the current episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeRecoveryHistory {
    /// The time of the first failure: working time before it is not recovery time.
    pub started: Timestamp,
    /// The cost of the first attempt and everything else outside of retries, in USD.
    #[serde(default)]
    pub spent_before: f64,
    /// The retries, in order.
    #[serde(default)]
    pub attempts: Vec<RetryRecord>,
    /// The time of the last progress: a successful API call, or a completed tool result.
    #[serde(default)]
    pub last_progress: Option<Timestamp>,
    /// The intervals without attempts.
    #[serde(default)]
    #[serde(rename = "idle_intervals", alias = "gaps")]
    pub idle_intervals: Vec<SupervisionGap>,
}

impl EpisodeRecoveryHistory {
    /// Creates an empty history.
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            spent_before: 0.0,
            attempts: Vec::new(),
            last_progress: None,
            idle_intervals: Vec::new(),
        }
    }

    /// Records progress.
    pub fn record_progress(&mut self, at: Timestamp) {
        self.last_progress = self.last_progress.max(Some(at));
    }

    /// Records an interval without attempts.
    pub fn record_idle(&mut self, at: Timestamp, lasted: Duration) {
        self.idle_intervals.push(SupervisionGap {
            at,
            duration: lasted,
        });
    }

    /// Records when the latest retry actually started, earlier or later than planned: the actual delay is used.
    pub fn record_actual_start(&mut self, at: Timestamp) {
        /// A wait that ends slightly late is caused by a busy machine, not by one that slept.
        const LATE: Duration = Duration::from_secs(30);
        let Some(newest) = self.attempts.last_mut() else {
            return;
        };
        let due = newest.at.after(newest.delay);
        if at < due {
            newest.delay = at.since(newest.at);
        } else if at.since(due) > LATE {
            self.record_idle(due, at.since(due));
        }
    }

    /// Returns the start of the time without progress: the first failure, or the latest progress after it.
    pub fn progress_or_start(&self) -> Timestamp {
        self.last_progress
            .map_or(self.started, |at| at.max(self.started))
    }

    /// Returns the time without progress, excluding waits for stated resets and intervals without attempts.
    pub fn time_without_progress(&self, now: Timestamp) -> Duration {
        let since = self.progress_or_start();
        let newer = || self.attempts.iter().filter(|one| one.at >= since);
        let resets = newer()
            .filter(|one| one.is_stated_reset)
            .take(MAX_FREE_RESETS);
        let waited = sum(resets.map(|one| one.delay));
        now.since(since)
            .saturating_sub(waited)
            .saturating_sub(self.idle_time_since(since))
    }

    /// Counts the retries of a kind since the latest progress.
    pub fn retries_without_progress(&self, kind: FailureKind) -> u32 {
        let since = self.progress_or_start();
        count(
            self.retries_of_kind(kind)
                .filter(|one| one.at >= since)
                .count(),
        )
    }

    /// Returns the time spent waiting for the network.
    pub fn time_offline(&self) -> Duration {
        let waits = self.attempts.iter().filter(|one| one.waited_for_network);
        sum(waits.map(|one| one.delay))
    }

    /// Returns the time without attempts: waits for the network and idle intervals, which may overlap. Overlapping time
    /// is included once.
    fn idle_time_since(&self, since: Timestamp) -> Duration {
        let offline = self.attempts.iter().filter(|one| one.waited_for_network);
        let offline = offline.map(|one| (one.at, one.at.after(one.delay)));
        let gaps = self.idle_intervals.iter();
        let gaps = gaps.map(|gap| (gap.at, gap.at.after(gap.duration)));
        let mut times: Vec<_> = offline.chain(gaps).filter(|(at, _)| *at >= since).collect();
        times.sort_unstable();
        let mut counted_until = since;
        sum(times.into_iter().map(|(start, end)| {
            let start = start.max(counted_until);
            counted_until = end.max(counted_until);
            end.since(start)
        }))
    }

    /// Adds a retry.
    pub fn record(&mut self, attempt: RetryRecord) {
        self.attempts.push(attempt);
    }

    /// Returns the number of executions, including the first.
    pub fn execution_count(&self) -> u32 {
        count(self.attempts.len()).saturating_add(1)
    }

    /// Returns the number of executions, including the first, without time-bounded retries.
    pub fn counted_execution_count(&self) -> u32 {
        let counted = self.attempts.iter().filter(|one| !one.is_time_bound);
        count(counted.count()).saturating_add(1)
    }

    /// Returns the number of retries of a kind.
    pub fn retry_count(&self, kind: FailureKind) -> u32 {
        count(self.retries_of_kind(kind).count())
    }

    /// Returns the number of retries of a kind at a level.
    pub fn retry_count_at(&self, kind: FailureKind, level: RecoveryLevel) -> u32 {
        count(
            self.retries_of_kind(kind)
                .filter(|one| one.level == level)
                .count(),
        )
    }

    /// Returns the number of uses of a strategy for a kind.
    pub fn strategy_use_count(&self, kind: FailureKind, strategy: &str) -> u32 {
        let used = |one: &&RetryRecord| one.strategy.as_deref() == Some(strategy);
        count(self.retries_of_kind(kind).filter(used).count())
    }

    /// Returns the delay before the latest retry of a kind.
    pub fn last_delay(&self, kind: FailureKind) -> Option<Duration> {
        self.retries_of_kind(kind).last().map(|one| one.delay)
    }

    /// Returns the cost so far in USD.
    pub fn spent(&self) -> f64 {
        self.spent_before + self.attempts.iter().map(|one| one.cost).sum::<f64>()
    }

    /// Returns the estimated extra cost of more expensive models so far, in USD.
    pub fn extra_cost(&self) -> f64 {
        self.attempts.iter().map(|one| one.extra_cost).sum()
    }

    /// Returns the time since the first failure.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        now.since(self.started)
    }

    /// Returns the time since the first failure, excluding waits for stated resets and for the network, and intervals
    /// without attempts.
    pub fn active_time(&self, now: Timestamp) -> Duration {
        let stated = self.attempts.iter().filter(|one| one.is_stated_reset);
        self.elapsed(now)
            .saturating_sub(sum(stated.map(|one| one.delay)))
            .saturating_sub(self.idle_time_since(self.started))
    }

    /// Returns the retries of a kind without waits for the network.
    fn retries_of_kind(&self, kind: FailureKind) -> impl Iterator<Item = &RetryRecord> {
        let counts = move |one: &&RetryRecord| one.kind == kind && !one.waited_for_network;
        self.attempts.iter().filter(counts)
    }
}

fn sum(times: impl Iterator<Item = Duration>) -> Duration {
    times.fold(Duration::ZERO, Duration::saturating_add)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A failed attempt in the form of the REST API and the session stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryAttempt {
    /// The attempt number, from 1.
    pub attempt_number: u32,
    /// The failure kind.
    pub error: FailureKind,
    /// The failure message.
    pub error_message: String,
    /// The time of the failure.
    pub timestamp: Timestamp,
    /// The delay before the next attempt, in milliseconds.
    pub delay_ms: u64,
    /// True if the next attempt succeeded.
    pub succeeded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(kind: FailureKind, level: RecoveryLevel, strategy: Option<&str>) -> RetryRecord {
        RetryRecord {
            kind,
            level,
            strategy: strategy.map(str::to_owned),
            at: Timestamp::from_seconds(0),
            delay: Duration::from_secs(2),
            is_stated_reset: false,
            cost: 0.25,
            extra_cost: 0.0,
            is_time_bound: false,
            waited_for_network: false,
        }
    }

    #[test]
    fn the_history_counts_retries_per_kind() {
        let mut history = EpisodeRecoveryHistory::new(Timestamp::from_seconds(0));
        history.record(attempt(FailureKind::Timeout, RecoveryLevel::Same, None));
        history.record(attempt(
            FailureKind::Timeout,
            RecoveryLevel::Alternative,
            Some("simplify"),
        ));
        history.record(attempt(FailureKind::RateLimit, RecoveryLevel::Same, None));
        assert_eq!(history.execution_count(), 4);
        assert_eq!(history.retry_count(FailureKind::Timeout), 2);
        assert_eq!(
            history.retry_count_at(FailureKind::Timeout, RecoveryLevel::Same),
            1
        );
        assert_eq!(
            history.strategy_use_count(FailureKind::Timeout, "simplify"),
            1
        );
        assert_eq!(
            history.strategy_use_count(FailureKind::RateLimit, "simplify"),
            0
        );
        assert_eq!(history.spent(), 0.75);
    }

    #[test]
    fn waits_for_a_stated_reset_are_not_active_time() {
        let mut history = EpisodeRecoveryHistory::new(Timestamp::from_seconds(0));
        history.record(RetryRecord {
            is_stated_reset: true,
            delay: Duration::from_secs(3600),
            ..attempt(FailureKind::RateLimitTimed, RecoveryLevel::Same, None)
        });
        let now = Timestamp::from_seconds(3700);
        assert_eq!(history.active_time(now), Duration::from_secs(100));
        assert_eq!(history.elapsed(now), Duration::from_secs(3700));
    }

    /// S18: stated resets, network outages and sleep of the machine are not time without progress.
    #[test]
    fn time_without_progress_excludes_time_without_attempts() {
        let at = Timestamp::from_seconds;
        let minutes = |n: u64| Duration::from_secs(n * 60);
        let mut history = EpisodeRecoveryHistory::new(at(0));
        assert_eq!(
            history.time_without_progress(at(90)),
            Duration::from_secs(90)
        );
        let reset = RetryRecord {
            is_stated_reset: true,
            delay: minutes(60),
            ..attempt(FailureKind::RateLimitTimed, RecoveryLevel::Same, None)
        };
        history.record(reset.clone());
        assert_eq!(
            history.time_without_progress(at(3700)),
            Duration::from_secs(100)
        );
        history.record(RetryRecord {
            waited_for_network: true,
            at: at(3700),
            delay: minutes(600),
            ..attempt(FailureKind::NetworkError, RecoveryLevel::Same, None)
        });
        // The network came back after ten minutes.
        history.record_actual_start(at(4300));
        assert_eq!(
            history.time_without_progress(at(4300)),
            Duration::from_secs(100)
        );
        assert_eq!(history.active_time(at(4300)), Duration::from_secs(100));
        assert_eq!(history.retry_count(FailureKind::NetworkError), 0);
        history.record(RetryRecord {
            at: at(4300),
            delay: Duration::from_secs(10),
            ..attempt(FailureKind::NetworkError, RecoveryLevel::Same, None)
        });
        // The lid was closed for an hour.
        history.record_actual_start(at(7910));
        assert_eq!(
            history.time_without_progress(at(7910)),
            Duration::from_secs(110)
        );
        history.record_progress(at(7950));
        assert_eq!(
            history.time_without_progress(at(8000)),
            Duration::from_secs(50)
        );
        assert_eq!(
            history.retries_without_progress(FailureKind::NetworkError),
            0
        );
        assert_eq!(history.retry_count(FailureKind::NetworkError), 1);
        history.record_progress(at(100));
        assert_eq!(history.progress_or_start(), at(7950));
    }

    /// The overlap of a network wait and an idle interval is excluded once.
    #[test]
    fn overlapping_time_is_excluded_once() {
        let at = Timestamp::from_seconds;
        let seconds = Duration::from_secs;
        let mut history = EpisodeRecoveryHistory::new(at(0));
        history.record(RetryRecord {
            waited_for_network: true,
            at: at(100),
            delay: seconds(200),
            ..attempt(FailureKind::NetworkError, RecoveryLevel::Same, None)
        });
        history.record_idle(at(50), seconds(150));
        history.record_idle(at(120), seconds(30));
        assert_eq!(history.time_without_progress(at(400)), seconds(150));
        assert_eq!(history.active_time(at(400)), seconds(150));
    }

    /// A server that states one reset after another without ever succeeding is not waited for forever.
    #[test]
    fn resets_without_progress_are_included_after_a_while() {
        let mut history = EpisodeRecoveryHistory::new(Timestamp::from_seconds(0));
        for n in 0..5 {
            history.record(RetryRecord {
                is_stated_reset: true,
                at: Timestamp::from_seconds(n * 100),
                delay: Duration::from_secs(100),
                ..attempt(FailureKind::RateLimitTimed, RecoveryLevel::Same, None)
            });
        }
        let now = Timestamp::from_seconds(500);
        assert_eq!(history.time_without_progress(now), Duration::from_secs(200));
    }

    /// S4-20: the record of one attempt.
    #[test]
    fn a_retry_attempt_has_the_agreed_names() {
        let record = RetryAttempt {
            attempt_number: 1,
            error: FailureKind::RateLimit,
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
