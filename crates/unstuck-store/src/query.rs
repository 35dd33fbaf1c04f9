//! What can be asked for: runs and events.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use unstuck_core::event::{EventRecord, RunId, SessionId};
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_core::{Kind, Timestamp};

/// Which runs are asked for; all that is left out does not matter. The newest come first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The first letters of their ids.
    pub prefix: Option<String>,
    /// The root folder of their project.
    pub project: Option<String>,
    /// Where they stand: one of these, or anywhere if there are none.
    pub status: Vec<RunStatus>,
    /// The runs that a process supervises at present; others that should continue are [crashed](Status::Crashed).
    ///
    /// None if that does not matter: then no run is crashed.
    pub alive: Option<Vec<RunId>>,
    /// The kind of their newest failure.
    pub kind: Option<Kind>,
    /// They began then or later.
    pub since: Option<Timestamp>,
    /// They began before.
    pub until: Option<Timestamp>,
    /// They come after this place in the list.
    pub after: Option<RunCursor>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// A place in the list of runs; it stays where it is while new ones begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    pub(crate) started: i64,
    pub(crate) id: String,
}

impl RunCursor {
    /// The place of that run.
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

/// A text that is no place in a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no place in this list; use what the page before gave")]
pub struct InvalidCursor(String);

impl InvalidCursor {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.chars().take(60).collect())
    }
}

/// Runs, and where the next ones are to be looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    /// The runs, the newest first.
    pub runs: Vec<RunSummary>,
    /// Where it goes on; none at the end.
    pub next: Option<RunCursor>,
}

/// A place in the log of all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogOffset(pub(crate) i64);

impl LogOffset {
    /// The place of this number, as [`to_sql_integer`](Self::number) told it.
    pub const fn new(number: u64) -> Self {
        // A number that no store can hold is after everything.
        Self(if number > i64::MAX as u64 {
            i64::MAX
        } else {
            number as i64
        })
    }

    /// Its number; later events have higher ones.
    pub const fn number(self) -> u64 {
        self.0 as u64
    }
}

/// An event and its place in the log of all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// Its place.
    pub offset: LogOffset,
    /// What happened.
    pub record: Arc<EventRecord>,
}

/// Which end of the log comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// As they were written.
    #[default]
    OldestFirst,
    /// The newest first.
    NewestFirst,
}

/// Which events are asked for; all that is left out does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Their run.
    pub run: Option<RunId>,
    /// Their session.
    pub session: Option<SessionId>,
    /// The root folder of their project.
    pub project: Option<String>,
    /// The kind of failure that they are about.
    pub kind: Option<Kind>,
    /// Their names: one of these, or any if there are none.
    pub names: Vec<String>,
    /// They were written after this place.
    pub after: Option<LogOffset>,
    /// They were written before this place.
    pub before: Option<LogOffset>,
    /// They happened then or later.
    pub since: Option<Timestamp>,
    /// They happened before.
    pub until: Option<Timestamp>,
    /// Which come first.
    pub order: EventOrder,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Events, and where the next ones are to be looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events.
    pub events: Vec<EventRecord>,
    /// The place of the newest of them; that of the filter if there are none.
    pub last: LogOffset,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_as_it_was_written() {
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
