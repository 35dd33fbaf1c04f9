//! What is to be run, and what about it is stored so that it can be taken up again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::RetryPolicy;
use unstuck_core::decision::SessionLimits;

use crate::expectations::Expectations;
use crate::process::StreamWiring;

/// What is to be run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The command line; the first word is the program.
    pub command: Vec<String>,
    /// The folder to work in.
    pub cwd: PathBuf,
    /// The root folder of the project.
    pub project: PathBuf,
    /// The agent that it is, where the command line does not tell.
    pub agent: Option<String>,
    /// How far to go.
    pub policy: RetryPolicy,
    /// Where the values of the policy come from.
    pub origins: BTreeMap<String, String>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long one attempt may be silent.
    pub idle_timeout: Option<Duration>,
    /// What else counts.
    pub options: AttemptOptions,
}

/// What counts for every attempt of a run, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptOptions {
    /// What the output must be like.
    pub expect: Expectations,
    /// A command that must pass afterwards.
    pub check: Option<String>,
    /// Whether the child gets a terminal of its own.
    pub tty: bool,
    /// How long a child has between the request to end and its end, in milliseconds.
    pub grace_ms: u64,
    /// How often it may be executed, the first try included.
    pub max_attempts: u32,
    /// Whether the process stays when a person is needed.
    pub wait: bool,
    /// Whether the environment is repaired.
    pub repair: RequestedRepairMode,
    /// Whether nobody may stand between the agent and its API.
    pub no_gateway: bool,
    /// The file that gets the accepted answer, as an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether the changes of each attempt are kept, where it works in a git work tree.
    #[serde(skip_serializing_if = "is_false")]
    pub snapshots: bool,
    /// Whether what a failed attempt changed is undone.
    #[serde(skip_serializing_if = "is_false")]
    pub rollback: bool,
    /// Whether a person works with it at a terminal: then its exit code alone says how it went, and nothing is retried.
    #[serde(skip_serializing_if = "is_false")]
    pub interactive: bool,
    /// Whether another unstuck runs this one and retries it.
    #[serde(skip_serializing_if = "is_false")]
    pub nested: bool,
    /// The words of the command line that stand for bytes that are no UTF-8, as [`escape`](super::escape) writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escaped: Vec<String>,
    /// Whether it goes on with rare probes when the time without progress is over, before a person is asked.
    #[serde(skip_serializing_if = "is_false")]
    #[serde(rename = "parks")]
    pub parks_when_stalled: bool,
    /// The hash of what it goes by of the project's own files; none in a log of an older version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_settings: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Whether the environment is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedRepairMode {
    /// As the configuration says: where it says something about repairs.
    #[default]
    Configured,
    /// What the owner allows runs by itself.
    Auto,
    /// A person is asked about each.
    Ask,
    /// Nothing is repaired.
    Off,
}

impl Default for AttemptOptions {
    fn default() -> Self {
        Self {
            expect: Expectations::default(),
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

impl AttemptOptions {
    /// How long a child has between the request to end and its end.
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// How the streams of a child are connected.
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
