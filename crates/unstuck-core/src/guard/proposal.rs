//! What an agent proposes: schema version 1 of `recovery.json`.

use serde::{Deserialize, Serialize};

/// A proposed repair, read and found well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// When it was made, as it stood there.
    pub timestamp: String,
    /// What is broken.
    pub category: RepairCategory,
    /// How much it hinders.
    pub severity: Severity,
    /// Why the proposer thinks so.
    pub diagnosis: ProposalDiagnosis,
    /// What to run.
    pub recovery: ProposedCommand,
    /// What to run if that does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ProposedFallback>,
}

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairCategory {
    /// Packages that are missing, broken or do not fit.
    Dependency,
    /// A file of settings.
    Config,
    /// What was built or generated, a process left behind, a tool.
    Environment,
    /// Who may do what.
    Permissions,
    /// What is reached over the network.
    Network,
}

/// How much it hinders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing can go on.
    Blocking,
    /// Something can go on.
    Degraded,
}

/// How sure the proposer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A guess.
    Low,
    /// Something like it was seen.
    Medium,
    /// The very pattern was seen.
    High,
}

/// Why the proposer thinks so. Decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalDiagnosis {
    /// A pattern of the failure's text.
    pub error_pattern: String,
    /// What is behind it.
    pub root_cause: String,
    /// Where it is seen, such as `file:line`.
    pub evidence: Vec<String>,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedCommand {
    /// The command, as it stood there.
    pub command: String,
    /// The folder to run it in; the root of the project where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// How long it may take; 120 where nothing is said.
    pub timeout_seconds: u32,
    /// What is hoped for.
    pub expected_outcome: String,
    /// How sure the proposer is.
    pub confidence: Confidence,
}

/// What to run if that does not help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedFallback {
    /// The command, as it stood there.
    pub command: String,
    /// How sure the proposer is.
    pub confidence: Confidence,
}
