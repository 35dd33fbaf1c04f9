//! What is counted, by the hour: a pure function from one event to the lines that it adds to.
//!
//! Four things are counted, told apart by their outcome:
//! - each attempt that ended: `succeeded`, `failed` or `interrupted`;
//! - each attempt that answered a failure: `helped`, if it succeeded or failed in another way, or `did_not_help`;
//! - each session that did what it should after it had failed: `recovered`, with the time since its first failure;
//! - each run that ended or stopped: `run_` and how.

use std::collections::HashMap;

use unstuck_core::duration::in_millis;
use unstuck_core::episode::RunView;
use unstuck_core::event::{Answering, AttemptEnd, Event, Recorded, RunFinished, SessionId};
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
pub(crate) const OF_ATTEMPTS: &[&str] = &[SUCCEEDED, FAILED, INTERRUPTED];
/// What answers to failures can come to.
pub(crate) const OF_ANSWERS: &[&str] = &[HELPED, DID_NOT_HELP];
/// What sessions that failed before can come to.
pub(crate) const OF_RECOVERIES: &[&str] = &[RECOVERED];

const HOUR_MS: i64 = 3_600_000;

/// Sums of a store's whole life stay far below what 64 bits hold if no single value is longer than a century.
const LONGEST_MS: u64 = 100 * 366 * 86_400_000;

/// And none dearer than this, in USD.
const DEAREST: f64 = 1e6;

/// What is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
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
pub struct Line {
    /// Where it counts.
    pub key: Key,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it cost, in billionths of a USD; whole numbers, so that sums do not depend on their order.
    pub cost_nanos: i64,
}

/// What was counted under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell {
    /// How many.
    pub count: u64,
    /// How long they took together, in milliseconds.
    pub duration_ms: u64,
    /// What they cost together, in billionths of a USD.
    pub cost_nanos: i64,
    /// How many took how long; see [`BOUNDS_MS`].
    pub histogram: [u64; BUCKETS],
}

impl Cell {
    /// Counts one more.
    pub fn add(&mut self, line: &Line) {
        self.count += 1;
        self.duration_ms = self.duration_ms.saturating_add(line.duration_ms);
        self.cost_nanos = self.cost_nanos.saturating_add(line.cost_nanos);
        self.histogram[bucket(line.duration_ms)] += 1;
    }
}

/// The bucket that a duration falls into.
pub fn bucket(duration_ms: u64) -> usize {
    BOUNDS_MS.partition_point(|bound| *bound <= duration_ms)
}

/// The hour that a moment is in.
pub fn hour(at: Timestamp) -> i64 {
    at.millis().div_euclid(HOUR_MS)
}

/// The beginning of an hour.
pub fn beginning(hour: i64) -> Timestamp {
    Timestamp::from_millis(hour.saturating_mul(HOUR_MS))
}

/// The session that does what it should by this event after it had failed.
pub fn recovers(event: &Event) -> Option<&SessionId> {
    match event {
        Event::AttemptSucceeded(attempt) => {
            let end = &attempt.end;
            end.answering.as_ref().map(|_| &end.session)
        }
        _ => None,
    }
}

/// Since when sessions of a run have been failing, as its events tell.
#[derive(Debug, Default)]
pub(crate) struct Failing(HashMap<SessionId, Timestamp>);

impl Failing {
    /// Takes in the next event; tells since when its session had been failing, if it ends that.
    pub(crate) fn record(&mut self, recorded: &Recorded) -> Option<Timestamp> {
        match &recorded.event {
            Event::AttemptFailed(attempt) => {
                let session = attempt.end.session.clone();
                self.0.entry(session).or_insert(recorded.at);
                None
            }
            Event::AttemptSucceeded(attempt) => {
                let since = self.0.remove(&attempt.end.session);
                since.filter(|_| recovers(&recorded.event).is_some())
            }
            _ => None,
        }
    }
}

/// The lines that an event adds to, given its run as it stands after the event, and since when its session has been
/// failing if it [ends](recovers) that.
pub fn lines(
    recorded: &Recorded,
    view: Option<&RunView>,
    failing_since: Option<Timestamp>,
) -> Vec<Line> {
    let here = Here { recorded, view };
    let mut lines = here.lines();
    lines.extend(failing_since.and_then(|since| here.recovered(since)));
    lines
}

/// What an event says that something cost, in billionths of a USD.
pub(crate) fn cost_nanos(event: &Event) -> i64 {
    let used = match event {
        Event::AttemptSucceeded(attempt) => &attempt.end.used,
        Event::AttemptFailed(attempt) => &attempt.end.used,
        _ => return 0,
    };
    nanos(used.cost_usd.unwrap_or(0.0))
}

/// The event that is counted, and its run.
struct Here<'a> {
    recorded: &'a Recorded,
    view: Option<&'a RunView>,
}

/// What is counted about it.
struct Counting<'a> {
    kind: Kind,
    outcome: &'a str,
    strategy: &'a str,
    model: Option<&'a String>,
    duration_ms: u64,
    cost_usd: f64,
}

impl<'a> Counting<'a> {
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

    fn attempt(kind: Kind, outcome: &'a str, end: &'a AttemptEnd) -> Self {
        Self {
            model: end.model.as_ref(),
            duration_ms: end.duration_ms,
            cost_usd: end.used.cost_usd.unwrap_or(0.0),
            ..Self::new(kind, outcome)
        }
    }
}

impl Here<'_> {
    fn lines(&self) -> Vec<Line> {
        match &self.recorded.event {
            Event::AttemptSucceeded(attempt) => self.ended(&attempt.end, None),
            Event::AttemptFailed(attempt) => self.ended(&attempt.end, Some(attempt.diagnosis.kind)),
            Event::AttemptInterrupted(_) => vec![self.line(Counting::new(Kind::None, INTERRUPTED))],
            Event::RunFinished(end) => vec![self.finished(end)],
            _ => Vec::new(),
        }
    }

    fn recovered(&self, since: Timestamp) -> Option<Line> {
        let Event::AttemptSucceeded(attempt) = &self.recorded.event else {
            return None;
        };
        let answering = attempt.end.answering.as_ref()?;
        let took = self.recorded.at.since(since);
        Some(self.line(Counting {
            strategy: strategy(answering),
            model: attempt.end.model.as_ref(),
            duration_ms: in_millis(took),
            ..Counting::new(answering.kind, RECOVERED)
        }))
    }

    fn ended(&self, end: &AttemptEnd, failure: Option<Kind>) -> Vec<Line> {
        let outcome = if failure.is_some() { FAILED } else { SUCCEEDED };
        let kind = failure.unwrap_or(Kind::None);
        let attempt = self.line(Counting::attempt(kind, outcome, end));
        let answer = end.answering.as_ref().map(|answering| {
            self.line(Counting {
                strategy: strategy(answering),
                ..Counting::attempt(answering.kind, helped(answering, failure), end)
            })
        });
        std::iter::once(attempt).chain(answer).collect()
    }

    fn finished(&self, end: &RunFinished) -> Line {
        let kind = self.view.and_then(|view| view.kind).unwrap_or(Kind::None);
        self.line(Counting {
            duration_ms: end.duration_ms,
            cost_usd: end.cost_usd.unwrap_or(0.0),
            ..Counting::new(kind, &format!("run_{}", end.outcome))
        })
    }

    fn line(&self, counting: Counting<'_>) -> Line {
        let known_model = || self.view.and_then(|view| view.model.as_ref());
        let model = counting.model.or_else(known_model);
        Line {
            key: Key {
                hour: hour(self.recorded.at),
                project: self
                    .view
                    .map(|view| view.project.clone())
                    .unwrap_or_default(),
                kind: counting.kind.name(),
                model: model.cloned().unwrap_or_default(),
                strategy: counting.strategy.to_owned(),
                outcome: counting.outcome.to_owned(),
            },
            duration_ms: counting.duration_ms.min(LONGEST_MS),
            cost_nanos: nanos(counting.cost_usd),
        }
    }
}

/// The level of an answer that was counted under this strategy: only those of the second level have one of a chain.
pub(crate) fn level(strategy: &str) -> &'static str {
    let others = [Level::Same, Level::Clarify, Level::Escalate];
    let known = others.into_iter().find(|level| level.name() == strategy);
    known.unwrap_or(Level::Alternative).name()
}

fn strategy(answering: &Answering) -> &str {
    let level = answering.level.name();
    answering.strategy.as_deref().unwrap_or(level)
}

fn helped(answering: &Answering, failure: Option<Kind>) -> &'static str {
    if failure == Some(answering.kind) {
        DID_NOT_HELP
    } else {
        HELPED
    }
}

/// An amount in whole billionths; nothing if it is not a number.
pub(crate) fn nanos(usd: f64) -> i64 {
    (usd.clamp(-DEAREST, DEAREST) * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_at_their_bound() {
        assert_eq!([0, 99, 100, 299, 300].map(bucket), [0, 0, 1, 1, 2]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn hours_before_the_epoch_are_hours_too() {
        assert_eq!(hour(Timestamp::from_millis(-1)), -1);
        assert_eq!(
            beginning(hour(Timestamp::from_millis(7_199_999))).millis(),
            HOUR_MS
        );
    }

    #[test]
    fn an_amount_that_is_no_number_costs_nothing() {
        assert_eq!(nanos(f64::NAN), 0);
        assert_eq!(nanos(0.25), 250_000_000);
        assert_eq!(nanos(f64::INFINITY), 1_000_000_000_000_000);
    }
}
