//! How a run or a session came to its end.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::failure::Level;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// It did what it should at the first try.
    Succeeded,
    /// It did what it should after something had failed.
    Recovered,
    /// It failed, and that was passed on: the policy is off, or the failure is the agent's own to work on.
    Failed,
    /// A person has been asked, and nothing goes on without them.
    AwaitingHuman,
    /// A person stopped it.
    Interrupted,
}

impl RunOutcome {
    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::AwaitingHuman => "awaiting_human",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the work was done.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::Recovered)
    }

    /// Whether there is something left to take up again.
    pub const fn is_resumable(self) -> bool {
        matches!(self, Self::AwaitingHuman | Self::Interrupted)
    }
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a run came to its end, or to a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// How it ended.
    pub outcome: RunOutcome,
    /// The exit code that the caller got.
    pub exit_code: i32,
    /// Why, in one sentence.
    pub reason: String,
    /// How many attempts there were.
    pub attempts: u32,
    /// How many of them were retries that had been decided on.
    pub retry_count: u32,
    /// The highest level that was reached.
    #[serde(default)]
    pub recovery_level: Option<Level>,
    /// What it cost, in USD, as far as is known; null where nothing of it is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// How long it took, waits included, in milliseconds.
    pub duration_ms: u64,
}
