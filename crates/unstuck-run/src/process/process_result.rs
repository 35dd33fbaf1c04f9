//! How an attempt ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::procs::ChildStatus;

use super::capture::CapturedOutput;

/// A limit that an attempt ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    /// The whole attempt took too long.
    Timeout,
    /// It wrote nothing for too long.
    IdleTimeout,
}

/// How an attempt ended and what it wrote.
#[derive(Debug, Clone)]
pub struct ProcessResult {
    /// How the child ended.
    pub status: ChildStatus,
    /// The limit for which it was stopped.
    pub timed_out: Option<TimeLimit>,
    /// Whether it was stopped from outside.
    pub was_stopped: bool,
    /// Whether the person interrupted it at the terminal that it held, whatever it made of that.
    pub was_interrupted: bool,
    /// From the start to the moment when nothing of it was left.
    pub duration: Duration,
    /// What it wrote to standard output.
    pub stdout: CapturedOutput,
    /// What it wrote to standard error.
    pub stderr: CapturedOutput,
    /// How many processes it left behind that had to be ended.
    pub leftover_count: u32,
    /// How many of those could not be ended, because they belong to another user or hang in the kernel.
    pub survivor_count: u32,
}
