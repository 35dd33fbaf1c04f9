//! What an agent proposes: schema version 1 of `recovery.json`. How it is read is in `fields.rs`.

use serde::{Deserialize, Serialize};

/// The largest document that is read.
pub const MAX_BYTES: usize = 256 * 1024;
/// The longest command, in bytes.
pub const MAX_COMMAND: usize = 4096;
/// The longest `working_dir`, in bytes.
pub const MAX_WORKING_DIR: usize = 1024;
/// The longest of the other texts, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;
/// How many values may stand inside each other, the document itself included.
pub(super) const MAX_DEPTH: usize = 32;
/// The longest time that may be asked for, in seconds.
pub const MAX_TIMEOUT_SECONDS: u32 = 3600;
/// The time that a command has where nothing is said, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u32 = 120;

/// Why a proposal is refused as a whole. What it says may be shown: nothing of the document is in it unescaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// It is too large to be looked at.
    #[error("the proposal has {bytes} bytes, more than {MAX_BYTES}")]
    TooLarge {
        /// How many bytes it has.
        bytes: usize,
    },
    /// It is not one JSON object.
    #[error("the proposal is not one plain JSON object: {0}")]
    NotJson(String),
    /// A field is missing, of the wrong type, too long or unknown.
    #[error("`{field}` {problem}")]
    Field {
        /// Where it is, such as `recovery.command`.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A command or path holds a character that cannot be shown for what it is.
    #[error("`{field}` contains the character U+{code:04X}, which cannot be shown for what it is")]
    Character {
        /// Where it is, such as `recovery.command`.
        field: String,
        /// The code point.
        code: u32,
    },
}

impl ProposalError {
    /// The rule that the proposal breaks, as the guide numbers them.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } | Self::NotJson(_) => "R0",
            Self::Field { field, .. } if field.ends_with("timeout_seconds") => "R7",
            Self::Field { .. } => "R1",
            Self::Character { .. } => "R2",
        }
    }
}

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
