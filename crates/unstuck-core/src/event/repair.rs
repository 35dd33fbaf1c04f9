//! Events about repairs: proposed, allowed, begun, run, and what came of them.

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use crate::guard::{Confidence, RepairCategory};

/// A repair was proposed, by whomever, and judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryProposed {
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
    pub verdict: GuardWord,
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
pub enum GuardWord {
    /// It may run.
    Run,
    /// A person must be asked.
    Ask,
    /// It must not run.
    Deny,
}

/// A document was refused as a whole: nothing of it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryRejected {
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
pub struct RecoveryApproved {
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
pub struct RecoveryStarted {
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
}

/// A repair was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryExecuted {
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
}

/// A repair did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryFailed {
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
    pub cut_off: bool,
}
