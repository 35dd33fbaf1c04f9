//! How a run ended, for whoever started it.

use serde::Serialize;
use unstuck_core::RunId;
use unstuck_core::event::{AttemptEnd, EventRecord, RunFinished};

use crate::process::ChildStatus;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub end: RunFinished,
    /// How the newest attempt's own process ended; none for a pipeline, and where no process ran.
    pub child: Option<ChildExit>,
    /// What the store could not take, since its disk was still full at the end.
    pub unrecorded: Vec<EventRecord>,
}

/// How the process of an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChildExit {
    /// Its exit code, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
}

impl From<&ChildStatus> for ChildExit {
    fn from(status: &ChildStatus) -> Self {
        let signal = match status {
            ChildStatus::Signaled(signal) => Some(*signal),
            _ => None,
        };
        Self {
            exit_code: signal.is_none().then(|| status.code()),
            signal,
        }
    }
}

impl From<&AttemptEnd> for ChildExit {
    fn from(end: &AttemptEnd) -> Self {
        Self {
            exit_code: end.exit_code,
            signal: end.signal,
        }
    }
}
