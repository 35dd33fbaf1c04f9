//! The payload of an escalation event: everything needed for an answer.

use serde::{Deserialize, Serialize};

use super::escalation_answer::EscalationAnswer;
use super::repair::RepairConfinement;
use crate::decision::{ConcreteAttemptChange, RereadCost};
use crate::project_settings_snapshot::ProjectSettingChange;
use crate::time::Timestamp;

/// The details of an escalation besides its kind and reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EscalationDetails {
    /// The activity of the session at that time.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[serde(rename = "activity", alias = "doing")]
    pub activity: String,
    /// The role, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The most significant line of the failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The prior attempts, and why they failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "prior_attempts", alias = "tried")]
    pub prior_attempts: Vec<EscalationPriorAttempt>,
    /// The proposed command, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The possible answers, most likely first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "options", alias = "choices")]
    pub options: Vec<AnswerOption>,
    /// The fingerprint of the failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// The hash that an answer binds to: it differs whenever the answer would do something else.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// The default answer and its deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<EscalationDeadline>,
    /// The reason why the command cannot be run again, if it cannot: then the run can only be aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "not_repeatable", alias = "unrepeatable")]
    pub unrepeatable_reason: Option<String>,
    /// The changed settings of the project's files, if it is about those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<ProjectSettingChange>,
    /// The hash of the project settings that take effect on approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "accepted_settings", alias = "accepts")]
    pub accepted_settings: Option<String>,
    /// The cost of rereading the conversation, if an answer continues one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadCost>,
    /// The conditions under which the proposed repair would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<RepairConfinement>,
}

impl EscalationDetails {
    /// Returns the changes that this answer makes.
    pub fn changes(&self, answer: EscalationAnswer) -> Vec<ConcreteAttemptChange> {
        let choice = self.options.iter().find(|one| one.answer == answer);
        choice.map_or_else(Vec::new, |one| one.changes.clone())
    }

    /// True if this answer is offered; every answer is if no options are recorded.
    pub fn allows(&self, answer: EscalationAnswer) -> bool {
        self.options.is_empty() || self.options.iter().any(|one| one.answer == answer)
    }
}

/// An attempt before an escalation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationPriorAttempt {
    /// The action.
    #[serde(rename = "action", alias = "what")]
    pub what: String,
    /// The reason why it failed.
    #[serde(rename = "failure_reason", alias = "why")]
    pub failure_reason: String,
}

/// A possible answer and its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerOption {
    /// The answer.
    pub answer: EscalationAnswer,
    /// The effect.
    #[serde(rename = "effect", alias = "does")]
    pub effect: String,
    /// The changes that it makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ConcreteAttemptChange>,
    /// The expected extra cost in USD, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The default answer of an escalation and its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationDeadline {
    /// The deadline.
    pub at: Timestamp,
    /// The default answer.
    pub answer: EscalationAnswer,
}
