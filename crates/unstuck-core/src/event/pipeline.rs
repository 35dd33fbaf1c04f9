//! Events about a pipeline: roles that depend on each other, optionally in a loop.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::attempt::{FailedCheck, with_evidence};
use super::session::RoleInstance;
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::usage_budget::ConfiguredUsageBudgets;

/// The settings of a pipeline as recorded when its run starts or resumes, needed to resume it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedPipelineSettings {
    /// The working directory.
    pub cwd: String,
    /// The command line that started it.
    pub command: Vec<String>,
    /// The roles, in configuration order.
    pub roles: Vec<RecordedRoleSettings>,
    /// The configured roles that are excluded from this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "excluded_roles", alias = "left_out")]
    pub excluded_roles: Vec<String>,
    /// The task.
    #[serde(default)]
    pub task: String,
    /// The configuration file of the roles.
    #[serde(default)]
    pub config_path: Option<String>,
    /// The id of the default policy of the roles.
    pub policy: String,
    /// The maximum number of roles that run in parallel.
    pub parallel: u32,
    /// True if `checkpoint.json` is written after a failure.
    #[serde(default = "default_true")]
    pub checkpoint: bool,
    /// The loop settings; none if it runs once.
    #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
    pub loop_settings: Option<RecordedPipelineLoopSettings>,
    /// The usage budget of this run and of all runs of a day; none in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<ConfiguredUsageBudgets>,
    /// The hash of the project files that it depends on; none in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_settings: Option<String>,
    /// The version of the knowledge used for decisions.
    pub knowledge: String,
}

const fn default_true() -> bool {
    true
}

/// The settings of a role as recorded with its pipeline, needed to resume it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedRoleSettings {
    /// The id of the role.
    pub id: String,
    /// The roles that must be done first.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The number of parallel instances.
    pub instances: u32,
    /// True if other roles continue when it fails.
    #[serde(default)]
    pub optional: bool,
    /// The configuration by setting name, used to detect changes; long values are hashed.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The cost limit of one session in USD, by its policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// The loop settings of a pipeline as recorded with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedPipelineLoopSettings {
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// The stop condition as text; none if all iterations run.
    #[serde(default)]
    pub until: Option<String>,
    /// The number of iterations without change after which the loop is stuck.
    pub stuck_after: u32,
    /// The action when the loop is stuck.
    pub on_stuck: OnStuck,
}

/// The action when a loop is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStuck {
    /// Escalate to a human.
    #[default]
    Escalate,
    /// Stop the loop.
    Stop,
    /// Continue up to the iteration limit.
    Continue,
}

/// A loop iteration started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationStarted {
    /// The iteration number, from 1.
    pub iteration: u32,
    /// The unfinished work of the previous iteration, as input for the roles.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
}

/// A loop iteration finished and was evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationFinished {
    /// The iteration number.
    pub iteration: u32,
    /// True if the loop's goal is reached.
    pub done: bool,
    /// The unfinished work, as text for humans and for the next iteration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// The fingerprint of the unfinished work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The state of the work tree, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The number of consecutive iterations, including this one, with the same unfinished work and no change.
    #[serde(default)]
    pub unchanged: u32,
    /// The failed check, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_check: Option<Box<DiagnosedCheck>>,
}

/// A failed check of a loop with its diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiagnosedCheck {
    /// The check.
    pub check: FailedCheck,
    /// The diagnosis.
    pub diagnosis: Diagnosis,
}

impl DiagnosedCheck {
    /// Returns the failure as far as it is recorded.
    pub fn to_failure(&self) -> Failure {
        with_evidence(self.check.to_failure(), &self.diagnosis)
    }
}

/// An output of a role from an earlier run was reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReused {
    /// The role instance.
    #[serde(flatten)]
    pub part: RoleInstance,
    /// The hash of the content.
    pub output: String,
    /// The run that produced it.
    pub from_run: String,
}
