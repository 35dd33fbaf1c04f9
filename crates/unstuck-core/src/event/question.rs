//! A question to a person, as its event carries it: all that is needed for an answer.

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::repair::RepairConditions;
use crate::decision::{Changed, RereadCost};
use crate::moment::Timestamp;
use crate::settings::SettingChange;

/// What is shown of a question beside its kind and its reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// What was being done.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[serde(rename = "doing")]
    pub doing: String,
    /// The role that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The line of the failure that tells most.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// What was tried before, and why it did not help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "tried")]
    pub tried: Vec<Tried>,
    /// The command that is proposed, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What can be answered, the likeliest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "choices")]
    pub choices: Vec<Choice>,
    /// The same failure has the same fingerprint.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// What an answer binds to: where it is different, something else is asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// What counts as answered when nobody answers in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Why the command cannot be run again, if it cannot: then the run can only be ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "unrepeatable")]
    pub unrepeatable: Option<String>,
    /// What the project's files say differently than when the run began, where it is about that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingChange>,
    /// The hash of what counts of the project's files once that is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "accepts")]
    pub accepts: Option<String>,
    /// What it costs to wake the conversation, where an answer continues one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadCost>,
    /// Under which conditions the command would run, where it is about a repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<RepairConditions>,
}

impl Shown {
    /// What is different after this answer.
    pub fn changes(&self, answer: Answer) -> Vec<Changed> {
        let choice = self.choices.iter().find(|one| one.answer == answer);
        choice.map_or_else(Vec::new, |one| one.changes.clone())
    }

    /// Whether this answer makes sense; any does where nothing is said.
    pub fn allows(&self, answer: Answer) -> bool {
        self.choices.is_empty() || self.choices.iter().any(|one| one.answer == answer)
    }
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// What.
    pub what: String,
    /// Why it did not help.
    #[serde(rename = "why")]
    pub why: String,
}

/// An answer that makes sense, and what it will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The answer.
    pub answer: Answer,
    /// What will happen.
    #[serde(rename = "does")]
    pub does: String,
    /// What is different then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// What that is expected to cost more, in USD, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// What counts as answered when nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// When the time is over.
    pub at: Timestamp,
    /// The answer that counts then.
    pub answer: Answer,
}
