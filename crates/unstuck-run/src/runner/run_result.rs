//! The result of a run.

use serde::Serialize;
use unstuck_core::RunId;
use unstuck_core::event::{AttemptEnd, EventRecord, RunFinished};

use crate::process::ChildExitStatus;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The run.
    pub run: RunId,
    /// The final event of the run.
    pub end: RunFinished,
    /// The exit of the newest attempt's process; `None` for a pipeline or if no process ran.
    pub child: Option<AttemptProcessExit>,
    /// Events that could not be stored because the disk was still full at the end.
    pub unrecorded: Vec<EventRecord>,
}

/// The exit of an attempt's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AttemptProcessExit {
    /// Its exit code, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// Number of the signal that ended it.
    pub signal: Option<i32>,
}

impl From<&ChildExitStatus> for AttemptProcessExit {
    fn from(status: &ChildExitStatus) -> Self {
        let signal = match status {
            ChildExitStatus::Signaled(signal) => Some(*signal),
            _ => None,
        };
        Self {
            exit_code: signal.is_none().then(|| status.code()),
            signal,
        }
    }
}

impl From<&AttemptEnd> for AttemptProcessExit {
    fn from(end: &AttemptEnd) -> Self {
        Self {
            exit_code: end.exit_code,
            signal: end.signal,
        }
    }
}
