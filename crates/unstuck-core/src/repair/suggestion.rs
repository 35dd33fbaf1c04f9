//! What is offered: a command with the reasons for it, or why there is none.

use serde::{Deserialize, Serialize};

use crate::command_policy::{Confidence, RepairCategory};

/// The repairs that fit a failure, the best first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepairSuggestions {
    /// The repairs: those of the owner's list first, then what is built in.
    #[serde(rename = "offers")]
    pub suggestions: Vec<RepairSuggestion>,
    /// Why there can be none, if a rule forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    pub refusal: Option<RepairRefusal>,
    /// The owner's entries that were looked at more closely and not offered, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "passed_over")]
    pub skipped_entries: Vec<SkippedOwnerEntry>,
}

/// A command that fits a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSuggestion {
    /// The command; of the owner's list exactly as it stands there.
    pub command: String,
    /// The folder to run it in, relative to the root; none for the root itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Where it comes from.
    pub source: SuggestionSource,
    /// What is broken.
    pub category: RepairCategory,
    /// How sure it is that this helps.
    pub confidence: Confidence,
    /// What is behind the failure.
    pub root_cause: String,
    /// The lines of the failure that show it.
    pub evidence: Vec<String>,
    /// What it should bring about.
    pub expected_outcome: String,
    /// How long it may take.
    pub timeout_seconds: u32,
}

/// Where an offered command comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuggestionSource {
    /// The owner's list, with the rule of the knowledge that found the need.
    Owner(String),
    /// Built-in knowledge, with its rule.
    BuiltIn(String),
}

impl SuggestionSource {
    /// The rule that found the need.
    pub fn rule(&self) -> &str {
        match self {
            Self::Owner(rule) | Self::BuiltIn(rule) => rule,
        }
    }

    /// Whether it is an entry of the owner's list.
    pub fn is_owner(&self) -> bool {
        matches!(self, Self::Owner(_))
    }
}

/// Why nothing is offered for a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairRefusal {
    /// The rule that forbids it.
    pub rule: String,
    /// The reason in one sentence.
    pub reason: String,
    /// The line of the failure that shows it, if it is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
}

/// An entry of the owner's list that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedOwnerEntry {
    /// The entry.
    pub command: String,
    /// Why it is not offered.
    pub reason: String,
}
