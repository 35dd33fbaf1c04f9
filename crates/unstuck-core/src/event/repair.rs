//! Events about repairs: proposed, approved, started, executed and failed.

use serde::{Deserialize, Serialize};

use super::run_ids::SessionId;
use crate::command_policy::{ProposalConfidence, RepairCategory};

/// A repair was proposed and evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairProposed {
    /// The session; none if it is about the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the repair in this run.
    pub id: String,
    /// The category of the problem.
    pub category: RepairCategory,
    /// The command.
    pub command: String,
    /// The proposer's confidence.
    pub confidence: ProposalConfidence,
    /// The working directory, relative to the project root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The timeout in seconds.
    pub timeout_seconds: u32,
    /// The proposer.
    pub by: RepairProposalOrigin,
    /// The root cause, as stated by the proposer.
    #[serde(default)]
    pub root_cause: String,
    /// The evidence, as stated by the proposer.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// The expected outcome, as stated by the proposer.
    #[serde(default)]
    pub expected_outcome: String,
    /// The fingerprint of the failure that it is for.
    #[serde(default)]
    pub fingerprint: String,
    /// The fallback command if it does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The hash of the document that contained it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The verdict of the command policy.
    pub verdict: PolicyVerdict,
    /// The reason, in one sentence.
    pub reason: String,
    /// The hash that an answer binds to: it covers everything that would run.
    pub hash: String,
}

/// The proposer of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairProposalOrigin {
    /// An agent, in its `recovery.json`.
    Agent,
    /// The fallback of an agent's proposal.
    Fallback,
    /// The history of repairs that helped here.
    Remembered,
    /// A matching entry of the owner's list.
    Owner,
    /// The built-in repair catalog.
    BuiltIn,
}

/// The verdict of the command policy about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// It may run.
    Run,
    /// It needs approval.
    Ask,
    /// It must not run.
    Deny,
}

/// An invalid repair proposal (`recovery.json`) was rejected as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairRejected {
    /// The session that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The reason.
    pub reason: String,
    /// The hash of its content, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

/// The source of a repair's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSource {
    /// An entry of the owner's list.
    Auto,
    /// A human's approval of this proposal.
    Human,
}

/// A repair was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairApproved {
    /// The session; none if it is about the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the repair in this run.
    pub id: String,
    /// The source of the approval.
    pub source: ApprovalSource,
    /// The command that runs.
    pub command: String,
}

/// A repair started; only a started repair can have changed anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairStarted {
    /// The session; none if it is about the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the repair in this run.
    pub id: String,
    /// The source of the approval.
    pub source: ApprovalSource,
    /// The command that runs.
    pub command: String,
    /// The work tree before it, if a snapshot was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// True if it is not listed and ran because `on_unknown` is `allow`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "unlisted")]
    pub is_unlisted: bool,
}

/// A repair was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairExecuted {
    /// The session; none if it is about the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the repair in this run.
    pub id: String,
    /// The command that ran.
    pub command: String,
    /// The exit code.
    pub exit_code: i32,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The confinement: `full`, `partial`, `none`.
    #[serde(default)]
    pub sandbox: String,
    /// The end of its output.
    #[serde(default)]
    pub output: String,
    /// The work tree after it, if a snapshot was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The side effects of the execution.
    #[serde(default, skip_serializing_if = "RepairSandboxReport::is_empty")]
    #[serde(rename = "side_effects", alias = "traces")]
    pub side_effects: RepairSandboxReport,
}

/// Missing sandbox features, and effects of a repair that were removed or could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairSandboxReport {
    /// The features missing for a complete sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Other notes about the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Files that it created where unstuck or git would obey them; they were removed or restored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "injected_files", alias = "planted")]
    pub injected_files: Vec<String>,
    /// Some files that it wrote to the home directory, a private copy that was discarded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<String>,
    /// Files in git's directory that others changed at the same time, so that the repair's change was not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "overwritten_by_others", alias = "overtaken")]
    pub overwritten_by_others: Vec<String>,
    /// The number of leftover processes that had to be ended.
    #[serde(skip_serializing_if = "is_zero")]
    #[serde(rename = "leftover_processes", alias = "left")]
    pub leftover_processes: u32,
    /// The number of those that could not be ended.
    #[serde(skip_serializing_if = "is_zero")]
    #[serde(rename = "surviving_processes", alias = "survivors")]
    pub surviving_processes: u32,
}

impl RepairSandboxReport {
    /// True if there are no side effects.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns one line of text per side effect.
    pub fn lines(&self) -> Vec<String> {
        let lists = [
            ("missing from the sandbox", &self.missing, "; "),
            ("sandbox", &self.notes, "; "),
            (
                "removed or restored, because git or unstuck would act on it",
                &self.injected_files,
                ", ",
            ),
            (
                "written to the home directory and discarded",
                &self.discarded,
                ", ",
            ),
            (
                "discarded, because it was changed concurrently",
                &self.overwritten_by_others,
                ", ",
            ),
        ];
        let lists = lists.into_iter().filter(|(_, list, _)| !list.is_empty());
        let lines = lists.map(|(what, list, between)| format!("{what}: {}", list.join(between)));
        let counts = [
            (self.leftover_processes, "leftover processes terminated"),
            (
                self.surviving_processes,
                "processes that could not be terminated",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        lines
            .chain(counts.map(|(count, what)| format!("{what}: {count}")))
            .collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The conditions under which a repair would run, shown for approval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairConfinement {
    /// The confinement: `full`, `partial` or `none`.
    pub sandbox: String,
    /// The features missing for a complete sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// True if it would have network access.
    pub network: bool,
    /// The names of the environment variables it would see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Known changes that it makes where git would obey them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
}

impl RepairConfinement {
    /// Describes the confinement in one line.
    pub fn confinement(&self) -> String {
        match (self.sandbox.as_str(), self.missing.is_empty()) {
            (level, true) => level.to_owned(),
            (level, false) => format!("{level} ({})", self.missing.join("; ")),
        }
    }

    /// Returns a label for the network access.
    pub fn network_label(&self) -> &'static str {
        if self.network { "on" } else { "off" }
    }
}

/// A repair failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairFailed {
    /// The session; none if it is about the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the repair in this run.
    pub id: String,
    /// The command.
    pub command: String,
    /// The exit code, if there is one.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The error.
    pub error: String,
    /// True if it was interrupted, so that its effects are unknown.
    #[serde(default)]
    #[serde(rename = "interrupted", alias = "cut_off")]
    pub was_interrupted: bool,
}
