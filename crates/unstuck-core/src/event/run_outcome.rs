//! The outcomes of runs and sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::failure::RecoveryLevel;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The first attempt succeeded.
    Succeeded,
    /// It succeeded after a failure.
    Recovered,
    /// It failed without further retries: the policy is off, or the agent has to fix its own work.
    Failed,
    /// It waits for a human's answer.
    AwaitingHuman,
    /// A human stopped it.
    Interrupted,
}

impl RunOutcome {
    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::AwaitingHuman => "awaiting_human",
            Self::Interrupted => "interrupted",
        }
    }

    /// True if the work was done.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::Recovered)
    }

    /// True if the run can be resumed.
    pub const fn is_resumable(self) -> bool {
        matches!(self, Self::AwaitingHuman | Self::Interrupted)
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A run finished or stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// The outcome.
    pub outcome: RunOutcome,
    /// The exit code returned to the caller.
    pub exit_code: i32,
    /// The reason, in one sentence.
    pub reason: String,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of retries that were decided on.
    pub retry_count: u32,
    /// The highest recovery level reached.
    #[serde(default)]
    pub recovery_level: Option<RecoveryLevel>,
    /// The known cost in USD; null if none of it is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The duration in milliseconds, including waits.
    pub duration_ms: u64,
}
