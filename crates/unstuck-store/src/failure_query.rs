//! Failure queries: aggregates from counts, and single failures.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use unstuck_core::event::{RunId, SessionId};
use unstuck_core::{FailureKind, Timestamp};

use crate::query::InvalidCursor;

/// A filter for failures; unset fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureQuery {
    /// The earliest hour.
    pub since: Option<Timestamp>,
    /// The latest hour, exclusive.
    pub until: Option<Timestamp>,
    /// The project root.
    pub project: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The failure kind; the failure rate still refers to all attempts.
    pub kind: Option<FailureKind>,
    /// The maximum number of messages and prompts; 10 by default.
    pub top: Option<usize>,
}

/// A single failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureRow {
    /// The time of the failure.
    pub at: Timestamp,
    /// The run.
    pub run: RunId,
    /// The session.
    pub session: SessionId,
    /// The attempt number within the session; for calls, the number of API attempts.
    pub attempt: u32,
    /// The id of the failed API call, for unsupervised sessions.
    pub call: Option<String>,
    /// The project root; empty if there is none.
    pub project: String,
    /// The model, if known.
    pub model: Option<String>,
    /// The failure kind.
    pub kind: FailureKind,
    /// The fingerprint that identifies the same failure.
    pub fingerprint: String,
    /// The error message, with variable parts masked.
    pub message: String,
}

/// A page of failures.
#[derive(Debug, Clone, PartialEq)]
pub struct FailurePage {
    /// The failures, newest first.
    pub failures: Vec<FailureRow>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<FailureCursor>,
}

/// A position in the failure list; it stays valid while new failures are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCursor {
    pub(crate) at: i64,
    pub(crate) source: FailureSource,
    pub(crate) id: i64,
}

/// The table a failure comes from. At equal timestamps attempts come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureSource {
    Attempt,
    Call,
}

impl FailureCursor {
    /// Returns the exclusive upper bound, timestamp and id, of the later entries from one source.
    pub(crate) fn upper_bound(&self, source: FailureSource) -> (i64, i64) {
        match source.cmp(&self.source) {
            std::cmp::Ordering::Less => (self.at, i64::MIN),
            std::cmp::Ordering::Equal => (self.at, self.id),
            std::cmp::Ordering::Greater => (self.at, i64::MAX),
        }
    }
}

impl fmt::Display for FailureCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            FailureSource::Attempt => 'a',
            FailureSource::Call => 'c',
        };
        write!(f, "{}{source}{}", self.at, self.id)
    }
}

impl FromStr for FailureCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let wrong = || InvalidCursor::new(text);
        let place = text.find(['a', 'c']).ok_or_else(wrong)?;
        let number = |text: &str| text.parse().map_err(|_| wrong());
        Ok(Self {
            at: number(&text[..place])?,
            source: match text.as_bytes().get(place) {
                Some(b'a') => FailureSource::Attempt,
                _ => FailureSource::Call,
            },
            id: number(&text[place + 1..])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_through_text() {
        let cursor = FailureCursor {
            at: -5,
            source: FailureSource::Call,
            id: 17,
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "a", "5a", "5b6", "a5", "5a6a", "99999999999999999999a1"] {
            assert!(wrong.parse::<FailureCursor>().is_err(), "{wrong}");
        }
    }
}
