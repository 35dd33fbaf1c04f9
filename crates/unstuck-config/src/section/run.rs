//! `[run]`: settings of the run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{duration, number};

/// `[run]`: settings of the run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct RunSection {
    /// Task; prompts refer to it as `{{ task }}`.
    pub task: Option<String>,
    /// Maximum number of roles that run in parallel; 4 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub parallel: u32,
    /// If true, the changes of each attempt are saved, if the project is a git repository; true by default.
    pub snapshots: bool,
    /// Handling of the changes of a failed attempt; `keep` by default.
    pub on_failed_attempt: OnFailedAttempt,
    /// If true, the machine is kept from sleeping while a run is active, if supported; true by default.
    pub keep_awake: bool,
    /// Interval of log messages during a long wait; 5 minutes by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub heartbeat: Duration,
    /// If true, the run waits for human input instead of exiting; false by default.
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

/// The handling of the changes of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailedAttempt {
    /// Keep them in the work tree.
    #[default]
    Keep,
    /// Revert them; changes that were uncommitted before the attempt stay.
    Rollback,
}
