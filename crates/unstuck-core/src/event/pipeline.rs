//! Events about a pipeline: roles that build on each other, perhaps in a loop.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::attempt::{FailedCheck, with_evidence};
use super::session::RoleInstance;
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::usage_budget::UsageBudget;

/// What a pipeline is, as far as a later process needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineStarted {
    /// The folder that it works in.
    pub cwd: String,
    /// The command line that began it.
    pub command: Vec<String>,
    /// The roles, in the order of the configuration.
    pub roles: Vec<RoleStarted>,
    /// The roles of the configuration that are no part of this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "left_out")]
    pub excluded_roles: Vec<String>,
    /// What is to be done.
    #[serde(default)]
    pub task: String,
    /// The configuration file that the roles come from.
    #[serde(default)]
    pub config_path: Option<String>,
    /// The id of the policy that counts where a role has none of its own.
    pub policy: String,
    /// How many roles may run side by side.
    pub parallel: u32,
    /// Whether `checkpoint.json` is written when something failed.
    #[serde(default = "default_true")]
    pub checkpoint: bool,
    /// How often it is repeated, and until when; none for once.
    #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
    pub loop_settings: Option<LoopStarted>,
    /// What it and all runs of a day may use; none in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<UsageBudget>,
    /// The hash of what it goes by of the project's own files; none in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_settings: Option<String>,
    /// The version of the knowledge that decisions are made with.
    pub knowledge: String,
}

const fn default_true() -> bool {
    true
}

/// A role, as far as a later process needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleStarted {
    /// Its id.
    pub id: String,
    /// The roles that must be done before.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How many play it at the same time.
    pub instances: u32,
    /// Whether others go on if it fails.
    #[serde(default)]
    pub optional: bool,
    /// Its configuration, by name, to tell later what was changed; what is long is a hash.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What one session of it may cost, in USD, by its policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// How often a pipeline is repeated, and until when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopStarted {
    /// The most iterations.
    pub max_iterations: u32,
    /// When it is done, in words for people; none if it is repeated for as often as it may.
    #[serde(default)]
    pub until: Option<String>,
    /// After how many iterations without any change it is stuck.
    pub stuck_after: u32,
    /// What is done then.
    pub on_stuck: OnStuck,
}

/// What is done about a loop that does not get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStuck {
    /// A person is asked.
    #[default]
    Escalate,
    /// It ends.
    Stop,
    /// It goes on all the same, up to its limit.
    Continue,
}

/// An iteration of a loop began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationStarted {
    /// Its number, from 1.
    pub iteration: u32,
    /// What the iteration before left undone, for the roles of this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
}

/// An iteration of a loop is over, and was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationFinished {
    /// Its number.
    pub iteration: u32,
    /// Whether what the loop is for is done.
    pub done: bool,
    /// What is left undone, in words for people and for the next iteration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// By what the same thing left undone is known again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The state of the work tree, as far as it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// How many iterations, this one included, left the same undone and changed nothing.
    #[serde(default)]
    pub unchanged: u32,
    /// The check that did not pass, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_check: Option<Box<DiagnosedCheck>>,
}

/// A check of a loop that did not pass, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiagnosedCheck {
    /// What was seen of it.
    pub check: FailedCheck,
    /// What that was found to be.
    pub diagnosis: Diagnosis,
}

impl DiagnosedCheck {
    /// What was seen of it, as far as it is kept.
    pub fn to_failure(&self) -> Failure {
        with_evidence(self.check.to_failure(), &self.diagnosis)
    }
}

/// The output of a role of an earlier run was taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputReused {
    /// Which role it is the output of.
    #[serde(flatten)]
    pub part: RoleInstance,
    /// The hash of the content.
    pub output: String,
    /// The run that it comes from.
    pub from_run: String,
}
