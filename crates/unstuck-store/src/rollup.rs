//! What is counted, by the hour: a pure function from one event to the lines that it adds to.
//!
//! Four things are counted, told apart by their outcome:
//! - each attempt that ended: `succeeded`, `to_store_error` or `interrupted`;
//! - each attempt that answered a failure: `answer_outcome`, if it succeeded or failed in another way, or `did_not_help`;
//! - each session that did what it should after it had failed: `recovered_at`, with the time since its first failure;
//! - each run that ended or stopped: `run_` and how.

use std::collections::HashMap;

use unstuck_core::duration::to_millis;
use unstuck_core::event::{AttemptCause, AttemptEnd, Event, EventRecord, RunFinished, SessionId};
use unstuck_core::views::RunSummary;
use unstuck_core::{Kind, Level, Timestamp};

/// How many buckets the histogram of durations has.
pub const BUCKETS: usize = 12;

/// The upper bounds of the buckets, in milliseconds; the last bucket has none.
pub const BOUNDS_MS: [u64; BUCKETS - 1] = [
    100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];

/// The answer helped.
pub const HELPED: &str = "helped";
/// The same failure came again.
pub const DID_NOT_HELP: &str = "did_not_help";

/// A session did what it should after it had failed.
pub const RECOVERED: &str = "recovered";

const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";
const INTERRUPTED: &str = "interrupted";

/// What attempts can come to.
pub(crate) const ATTEMPT_OUTCOMES: &[&str] = &[SUCCEEDED, FAILED, INTERRUPTED];
/// What answers to failures can come to.
pub(crate) const ANSWER_OUTCOMES: &[&str] = &[HELPED, DID_NOT_HELP];
/// What sessions that failed before can come to.
pub(crate) const RECOVERY_OUTCOMES: &[&str] = &[RECOVERED];

const HOUR_MS: i64 = 3_600_000;

/// Sums of a store's whole life stay far below what 64 bits hold if no single value is longer than a century.
const MAX_DURATION_MS: u64 = 100 * 366 * 86_400_000;

/// And none dearer than this, in USD.
const MAX_COST_USD: f64 = 1e6;

/// What is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RollupKey {
    /// The hour, counted from the Unix epoch.
    pub hour: i64,
    /// The root folder of the project.
    pub project: String,
    /// The kind of failure; `none` where there was none.
    pub kind: &'static str,
    /// The model, or nothing.
    pub model: String,
    /// The strategy or level of the answer; nothing where no answer is counted.
    pub strategy: String,
    /// What came of it.
    pub outcome: String,
}

/// One thing to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupEntry {
    /// Where it counts.
    pub key: RollupKey,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it cost, in billionths of a USD; whole numbers, so that sums do not depend on their order.
    pub cost_nanos: i64,
}

/// What was counted under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RollupCell {
    /// How many.
    pub count: u64,
    /// How long they took together, in milliseconds.
    pub duration_ms: u64,
    /// What they cost together, in billionths of a USD.
    pub cost_nanos: i64,
    /// How many took how long; see [`BOUNDS_MS`].
    pub histogram: [u64; BUCKETS],
}

impl RollupCell {
    /// Counts one more.
    pub fn add(&mut self, line: &RollupEntry) {
        self.count += 1;
        self.duration_ms = self.duration_ms.saturating_add(line.duration_ms);
        self.cost_nanos = self.cost_nanos.saturating_add(line.cost_nanos);
        self.histogram[bucket_index(line.duration_ms)] += 1;
    }
}

/// The bucket that a duration falls into.
pub fn bucket_index(duration_ms: u64) -> usize {
    BOUNDS_MS.partition_point(|bound| *bound <= duration_ms)
}

/// The hour that a moment is in.
pub fn hour_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(HOUR_MS)
}

/// The beginning of an hour.
pub fn hour_start(hour: i64) -> Timestamp {
    Timestamp::from_millis(hour.saturating_mul(HOUR_MS))
}

/// The session that does what it should by this event after it had failed.
pub fn recovered_session(event: &Event) -> Option<&SessionId> {
    match event {
        Event::AttemptSucceeded(attempt) => {
            let end = &attempt.end;
            end.cause.as_ref().map(|_| &end.session)
        }
        _ => None,
    }
}

/// Since when sessions of a run have been failing, as its events tell.
#[derive(Debug, Default)]
pub(crate) struct FailingSessions(HashMap<SessionId, Timestamp>);

impl FailingSessions {
    /// Takes in the next event; tells since when its session had been failing, if it ends that.
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

/// The lines that an event adds to, given its run as it stands after the event, and since when its session has been
/// failing if it [ends](recovered_session) that.
pub fn rollup_entries(
    recorded: &EventRecord,
    view: Option<&RunSummary>,
    failing_since: Option<Timestamp>,
) -> Vec<RollupEntry> {
    let here = EventContext { recorded, view };
    let mut lines = here.entries();
    lines.extend(failing_since.and_then(|since| here.recovery_entry(since)));
    lines
}

/// What an event says that something cost, in billionths of a USD.
pub(crate) fn event_cost_nanos(event: &Event) -> i64 {
    let used = match event {
        Event::AttemptSucceeded(attempt) => &attempt.end.usage,
        Event::AttemptFailed(attempt) => &attempt.end.usage,
        _ => return 0,
    };
    usd_to_nanos(used.cost_usd.unwrap_or(0.0))
}

/// The event that is counted, and its run.
struct EventContext<'a> {
    recorded: &'a EventRecord,
    view: Option<&'a RunSummary>,
}

/// What is counted about it.
struct RollupContribution<'a> {
    kind: Kind,
    outcome: &'a str,
    strategy: &'a str,
    model: Option<&'a String>,
    duration_ms: u64,
    cost_usd: f64,
}

impl<'a> RollupContribution<'a> {
    fn new(kind: Kind, outcome: &'a str) -> Self {
        Self {
            kind,
            outcome,
            strategy: "",
            model: None,
            duration_ms: 0,
            cost_usd: 0.0,
        }
    }

    fn for_attempt(kind: Kind, outcome: &'a str, end: &'a AttemptEnd) -> Self {
        Self {
            model: end.model.as_ref(),
            duration_ms: end.duration_ms,
            cost_usd: end.usage.cost_usd.unwrap_or(0.0),
            ..Self::new(kind, outcome)
        }
    }
}

impl EventContext<'_> {
    fn entries(&self) -> Vec<RollupEntry> {
        match &self.recorded.event {
            Event::AttemptSucceeded(attempt) => self.attempt_entries(&attempt.end, None),
            Event::AttemptFailed(attempt) => {
                self.attempt_entries(&attempt.end, Some(attempt.diagnosis.kind))
            }
            Event::AttemptInterrupted(_) => {
                vec![self.entry(RollupContribution::new(Kind::None, INTERRUPTED))]
            }
            Event::RunFinished(end) => vec![self.run_entry(end)],
            _ => Vec::new(),
        }
    }

    fn recovery_entry(&self, since: Timestamp) -> Option<RollupEntry> {
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

    fn attempt_entries(&self, end: &AttemptEnd, failure: Option<Kind>) -> Vec<RollupEntry> {
        let outcome = if failure.is_some() { FAILED } else { SUCCEEDED };
        let kind = failure.unwrap_or(Kind::None);
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

    fn run_entry(&self, end: &RunFinished) -> RollupEntry {
        let kind = self.view.and_then(|view| view.kind).unwrap_or(Kind::None);
        self.entry(RollupContribution {
            duration_ms: end.duration_ms,
            cost_usd: end.cost_usd.unwrap_or(0.0),
            ..RollupContribution::new(kind, &format!("run_{}", end.outcome))
        })
    }

    fn entry(&self, counting: RollupContribution<'_>) -> RollupEntry {
        let known_model = || self.view.and_then(|view| view.model.as_ref());
        let model = counting.model.or_else(known_model);
        RollupEntry {
            key: RollupKey {
                hour: hour_of(self.recorded.at),
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

/// The level of an answer that was counted under this strategy: only those of the second level have one of a chain.
pub(crate) fn strategy_level(strategy: &str) -> &'static str {
    let others = [Level::Same, Level::Clarify, Level::Escalate];
    let known = others.into_iter().find(|level| level.name() == strategy);
    known.unwrap_or(Level::Alternative).name()
}

fn strategy_key(answering: &AttemptCause) -> &str {
    let level = answering.level.name();
    answering.strategy.as_deref().unwrap_or(level)
}

fn answer_outcome(answering: &AttemptCause, failure: Option<Kind>) -> &'static str {
    if failure == Some(answering.kind) {
        DID_NOT_HELP
    } else {
        HELPED
    }
}

/// An amount in whole billionths; nothing if it is not a number.
pub(crate) fn usd_to_nanos(usd: f64) -> i64 {
    (usd.clamp(-MAX_COST_USD, MAX_COST_USD) * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_at_their_bound() {
        assert_eq!([0, 99, 100, 299, 300].map(bucket_index), [0, 0, 1, 1, 2]);
        assert_eq!(bucket_index(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn hours_before_the_epoch_are_hours_too() {
        assert_eq!(hour_of(Timestamp::from_millis(-1)), -1);
        assert_eq!(
            hour_start(hour_of(Timestamp::from_millis(7_199_999))).millis(),
            HOUR_MS
        );
    }

    #[test]
    fn an_amount_that_is_no_number_costs_nothing() {
        assert_eq!(usd_to_nanos(f64::NAN), 0);
        assert_eq!(usd_to_nanos(0.25), 250_000_000);
        assert_eq!(usd_to_nanos(f64::INFINITY), 1_000_000_000_000_000);
    }
}
