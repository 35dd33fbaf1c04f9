//! The proposal of an agent: schema version 1 of `recovery.json`. Parsing is in `proposal_fields.rs`.

use serde::{Deserialize, Serialize};

/// Maximum size of a document.
pub const MAX_BYTES: usize = 256 * 1024;
/// Maximum length of a command, in bytes.
pub const MAX_COMMAND: usize = 4096;
/// Maximum length of `working_dir`, in bytes.
pub const MAX_WORKING_DIR: usize = 1024;
/// Maximum length of the other texts, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;
/// Maximum nesting depth, including the document itself.
pub(super) const MAX_DEPTH: usize = 32;
/// Maximum timeout, in seconds.
pub const MAX_TIMEOUT_SECONDS: u32 = 3600;
/// Default timeout of a command, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u32 = 120;

/// An error that rejects a proposal as a whole. Its message is safe to display: nothing of the document is unescaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// The document is too large.
    #[error("the proposal is too large: {bytes} bytes (limit {MAX_BYTES})")]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
    },
    /// The document is not a single JSON object.
    #[error("the proposal is not a valid JSON object: {0}")]
    NotJson(String),
    /// A field is missing, of the wrong type, too long or unknown.
    #[error("`{field}` {problem}")]
    Field {
        /// The location, such as `recovery.command`.
        field: String,
        /// The problem.
        problem: String,
    },
    /// A command or path contains a character that is not displayed faithfully.
    #[error(
        "`{field}` contains the character U+{code:04X}, which is not allowed because it is invisible or misleading"
    )]
    Character {
        /// The location, such as `recovery.command`.
        field: String,
        /// The code point.
        code: u32,
    },
}

impl ProposalError {
    /// Returns the rule that the proposal violates, as numbered in the guide.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } | Self::NotJson(_) => "R0",
            Self::Field { field, .. } if field.ends_with("timeout_seconds") => "R7",
            Self::Field { .. } => "R1",
            Self::Character { .. } => "R2",
        }
    }
}

/// A proposed repair, parsed and well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The time of creation, verbatim.
    pub timestamp: String,
    /// The category of the problem.
    pub category: RepairCategory,
    /// The severity.
    pub severity: RepairProblemSeverity,
    /// The proposer's diagnosis.
    pub diagnosis: ProposalDiagnosis,
    /// The command to run.
    pub recovery: ProposedCommand,
    /// The command to run if the first one does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ProposedFallbackCommand>,
}

/// The category of the problem that a repair solves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairCategory {
    /// Missing, broken or incompatible packages.
    Dependency,
    /// A configuration file.
    Config,
    /// Build output, generated files, leftover processes, tools.
    Environment,
    /// File permissions.
    Permissions,
    /// Network resources.
    Network,
}

/// The severity of the problem that a proposal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairProblemSeverity {
    /// Work is blocked.
    Blocking,
    /// Work is possible with restrictions.
    Degraded,
}

/// The proposer's confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalConfidence {
    /// A guess.
    Low,
    /// A similar pattern was observed.
    Medium,
    /// The exact pattern was observed.
    High,
}

/// The proposer's diagnosis. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalDiagnosis {
    /// A pattern in the failure's text.
    pub error_pattern: String,
    /// The root cause.
    pub root_cause: String,
    /// The evidence, such as `file:line`.
    pub evidence: Vec<String>,
}

/// A proposed command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedCommand {
    /// The command, verbatim.
    pub command: String,
    /// The working directory; defaults to the project root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The timeout; 120 by default.
    pub timeout_seconds: u32,
    /// The expected outcome.
    pub expected_outcome: String,
    /// The proposer's confidence.
    pub confidence: ProposalConfidence,
}

/// The command to run if the first one does not help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedFallbackCommand {
    /// The command, verbatim.
    pub command: String,
    /// The proposer's confidence.
    pub confidence: ProposalConfidence,
}
