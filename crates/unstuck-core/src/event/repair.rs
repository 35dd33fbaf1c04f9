//! Events about repairs: proposed, allowed, begun, run, and what came of them.

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use crate::command_policy::{Confidence, RepairCategory};

/// A repair was proposed, by whomever, and judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairProposed {
    /// The session that it is about; none where it is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What it is called in this run.
    pub id: String,
    /// What is broken.
    pub category: RepairCategory,
    /// The command.
    pub command: String,
    /// How sure the proposer is.
    pub confidence: Confidence,
    /// The folder to run it in, below the root of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// How long it may take.
    pub timeout_seconds: u32,
    /// Who proposed it.
    pub by: Proposer,
    /// What is behind the failure, in the proposer's words.
    #[serde(default)]
    pub root_cause: String,
    /// Where that is seen, in the proposer's words.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What is hoped for, in the proposer's words.
    #[serde(default)]
    pub expected_outcome: String,
    /// What it is an answer to: the fingerprint of the failure.
    #[serde(default)]
    pub fingerprint: String,
    /// What is proposed if it does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The content of the document that it was read from, by its hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// What the guard says to it.
    pub verdict: PolicyVerdict,
    /// Why, in one sentence.
    pub reason: String,
    /// What an answer binds to: the hash of all that would run.
    pub hash: String,
}

/// Who proposed a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proposer {
    /// An agent, in its `recovery.json`.
    Agent,
    /// The fallback of what an agent had proposed.
    Fallback,
    /// What has helped here before.
    Remembered,
    /// The owner's list, where the failure fits an entry.
    Owner,
    /// What unstuck knows.
    BuiltIn,
}

/// What the guard says to a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// It may run.
    Run,
    /// A person must be asked.
    Ask,
    /// It must not run.
    Deny,
}

/// A document was refused as a whole: nothing of it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairRejected {
    /// The session that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Why.
    pub reason: String,
    /// Its content, by its hash, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

/// Who allowed a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSource {
    /// The owner, by an entry of their list.
    Auto,
    /// A person, about this very proposal.
    Human,
}

/// A repair was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairApproved {
    /// The session that it is about; none where it is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What it is called in this run.
    pub id: String,
    /// By whom.
    pub source: ApprovalSource,
    /// What runs.
    pub command: String,
}

/// A repair began; only what began may have changed anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairStarted {
    /// The session that it is about; none where it is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What it is called in this run.
    pub id: String,
    /// Who allowed it.
    pub source: ApprovalSource,
    /// What runs.
    pub command: String,
    /// The work tree before it, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Whether nobody listed it, and it ran because `on_unknown` is `allow`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "unlisted")]
    pub is_unlisted: bool,
}

/// A repair was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairExecuted {
    /// The session that it is about; none where it is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What it is called in this run.
    pub id: String,
    /// What ran.
    pub command: String,
    /// Its exit code.
    pub exit_code: i32,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How it was confined: `full`, `partial`, `none`.
    #[serde(default)]
    pub sandbox: String,
    /// The end of what it wrote.
    #[serde(default)]
    pub output: String,
    /// The work tree after it, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What else is worth knowing about how it ran.
    #[serde(default, skip_serializing_if = "RepairSideEffects::is_empty")]
    #[serde(rename = "traces")]
    pub side_effects: RepairSideEffects,
}

/// What a sandbox lacked, and what a repair left that was taken away or could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairSideEffects {
    /// What was missing for a complete sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What else was different about the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What it put where unstuck or git would obey it; that was removed or put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "planted")]
    pub injected_files: Vec<String>,
    /// What it wrote to the home folder, which was a private copy and is gone; a few of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<String>,
    /// What others changed in git's folder meanwhile, so that its own change was not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "overtaken")]
    pub overwritten_by_others: Vec<String>,
    /// How many processes it left behind that had to be ended.
    #[serde(skip_serializing_if = "is_zero")]
    #[serde(rename = "left")]
    pub leftover_processes: u32,
    /// How many of those could not be ended.
    #[serde(skip_serializing_if = "is_zero")]
    #[serde(rename = "survivors")]
    pub surviving_processes: u32,
}

impl RepairSideEffects {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All of it in words, one thing after the other.
    pub fn lines(&self) -> Vec<String> {
        let lists = [
            ("sandbox lacks", &self.missing, "; "),
            ("sandbox", &self.notes, "; "),
            (
                "removed or put back, because git or unstuck would obey it",
                &self.injected_files,
                ", ",
            ),
            (
                "written to the home folder and not kept",
                &self.discarded,
                ", ",
            ),
            (
                "not kept, because others changed it meanwhile",
                &self.overwritten_by_others,
                ", ",
            ),
        ];
        let lists = lists.into_iter().filter(|(_, list, _)| !list.is_empty());
        let lines = lists.map(|(what, list, between)| format!("{what}: {}", list.join(between)));
        let counts = [
            (
                self.leftover_processes,
                "processes were left behind and ended",
            ),
            (self.surviving_processes, "processes could not be ended"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        lines
            .chain(counts.map(|(count, what)| format!("{count} {what}")))
            .collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Under which conditions a repair would run, for whoever has to approve it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RepairConditions {
    /// How far it would be confined: `full`, `partial` or `none`.
    pub sandbox: String,
    /// What is missing for a complete sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Whether it would reach the network.
    pub network: bool,
    /// The names of the environment variables that it would see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// What it is known to change where git would obey it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
}

impl RepairConditions {
    /// How far it would be confined, in one line.
    pub fn confinement(&self) -> String {
        match (self.sandbox.as_str(), self.missing.is_empty()) {
            (level, true) => level.to_owned(),
            (level, false) => format!("{level} ({})", self.missing.join("; ")),
        }
    }

    /// Whether it would reach the network, in a word.
    pub fn network_label(&self) -> &'static str {
        if self.network { "on" } else { "off" }
    }
}

/// A repair did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairFailed {
    /// The session that it is about; none where it is about the run as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What it is called in this run.
    pub id: String,
    /// The command.
    pub command: String,
    /// Its exit code, where it came to one.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// What went wrong.
    pub error: String,
    /// Whether it was cut off, so that nobody knows what it had done.
    #[serde(default)]
    #[serde(rename = "cut_off")]
    pub was_interrupted: bool,
}
