//! Events about a session: one agent's conversation within a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::SessionId;
use super::outcome::{RunFinished, RunOutcome};
use crate::decision::RetryPolicy;
use crate::failure::Level;

/// What a session runs, and how far it may go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Its id.
    pub session: SessionId,
    /// The folder that it works in.
    pub cwd: String,
    /// The command line.
    pub command: Vec<String>,
    /// The agent that this is known to be.
    #[serde(default)]
    pub agent: Option<String>,
    /// The model that it uses, as far as is known.
    #[serde(default)]
    pub model: Option<String>,
    /// How far to go.
    pub policy: RetryPolicy,
    /// Where the values of the policy come from, by their names; `policy` for all that are not named.
    #[serde(default)]
    pub origins: BTreeMap<String, String>,
    /// How long one attempt may take, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// How long one attempt may be silent, in milliseconds.
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
    /// What else the one who runs it has to know; only they read it.
    #[serde(default)]
    pub options: Value,
    /// Why it cannot be taken up again, if it cannot.
    #[serde(default)]
    #[serde(rename = "unrepeatable")]
    pub unrepeatable_reason: Option<String>,
    /// The version of the knowledge that decisions are made with.
    pub knowledge: String,
}

/// Which role a session plays, and when.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RoleInstance {
    /// The role.
    pub role: String,
    /// The iteration of the loop, from 1.
    pub iteration: u32,
    /// Which of several that play the same role at the same time, from 1.
    pub instance: u32,
}

impl RoleInstance {
    /// Its name for people: the role, and its instance where there are several.
    pub fn display_name(&self, instances: u32) -> String {
        match instances {
            0 | 1 => self.role.clone(),
            _ => format!("{}#{}", self.role, self.instance),
        }
    }
}

/// A role of a pipeline began, or goes on with what its configuration has become.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// Which role it plays, and when.
    #[serde(flatten)]
    pub part: RoleInstance,
    /// What it runs.
    #[serde(flatten)]
    pub spec: SessionSpec,
    /// The outputs of others that its prompt was made from, by role: their content's hashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Vec<String>>,
    /// Its prompt as it is written in the configuration, with what varies masked, and cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A role of a pipeline came to its end, or to a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFinished {
    /// The session.
    pub session: SessionId,
    /// Which role it played, and when.
    #[serde(flatten)]
    pub part: RoleInstance,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The exit code of its last attempt.
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
    /// Its output: the hash of the content, by which it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl SessionFinished {
    /// The end of a role, with its output.
    pub fn new(
        session: SessionId,
        part: RoleInstance,
        end: RunFinished,
        output: Option<String>,
    ) -> Self {
        Self {
            session,
            part,
            outcome: end.outcome,
            exit_code: end.exit_code,
            reason: end.reason,
            attempts: end.attempts,
            retry_count: end.retry_count,
            recovery_level: end.recovery_level,
            cost_usd: end.cost_usd,
            duration_ms: end.duration_ms,
            output,
        }
    }

    /// How it ended, as a run of a single session would tell it.
    pub fn to_run_finished(&self) -> RunFinished {
        RunFinished {
            outcome: self.outcome,
            exit_code: self.exit_code,
            reason: self.reason.clone(),
            attempts: self.attempts,
            retry_count: self.retry_count,
            recovery_level: self.recovery_level,
            cost_usd: self.cost_usd,
            duration_ms: self.duration_ms,
        }
    }
}
