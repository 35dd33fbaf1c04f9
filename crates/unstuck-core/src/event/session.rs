//! Events about a session: one agent's conversation within a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run_ids::SessionId;
use super::run_outcome::{RunFinished, RunOutcome};
use crate::decision::RetryPolicy;
use crate::failure::RecoveryLevel;

/// The specification of a session: its command, policy and limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// The id of the session.
    pub session: SessionId,
    /// The working directory.
    pub cwd: String,
    /// The command line.
    pub command: Vec<String>,
    /// The recognized agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The model, if known.
    #[serde(default)]
    pub model: Option<String>,
    /// The retry policy.
    pub policy: RetryPolicy,
    /// The sources of the policy's values by name; `policy` for those not listed.
    #[serde(default)]
    pub origins: BTreeMap<String, String>,
    /// The timeout of one attempt, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// The idle timeout of one attempt, in milliseconds.
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
    /// Other options, read only by the runner.
    #[serde(default)]
    pub options: Value,
    /// The reason why it cannot be repeated, if it cannot.
    #[serde(default)]
    #[serde(rename = "not_repeatable", alias = "unrepeatable")]
    pub unrepeatable_reason: Option<String>,
    /// The version of the knowledge used for decisions.
    pub knowledge: String,
}

/// The instance of a role in one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RoleInstance {
    /// The role.
    pub role: String,
    /// The loop iteration, from 1.
    pub iteration: u32,
    /// The number among parallel instances of the role, from 1.
    pub instance: u32,
}

impl RoleInstance {
    /// Returns the display name: the role, and the instance number if there are several.
    pub fn display_name(&self, instances: u32) -> String {
        match instances {
            0 | 1 => self.role.clone(),
            _ => format!("{}#{}", self.role, self.instance),
        }
    }
}

/// A role of a pipeline started, or continues with a changed configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// The role instance.
    #[serde(flatten)]
    pub part: RoleInstance,
    /// The session specification.
    #[serde(flatten)]
    pub spec: SessionSpec,
    /// The outputs of other roles used in its prompt, by role: hashes of their content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Vec<String>>,
    /// The configured prompt, with variable parts masked, truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A role of a pipeline finished or stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFinished {
    /// The session.
    pub session: SessionId,
    /// The role instance.
    #[serde(flatten)]
    pub part: RoleInstance,
    /// The outcome.
    pub outcome: RunOutcome,
    /// The exit code of the last attempt.
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
    /// The hash of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl SessionFinished {
    /// Creates the end of a role, with its output.
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

    /// Returns the end as that of a single-session run.
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
