//! `[run]`: the run as a whole.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{duration, number};

/// `[run]`: the run as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct RunSection {
    /// What is to be done; prompts name it as `{{ task }}`.
    pub task: Option<String>,
    /// How many roles may run side by side; 4 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub parallel: u32,
    /// Whether the changes of each attempt are kept, where the project is a git repository; true by default.
    pub snapshots: bool,
    /// What becomes of the changes of a failed attempt; they are kept by default.
    pub on_failed_attempt: OnFailedAttempt,
    /// Whether the machine is kept from falling asleep while something runs, where the system offers that; true by default.
    pub keep_awake: bool,
    /// How often a log is told that a wait goes on; every 5 minutes by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub heartbeat: Duration,
    /// Whether the run waits for a person's answer instead of ending with the question open; false by default.
    pub wait_for_human: bool,
}

impl Default for RunSection {
    fn default() -> Self {
        Self {
            task: None,
            parallel: 4,
            snapshots: true,
            on_failed_attempt: OnFailedAttempt::Keep,
            keep_awake: true,
            heartbeat: Duration::from_secs(300),
            wait_for_human: false,
        }
    }
}

/// What becomes of the changes of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailedAttempt {
    /// They stay in the work tree.
    #[default]
    Keep,
    /// They are taken back; what was uncommitted before the attempt stays.
    Rollback,
}
