//! A question to a person, as its event carries it: all that is needed for an answer.

use serde::{Deserialize, Serialize};

use super::answer::EscalationAnswer;
use super::repair::RepairConditions;
use crate::decision::{ConcreteChange, RereadCost};
use crate::project_settings::SettingChange;
use crate::time::Timestamp;

/// What is shown of a question beside its kind and its reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EscalationDetails {
    /// What was being done.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[serde(rename = "doing")]
    pub activity: String,
    /// The role that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The line of the failure that tells most.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// What was tried before, and why it did not help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "tried")]
    pub prior_attempts: Vec<PriorAttempt>,
    /// The command that is proposed, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What can be answered, the likeliest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "choices")]
    pub options: Vec<AnswerOption>,
    /// The same failure has the same fingerprint.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// What an answer binds to: where it is different, something else is asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// What counts as answered when nobody answers in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<EscalationDeadline>,
    /// Why the command cannot be run again, if it cannot: then the run can only be ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unrepeatable")]
    pub unrepeatable_reason: Option<String>,
    /// What the project's files say differently than when the run began, where it is about that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingChange>,
    /// The hash of what counts of the project's files once that is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "accepts")]
    pub accepted_settings: Option<String>,
    /// What it costs to wake the conversation, where an answer continues one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadCost>,
    /// Under which conditions the command would run, where it is about a repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<RepairConditions>,
}

impl EscalationDetails {
    /// What is different after this answer.
    pub fn changes(&self, answer: EscalationAnswer) -> Vec<ConcreteChange> {
        let choice = self.options.iter().find(|one| one.answer == answer);
        choice.map_or_else(Vec::new, |one| one.changes.clone())
    }

    /// Whether this answer makes sense; any does where nothing is said.
    pub fn allows(&self, answer: EscalationAnswer) -> bool {
        self.options.is_empty() || self.options.iter().any(|one| one.answer == answer)
    }
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorAttempt {
    /// What.
    pub what: String,
    /// Why it did not help.
    #[serde(rename = "why")]
    pub failure_reason: String,
}

/// An answer that makes sense, and what it will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerOption {
    /// The answer.
    pub answer: EscalationAnswer,
    /// What will happen.
    #[serde(rename = "does")]
    pub effect: String,
    /// What is different then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ConcreteChange>,
    /// What that is expected to cost more, in USD, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// What counts as answered when nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationDeadline {
    /// When the time is over.
    pub at: Timestamp,
    /// The answer that counts then.
    pub answer: EscalationAnswer,
}
