//! Hourly rollups: a pure function from one event to the entries it contributes.
//!
//! Four things are counted, distinguished by outcome:
//! - each attempt that ended: `succeeded`, `failed` or `interrupted`;
//! - each attempt after a failure: `helped` if it succeeded or failed differently, or `did_not_help`;
//! - each session that succeeded after a failure: `recovered`, with the time since its first failure;
//! - each run that ended or stopped: `run_` and its status.

use std::collections::HashMap;

use unstuck_core::duration::to_millis;
use unstuck_core::event::{AttemptEnd, Event, EventRecord, RetryCause, RunFinished, SessionId};
use unstuck_core::views::RunSummary;
use unstuck_core::{FailureKind, RecoveryLevel, Timestamp};

/// The number of buckets in the duration histogram.
pub const BUCKETS: usize = 12;

/// The upper bounds of the buckets, in milliseconds; the last bucket has none.
pub const BOUNDS_MS: [u64; BUCKETS - 1] = [
    100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];

/// The outcome of a strategy that helped.
pub const HELPED: &str = "helped";
/// The outcome of a strategy after which the same failure recurred.
pub const DID_NOT_HELP: &str = "did_not_help";

/// The outcome of a session that succeeded after a failure.
pub const RECOVERED: &str = "recovered";

const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";
const INTERRUPTED: &str = "interrupted";

/// The outcomes of attempts.
pub(crate) const ATTEMPT_OUTCOMES: &[&str] = &[SUCCEEDED, FAILED, INTERRUPTED];
/// The outcomes of strategies.
pub(crate) const ANSWER_OUTCOMES: &[&str] = &[HELPED, DID_NOT_HELP];
/// The outcomes of sessions that failed before.
pub(crate) const RECOVERY_OUTCOMES: &[&str] = &[RECOVERED];

const HOUR_MS: i64 = 3_600_000;

/// The maximum duration of one entry, a century, so that lifetime sums fit in 64 bits.
const MAX_DURATION_MS: u64 = 100 * 366 * 86_400_000;

/// The maximum cost of one entry in USD, for the same reason.
const MAX_COST_USD: f64 = 1e6;

/// The dimensions of a rollup.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RollupKey {
    /// The hour since the Unix epoch.
    pub hour: i64,
    /// The project root.
    pub project: String,
    /// The failure kind; `none` if there was none.
    pub kind: &'static str,
    /// The model; empty if unknown.
    pub model: String,
    /// The strategy or level; empty if no strategy is counted.
    pub strategy: String,
    /// The outcome.
    pub outcome: String,
}

/// A single contribution to a rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupIncrement {
    /// The key it is counted under.
    pub key: RollupKey,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The cost in billionths of a USD; integers make sums independent of their order.
    pub cost_nanos: i64,
}

/// The totals under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RollupCell {
    /// The count.
    pub count: u64,
    /// The total duration in milliseconds.
    pub duration_ms: u64,
    /// The total cost in billionths of a USD.
    pub cost_nanos: i64,
    /// The duration histogram; see [`BOUNDS_MS`].
    pub histogram: [u64; BUCKETS],
}

impl RollupCell {
    /// Adds one entry.
    pub fn add(&mut self, line: &RollupIncrement) {
        self.count += 1;
        self.duration_ms = self.duration_ms.saturating_add(line.duration_ms);
        self.cost_nanos = self.cost_nanos.saturating_add(line.cost_nanos);
        self.histogram[bucket_index(line.duration_ms)] += 1;
    }
}

/// Returns the bucket of a duration.
pub fn bucket_index(duration_ms: u64) -> usize {
    BOUNDS_MS.partition_point(|bound| *bound <= duration_ms)
}

/// Returns the hour of a timestamp.
pub fn hour_number(at: Timestamp) -> i64 {
    at.millis().div_euclid(HOUR_MS)
}

/// Returns the start of an hour.
pub fn hour_start(hour: i64) -> Timestamp {
    Timestamp::from_millis(hour.saturating_mul(HOUR_MS))
}

/// Returns the session that this event completes successfully.
pub fn recovered_session(event: &Event) -> Option<&SessionId> {
    match event {
        Event::AttemptSucceeded(attempt) => {
            let end = &attempt.end;
            end.cause.as_ref().map(|_| &end.session)
        }
        _ => None,
    }
}

/// The first failure times of sessions that are currently failing, tracked from events.
#[derive(Debug, Default)]
pub(crate) struct FailingSessions(HashMap<SessionId, Timestamp>);

impl FailingSessions {
    /// Applies the next event; returns the time of the first failure if the event ends a series of failures.
    pub(crate) fn on_event(&mut self, recorded: &EventRecord) -> Option<Timestamp> {
        match &recorded.event {
            Event::AttemptFailed(attempt) => {
                let session = attempt.end.session.clone();
                self.0.entry(session).or_insert(recorded.at);
                None
            }
            Event::AttemptSucceeded(attempt) => {
                let since = self.0.remove(&attempt.end.session);
                since.filter(|_| recovered_session(&recorded.event).is_some())
            }
            _ => None,
        }
    }
}

/// Returns the entries an event contributes, given its run after the event and the time since which its session has
/// been failing, if the event [ends](recovered_session) that.
pub fn rollup_entries(
    recorded: &EventRecord,
    view: Option<&RunSummary>,
    failing_since: Option<Timestamp>,
) -> Vec<RollupIncrement> {
    let here = EventContext { recorded, view };
    let mut lines = here.entries();
    lines.extend(failing_since.and_then(|since| here.recovery_entry(since)));
    lines
}

/// Returns the cost that an event reports, in billionths of a USD.
pub(crate) fn event_cost_nanos(event: &Event) -> i64 {
    let used = match event {
        Event::AttemptSucceeded(attempt) => &attempt.end.usage,
        Event::AttemptFailed(attempt) => &attempt.end.usage,
        _ => return 0,
    };
    usd_to_nanos(used.cost_usd.unwrap_or(0.0))
}

/// The counted event and its run.
struct EventContext<'a> {
    recorded: &'a EventRecord,
    view: Option<&'a RunSummary>,
}

/// The counted properties of an event.
struct RollupContribution<'a> {
    kind: FailureKind,
    outcome: &'a str,
    strategy: &'a str,
    model: Option<&'a String>,
    duration_ms: u64,
    cost_usd: f64,
}

impl<'a> RollupContribution<'a> {
    fn new(kind: FailureKind, outcome: &'a str) -> Self {
        Self {
            kind,
            outcome,
            strategy: "",
            model: None,
            duration_ms: 0,
            cost_usd: 0.0,
        }
    }

    fn for_attempt(kind: FailureKind, outcome: &'a str, end: &'a AttemptEnd) -> Self {
        Self {
            model: end.model.as_ref(),
            duration_ms: end.duration_ms,
            cost_usd: end.usage.cost_usd.unwrap_or(0.0),
            ..Self::new(kind, outcome)
        }
    }
}

impl EventContext<'_> {
    fn entries(&self) -> Vec<RollupIncrement> {
        match &self.recorded.event {
            Event::AttemptSucceeded(attempt) => self.attempt_entries(&attempt.end, None),
            Event::AttemptFailed(attempt) => {
                self.attempt_entries(&attempt.end, Some(attempt.diagnosis.kind))
            }
            Event::AttemptInterrupted(_) => {
                vec![self.entry(RollupContribution::new(FailureKind::None, INTERRUPTED))]
            }
            Event::RunFinished(end) => vec![self.run_entry(end)],
            _ => Vec::new(),
        }
    }

    fn recovery_entry(&self, since: Timestamp) -> Option<RollupIncrement> {
        let Event::AttemptSucceeded(attempt) = &self.recorded.event else {
            return None;
        };
        let answering = attempt.end.cause.as_ref()?;
        let took = self.recorded.at.since(since);
        Some(self.entry(RollupContribution {
            strategy: strategy_key(answering),
            model: attempt.end.model.as_ref(),
            duration_ms: to_millis(took),
            ..RollupContribution::new(answering.kind, RECOVERED)
        }))
    }

    fn attempt_entries(
        &self,
        end: &AttemptEnd,
        failure: Option<FailureKind>,
    ) -> Vec<RollupIncrement> {
        let outcome = if failure.is_some() { FAILED } else { SUCCEEDED };
        let kind = failure.unwrap_or(FailureKind::None);
        let attempt = self.entry(RollupContribution::for_attempt(kind, outcome, end));
        let answer = end.cause.as_ref().map(|answering| {
            self.entry(RollupContribution {
                strategy: strategy_key(answering),
                ..RollupContribution::for_attempt(
                    answering.kind,
                    answer_outcome(answering, failure),
                    end,
                )
            })
        });
        std::iter::once(attempt).chain(answer).collect()
    }

    fn run_entry(&self, end: &RunFinished) -> RollupIncrement {
        let kind = self
            .view
            .and_then(|view| view.kind)
            .unwrap_or(FailureKind::None);
        self.entry(RollupContribution {
            duration_ms: end.duration_ms,
            cost_usd: end.cost_usd.unwrap_or(0.0),
            ..RollupContribution::new(kind, &format!("run_{}", end.outcome))
        })
    }

    fn entry(&self, counting: RollupContribution<'_>) -> RollupIncrement {
        let known_model = || self.view.and_then(|view| view.model.as_ref());
        let model = counting.model.or_else(known_model);
        RollupIncrement {
            key: RollupKey {
                hour: hour_number(self.recorded.at),
                project: self
                    .view
                    .map(|view| view.project.clone())
                    .unwrap_or_default(),
                kind: counting.kind.name(),
                model: model.cloned().unwrap_or_default(),
                strategy: counting.strategy.to_owned(),
                outcome: counting.outcome.to_owned(),
            },
            duration_ms: counting.duration_ms.min(MAX_DURATION_MS),
            cost_nanos: usd_to_nanos(counting.cost_usd),
        }
    }
}

/// Returns the level of a strategy label: only level 2 uses strategies of a chain.
pub(crate) fn strategy_level(strategy: &str) -> &'static str {
    let others = [
        RecoveryLevel::Same,
        RecoveryLevel::Clarify,
        RecoveryLevel::Escalate,
    ];
    let known = others.into_iter().find(|level| level.name() == strategy);
    known.unwrap_or(RecoveryLevel::Alternative).name()
}

fn strategy_key(answering: &RetryCause) -> &str {
    let level = answering.level.name();
    answering.strategy.as_deref().unwrap_or(level)
}

fn answer_outcome(answering: &RetryCause, failure: Option<FailureKind>) -> &'static str {
    if failure == Some(answering.kind) {
        DID_NOT_HELP
    } else {
        HELPED
    }
}

/// Converts USD to whole billionths; 0 if the amount is not a number.
pub(crate) fn usd_to_nanos(usd: f64) -> i64 {
    (usd.clamp(-MAX_COST_USD, MAX_COST_USD) * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_start_at_their_bound() {
        assert_eq!([0, 99, 100, 299, 300].map(bucket_index), [0, 0, 1, 1, 2]);
        assert_eq!(bucket_index(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn hours_before_the_epoch_are_negative() {
        assert_eq!(hour_number(Timestamp::from_millis(-1)), -1);
        assert_eq!(
            hour_start(hour_number(Timestamp::from_millis(7_199_999))).millis(),
            HOUR_MS
        );
    }

    #[test]
    fn non_numeric_amount_costs_nothing() {
        assert_eq!(usd_to_nanos(f64::NAN), 0);
        assert_eq!(usd_to_nanos(0.25), 250_000_000);
        assert_eq!(usd_to_nanos(f64::INFINITY), 1_000_000_000_000_000);
    }
}
