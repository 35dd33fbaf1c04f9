//! The result of an attempt's process.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::os_processes::ChildExitStatus;

use super::capture::CapturedOutput;

/// The time limit that an attempt reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReachedTimeLimit {
    /// The whole attempt took too long.
    Timeout,
    /// There was no output for too long.
    IdleTimeout,
}

/// The exit and output of an attempt's process.
#[derive(Debug, Clone)]
pub struct ProcessResult {
    /// The exit status of the child.
    pub status: ChildExitStatus,
    /// The limit for which it was stopped.
    pub timed_out: Option<ReachedTimeLimit>,
    /// True if it was stopped from outside.
    pub was_stopped: bool,
    /// True if the user interrupted it at the terminal that it owned, even if it ignored that.
    pub was_interrupted: bool,
    /// Duration from the start until none of its processes was left.
    pub duration: Duration,
    /// Its standard output.
    pub stdout: CapturedOutput,
    /// Its standard error.
    pub stderr: CapturedOutput,
    /// Number of leftover processes that had to be ended.
    pub leftover_count: u32,
    /// Number of leftover processes that could not be ended because they belong to another user or hang in the kernel.
    pub survivor_count: u32,
}
