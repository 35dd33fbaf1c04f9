//! What can be asked about failures: what they say together, from counts alone, and one by one.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use unstuck_core::event::{RunId, SessionId};
use unstuck_core::{Kind, Timestamp};

use crate::query::InvalidCursor;

/// A question about failures; all that is left out does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureQuery {
    /// From the hour of this moment on.
    pub since: Option<Timestamp>,
    /// Before the hour of this moment.
    pub until: Option<Timestamp>,
    /// Only this project.
    pub project: Option<String>,
    /// Only this model.
    pub model: Option<String>,
    /// Only this kind; the attempts that the rate is told of are all.
    pub kind: Option<Kind>,
    /// So many messages and prompts at most; 10 unless told.
    pub top: Option<usize>,
}

/// One failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureRow {
    /// When.
    pub at: Timestamp,
    /// The run.
    pub run: RunId,
    /// The session.
    pub session: SessionId,
    /// The number of the attempt in its session; of a call, how often an upstream was asked.
    pub attempt: u32,
    /// The call of an LLM API, where one failed of a session that nobody drives.
    pub call: Option<String>,
    /// The root folder of the project; empty where there is none.
    pub project: String,
    /// The model, as far as it is known.
    pub model: Option<String>,
    /// What it was found to be.
    pub kind: Kind,
    /// Recognises the same failure again.
    pub fingerprint: String,
    /// What was said, with what varies masked.
    pub message: String,
}

/// Failures, and where the next ones are to be looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct FailurePage {
    /// The failures, the newest first.
    pub failures: Vec<FailureRow>,
    /// Where it goes on; none at the end.
    pub next: Option<FailureCursor>,
}

/// A place in the list of failures; it stays where it is while new ones come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCursor {
    pub(crate) at: i64,
    pub(crate) source: FailureSource,
    pub(crate) id: i64,
}

/// Where a failure is kept. Of two at the same moment, that of an attempt comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureSource {
    Attempt,
    Call,
}

impl FailureCursor {
    /// What comes after it among those of one source: whose moment and id together are below these.
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
    fn a_cursor_is_read_back_as_it_was_written() {
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
