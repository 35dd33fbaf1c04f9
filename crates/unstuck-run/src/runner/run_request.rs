//! The request of a run, and the options that are stored so that it can be resumed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::RetryPolicy;
use unstuck_core::decision::SessionLimits;

use crate::answer_expectations::AnswerExpectations;
use crate::process::StreamWiring;

/// The request to run a command.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The command line; the first word is the program.
    pub command: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The root directory of the project.
    pub project: PathBuf,
    /// Id of the agent, if the command line does not show it.
    pub agent: Option<String>,
    /// The retry policy.
    pub policy: RetryPolicy,
    /// Sources of the policy's values.
    pub origins: BTreeMap<String, String>,
    /// Timeout of one attempt.
    pub timeout: Option<Duration>,
    /// Longest time without output in one attempt.
    pub idle_timeout: Option<Duration>,
    /// Further options of each attempt.
    pub options: RunAttemptOptions,
}

/// The options of every attempt of a run, as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunAttemptOptions {
    /// The expectations of the output.
    pub expect: AnswerExpectations,
    /// A check command that must pass afterwards.
    pub check: Option<String>,
    /// True if the child gets a terminal of its own.
    pub tty: bool,
    /// Grace period between the termination request and the kill, in milliseconds.
    pub grace_ms: u64,
    /// Largest number of executions, including the first.
    pub max_attempts: u32,
    /// True if the process keeps waiting for human input.
    pub wait: bool,
    /// The requested repair mode.
    pub repair: RequestedRepairMode,
    /// True if no gateway may be attached.
    pub no_gateway: bool,
    /// The file that gets the accepted answer, as an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// True if a snapshot is kept around each attempt in a git work tree.
    #[serde(skip_serializing_if = "is_false")]
    pub snapshots: bool,
    /// True if the changes of a failed attempt are undone.
    #[serde(skip_serializing_if = "is_false")]
    pub rollback: bool,
    /// True if a human works with it at a terminal: then only the exit code decides and nothing is retried.
    #[serde(skip_serializing_if = "is_false")]
    pub interactive: bool,
    /// True if another unstuck runs this one and retries it.
    #[serde(skip_serializing_if = "is_false")]
    pub nested: bool,
    /// Arguments with bytes that are not UTF-8, escaped by [`escape`](super::escape).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escaped: Vec<String>,
    /// True if it continues with rare probes after the time without progress, before it escalates.
    #[serde(skip_serializing_if = "is_false")]
    #[serde(alias = "parks")]
    pub parks_when_stalled: bool,
    /// Hash of the accepted project settings; `None` in a log of an older version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_settings: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A requested repair mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedRepairMode {
    /// As configured, if the configuration has a section about repairs.
    #[default]
    Configured,
    /// Repairs that the owner allows run automatically.
    Auto,
    /// Every repair needs approval.
    Ask,
    /// No repairs.
    Off,
}

impl Default for RunAttemptOptions {
    fn default() -> Self {
        Self {
            expect: AnswerExpectations::default(),
            check: None,
            tty: false,
            grace_ms: 5000,
            max_attempts: SessionLimits::default().attempts,
            wait: false,
            repair: RequestedRepairMode::default(),
            no_gateway: false,
            output: None,
            snapshots: false,
            rollback: false,
            interactive: false,
            nested: false,
            escaped: Vec::new(),
            parks_when_stalled: false,
            project_settings: None,
        }
    }
}

impl RunAttemptOptions {
    /// Returns the grace period between the termination request and the kill.
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// Returns how the streams of a child are connected.
    pub fn wiring(&self) -> StreamWiring {
        if self.tty {
            StreamWiring::Pty
        } else {
            StreamWiring::Pipes
        }
    }

    pub(super) fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            attempts: self.max_attempts,
            ..SessionLimits::default()
        }
    }
}
