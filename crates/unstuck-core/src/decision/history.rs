//! What has been done about this failure so far: plain data that decisions read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Kind, Level};
use crate::time::Timestamp;

/// One retry that was decided on and made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryRecord {
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
    #[serde(rename = "stated")]
    pub is_stated_reset: bool,
    /// What it cost, in USD, as far as is known.
    #[serde(default)]
    pub cost: f64,
    /// What a dearer model was estimated to cost more, in USD.
    #[serde(default)]
    #[serde(rename = "extra")]
    pub extra_cost: f64,
    /// Whether time bounded it, so that it does not count against a number of attempts.
    #[serde(default)]
    #[serde(rename = "timed")]
    pub is_time_bound: bool,
    /// Whether it waited for the network to come back, which counts against nothing.
    #[serde(default)]
    #[serde(rename = "offline")]
    pub waited_for_network: bool,
}

/// A stretch of time in which nobody tried: the machine slept, or the supervisor was gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleInterval {
    /// When it began.
    pub at: Timestamp,
    /// How long it lasted.
    #[serde(with = "crate::duration::millis", rename = "lasted_ms")]
    pub duration: Duration,
}

/// So many waits for a stated reset do not count as time without progress; a reset that is stated again and again without
/// a single success is none.
const MAX_FREE_RESETS: usize = 3;

/// What has been done in this episode so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryHistory {
    /// When the first failure was seen: the time that the work took before does not count as recovery.
    pub started: Timestamp,
    /// What the first try cost, and whatever else belongs to no retry, in USD.
    #[serde(default)]
    pub spent_before: f64,
    /// The retries, in order.
    #[serde(default)]
    pub attempts: Vec<RetryRecord>,
    /// When there was progress last: a successful API call, or a completed tool result.
    #[serde(default)]
    pub last_progress: Option<Timestamp>,
    /// When nobody tried.
    #[serde(default)]
    #[serde(rename = "gaps")]
    pub idle_intervals: Vec<IdleInterval>,
}

impl RecoveryHistory {
    /// The history of an episode in which nothing has been done yet.
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            spent_before: 0.0,
            attempts: Vec::new(),
            last_progress: None,
            idle_intervals: Vec::new(),
        }
    }

    /// Takes note of progress.
    pub fn record_progress(&mut self, at: Timestamp) {
        self.last_progress = self.last_progress.max(Some(at));
    }

    /// Takes note of a time in which nobody tried.
    pub fn record_idle(&mut self, at: Timestamp, lasted: Duration) {
        self.idle_intervals.push(IdleInterval {
            at,
            duration: lasted,
        });
    }

    /// The newest retry began at this moment, earlier or later than it was to: what was really waited counts.
    pub fn record_actual_start(&mut self, at: Timestamp) {
        /// A wait that is over a little late is a busy machine, not one that slept.
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

    /// When the time without progress began: with the first failure, or the newest progress after it.
    pub fn progress_or_start(&self) -> Timestamp {
        self.last_progress
            .map_or(self.started, |at| at.max(self.started))
    }

    /// How long there has been no progress, without waits for stated resets and times in which nobody tried.
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

    /// How many retries there were for a kind since the newest progress.
    pub fn retries_without_progress(&self, kind: Kind) -> u32 {
        let since = self.progress_or_start();
        count(
            self.retries_of_kind(kind)
                .filter(|one| one.at >= since)
                .count(),
        )
    }

    /// How long the network was waited for.
    pub fn time_offline(&self) -> Duration {
        let waits = self.attempts.iter().filter(|one| one.waited_for_network);
        sum(waits.map(|one| one.delay))
    }

    /// How long nobody could try, or nobody did: waits for the network and gaps, of which others may have noted the same
    /// time. Each moment counts once.
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

    /// Takes in one more retry.
    pub fn record(&mut self, attempt: RetryRecord) {
        self.attempts.push(attempt);
    }

    /// How often it has been executed, the first try included.
    pub fn execution_count(&self) -> u32 {
        count(self.attempts.len()).saturating_add(1)
    }

    /// How often it has been executed, the first try included, without what only time bounds.
    pub fn counted_execution_count(&self) -> u32 {
        let counted = self.attempts.iter().filter(|one| !one.is_time_bound);
        count(counted.count()).saturating_add(1)
    }

    /// How many retries there were for a kind.
    pub fn retry_count(&self, kind: Kind) -> u32 {
        count(self.retries_of_kind(kind).count())
    }

    /// How many retries there were for a kind at a level.
    pub fn retry_count_at(&self, kind: Kind, level: Level) -> u32 {
        count(
            self.retries_of_kind(kind)
                .filter(|one| one.level == level)
                .count(),
        )
    }

    /// How often a strategy was used for a kind.
    pub fn strategy_use_count(&self, kind: Kind, strategy: &str) -> u32 {
        let used = |one: &&RetryRecord| one.strategy.as_deref() == Some(strategy);
        count(self.retries_of_kind(kind).filter(used).count())
    }

    /// The wait before the newest retry for a kind.
    pub fn last_delay(&self, kind: Kind) -> Option<Duration> {
        self.retries_of_kind(kind).last().map(|one| one.delay)
    }

    /// What it has cost so far, in USD.
    pub fn spent(&self) -> f64 {
        self.spent_before + self.attempts.iter().map(|one| one.cost).sum::<f64>()
    }

    /// What dearer models were estimated to cost more so far, in USD.
    pub fn extra_cost(&self) -> f64 {
        self.attempts.iter().map(|one| one.extra_cost).sum()
    }

    /// How long it has been going on.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        now.since(self.started)
    }

    /// How long it has been going on, without the waits for resets that the server stated and for the network, and without
    /// the times in which nobody tried.
    pub fn active_time(&self, now: Timestamp) -> Duration {
        let stated = self.attempts.iter().filter(|one| one.is_stated_reset);
        self.elapsed(now)
            .saturating_sub(sum(stated.map(|one| one.delay)))
            .saturating_sub(self.idle_time_since(self.started))
    }

    /// The retries for a kind; waits for the network are none.
    fn retries_of_kind(&self, kind: Kind) -> impl Iterator<Item = &RetryRecord> {
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

    fn attempt(kind: Kind, level: Level, strategy: Option<&str>) -> RetryRecord {
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
    fn the_history_counts_what_was_done_per_kind() {
        let mut history = RecoveryHistory::new(Timestamp::from_seconds(0));
        history.record(attempt(Kind::Timeout, Level::Same, None));
        history.record(attempt(Kind::Timeout, Level::Alternative, Some("simplify")));
        history.record(attempt(Kind::RateLimit, Level::Same, None));
        assert_eq!(history.execution_count(), 4);
        assert_eq!(history.retry_count(Kind::Timeout), 2);
        assert_eq!(history.retry_count_at(Kind::Timeout, Level::Same), 1);
        assert_eq!(history.strategy_use_count(Kind::Timeout, "simplify"), 1);
        assert_eq!(history.strategy_use_count(Kind::RateLimit, "simplify"), 0);
        assert_eq!(history.spent(), 0.75);
    }

    #[test]
    fn waits_for_a_stated_reset_are_not_busy_time() {
        let mut history = RecoveryHistory::new(Timestamp::from_seconds(0));
        history.record(RetryRecord {
            is_stated_reset: true,
            delay: Duration::from_secs(3600),
            ..attempt(Kind::RateLimitTimed, Level::Same, None)
        });
        let now = Timestamp::from_seconds(3700);
        assert_eq!(history.active_time(now), Duration::from_secs(100));
        assert_eq!(history.elapsed(now), Duration::from_secs(3700));
    }

    /// S18: only what was tried without progress counts, not stated resets, a network that was gone, or a machine that slept.
    #[test]
    fn the_time_without_progress_leaves_out_what_was_not_tried() {
        let at = Timestamp::from_seconds;
        let minutes = |n: u64| Duration::from_secs(n * 60);
        let mut history = RecoveryHistory::new(at(0));
        assert_eq!(
            history.time_without_progress(at(90)),
            Duration::from_secs(90)
        );
        let reset = RetryRecord {
            is_stated_reset: true,
            delay: minutes(60),
            ..attempt(Kind::RateLimitTimed, Level::Same, None)
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
            ..attempt(Kind::NetworkError, Level::Same, None)
        });
        // The network came back after ten minutes.
        history.record_actual_start(at(4300));
        assert_eq!(
            history.time_without_progress(at(4300)),
            Duration::from_secs(100)
        );
        assert_eq!(history.active_time(at(4300)), Duration::from_secs(100));
        assert_eq!(history.retry_count(Kind::NetworkError), 0);
        history.record(RetryRecord {
            at: at(4300),
            delay: Duration::from_secs(10),
            ..attempt(Kind::NetworkError, Level::Same, None)
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
        assert_eq!(history.retries_without_progress(Kind::NetworkError), 0);
        assert_eq!(history.retry_count(Kind::NetworkError), 1);
        history.record_progress(at(100));
        assert_eq!(history.progress_or_start(), at(7950));
    }

    /// What a wait for the network and a gap have in common counts once.
    #[test]
    fn the_same_time_is_left_out_once() {
        let at = Timestamp::from_seconds;
        let seconds = Duration::from_secs;
        let mut history = RecoveryHistory::new(at(0));
        history.record(RetryRecord {
            waited_for_network: true,
            at: at(100),
            delay: seconds(200),
            ..attempt(Kind::NetworkError, Level::Same, None)
        });
        history.record_idle(at(50), seconds(150));
        history.record_idle(at(120), seconds(30));
        assert_eq!(history.time_without_progress(at(400)), seconds(150));
        assert_eq!(history.active_time(at(400)), seconds(150));
    }

    /// A server that states one reset after the other without ever answering is not waited for without end.
    #[test]
    fn resets_that_never_bring_progress_count_after_a_while() {
        let mut history = RecoveryHistory::new(Timestamp::from_seconds(0));
        for n in 0..5 {
            history.record(RetryRecord {
                is_stated_reset: true,
                at: Timestamp::from_seconds(n * 100),
                delay: Duration::from_secs(100),
                ..attempt(Kind::RateLimitTimed, Level::Same, None)
            });
        }
        let now = Timestamp::from_seconds(500);
        assert_eq!(history.time_without_progress(now), Duration::from_secs(200));
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
