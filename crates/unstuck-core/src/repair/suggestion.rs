//! Suggestions: a command with its reasons, or the reason why there is none.

use serde::{Deserialize, Serialize};

use crate::command_policy::{ProposalConfidence, RepairCategory};

/// The repairs that match a failure, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepairSuggestions {
    /// The suggestions: those of the owner's list first, then built-in ones.
    #[serde(rename = "suggestions", alias = "offers")]
    pub suggestions: Vec<RepairSuggestion>,
    /// The refusal, if a rule forbids any repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refusal", alias = "refused")]
    pub refusal: Option<RepairSuggestionRefusal>,
    /// The owner's entries that were considered but not suggested, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "skipped", alias = "passed_over")]
    pub skipped_entries: Vec<SkippedOwnerCommand>,
}

/// A command that matches a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSuggestion {
    /// The command; entries of the owner's list are verbatim.
    pub command: String,
    /// The working directory, relative to the root; none for the root itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The source of the command.
    pub source: SuggestionSource,
    /// The category of the problem.
    pub category: RepairCategory,
    /// Confidence that the command helps.
    pub confidence: ProposalConfidence,
    /// The cause of the failure.
    pub root_cause: String,
    /// The lines of the failure that support it.
    pub evidence: Vec<String>,
    /// The expected outcome.
    pub expected_outcome: String,
    /// The time limit.
    pub timeout_seconds: u32,
}

/// The source of a suggested command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuggestionSource {
    /// The owner's list, with the knowledge rule that found the requirement.
    Owner(String),
    /// Built-in knowledge, with its rule.
    BuiltIn(String),
}

impl SuggestionSource {
    /// Returns the rule that found the requirement.
    pub fn rule(&self) -> &str {
        match self {
            Self::Owner(rule) | Self::BuiltIn(rule) => rule,
        }
    }

    /// Returns true if it is an entry of the owner's list.
    pub fn is_owner(&self) -> bool {
        matches!(self, Self::Owner(_))
    }
}

/// A refusal to suggest repairs for a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSuggestionRefusal {
    /// The rule that refuses it.
    pub rule: String,
    /// The reason in one sentence.
    pub reason: String,
    /// The line of the failure that matched, if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
}

/// An entry of the owner's list that is not suggested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedOwnerCommand {
    /// The entry.
    pub command: String,
    /// The reason.
    pub reason: String,
}
