//! Filters and pages for runs and events.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use unstuck_core::event::{EventRecord, RunId, SessionId};
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_core::{FailureKind, Timestamp};

/// A filter for runs, newest first; unset fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The id prefix.
    pub prefix: Option<String>,
    /// The project root.
    pub project: Option<String>,
    /// The accepted statuses; empty means any.
    pub status: Vec<RunStatus>,
    /// The runs a process currently supervises; others that should be running are [crashed](RunStatus::Crashed).
    ///
    /// `None` disables the check: then no run is reported as crashed.
    pub alive: Option<Vec<RunId>>,
    /// The kind of the newest failure.
    pub kind: Option<FailureKind>,
    /// The earliest start time.
    pub since: Option<Timestamp>,
    /// The latest start time, exclusive.
    pub until: Option<Timestamp>,
    /// The position after which the results start.
    pub after: Option<RunCursor>,
    /// The maximum number of results.
    pub limit: Option<usize>,
}

/// A position in the run list; it stays valid while new runs start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    pub(crate) started: i64,
    pub(crate) id: String,
}

impl RunCursor {
    /// Returns the position of that run.
    pub fn at_run(run: &RunSummary) -> Self {
        Self {
            started: run.started.millis(),
            id: run.id.as_str().to_owned(),
        }
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.started, self.id)
    }
}

impl FromStr for RunCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let parts = text.split_once('.');
        let read = parts.and_then(|(started, id)| {
            Some(Self {
                started: started.parse().ok()?,
                id: id.to_owned(),
            })
        });
        read.ok_or_else(|| InvalidCursor::new(text))
    }
}

/// An invalid cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor `{0}`; use the cursor from the previous page")]
pub struct InvalidCursor(String);

impl InvalidCursor {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.chars().take(60).collect())
    }
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunSummary>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<RunCursor>,
}

/// A position in the log of all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventLogOffset(pub(crate) i64);

impl EventLogOffset {
    /// Returns the offset with this [number](Self::number).
    pub const fn new(number: u64) -> Self {
        // A number beyond the range of the store sorts after everything.
        Self(if number > i64::MAX as u64 {
            i64::MAX
        } else {
            number as i64
        })
    }

    /// Returns the number; later events have higher ones.
    pub const fn number(self) -> u64 {
        self.0 as u64
    }
}

/// An event and its log offset.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLogEntry {
    /// The offset.
    pub offset: EventLogOffset,
    /// The event.
    pub record: Arc<EventRecord>,
}

/// The sort order of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// Oldest first.
    #[default]
    OldestFirst,
    /// Newest first.
    NewestFirst,
}

/// A filter for events; unset fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// The run.
    pub run: Option<RunId>,
    /// The session.
    pub session: Option<SessionId>,
    /// The project root.
    pub project: Option<String>,
    /// The failure kind.
    pub kind: Option<FailureKind>,
    /// The accepted event names; empty means any.
    pub names: Vec<String>,
    /// The offset after which the results start.
    pub after: Option<EventLogOffset>,
    /// The offset before which the results end.
    pub before: Option<EventLogOffset>,
    /// The earliest time.
    pub since: Option<Timestamp>,
    /// The latest time, exclusive.
    pub until: Option<Timestamp>,
    /// The sort order.
    pub order: EventOrder,
    /// The maximum number of results.
    pub limit: Option<usize>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events.
    pub events: Vec<EventRecord>,
    /// The offset of the newest event; that of the filter if the page is empty.
    pub last: EventLogOffset,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_through_text() {
        let cursor = RunCursor {
            started: -5,
            id: "a.b".into(),
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "5", "x.y", "9999999999999999999999.a"] {
            assert!(wrong.parse::<RunCursor>().is_err(), "{wrong}");
        }
    }
}
