//! How an attempt ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::Status;

use super::captured::Captured;

/// A limit that an attempt ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The whole attempt took too long.
    Timeout,
    /// It wrote nothing for too long.
    IdleTimeout,
}

/// How an attempt ended and what it wrote.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How the child ended.
    pub status: Status,
    /// The limit for which it was stopped.
    pub timed_out: Option<Limit>,
    /// Whether it was stopped from outside.
    pub stopped: bool,
    /// Whether the person interrupted it at the terminal that it held, whatever it made of that.
    pub interrupted: bool,
    /// From the start to the moment when nothing of it was left.
    pub duration: Duration,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// How many processes it left behind that had to be ended.
    pub left: u32,
    /// How many of those could not be ended, because they belong to another user or hang in the kernel.
    pub survivors: u32,
}
