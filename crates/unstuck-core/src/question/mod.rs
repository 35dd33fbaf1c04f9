//! What a person is asked, and what they can answer.
//!
//! A question tells on one screen all that is needed for an answer, so that whoever shows it, be it a terminal, a page
//! or a message on a phone, has to look nothing up. Only answers that make sense for it are offered, each with what it
//! will do.

mod answer;
mod choices;

pub use answer::Answer;
pub use choices::{Circumstances, choices};

use serde::{Deserialize, Serialize};

use crate::moment::Timestamp;

/// What is shown of a question beside its kind and its reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// What was being done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// The line of the failure that tells most.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// What was tried before, and why it did not help.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The command that is proposed, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What can be answered, the likeliest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// What.
    pub what: String,
    /// Why it did not help.
    pub why: String,
}

/// An answer that makes sense, and what it will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The answer.
    pub answer: Answer,
    /// What will happen.
    pub does: String,
}

/// What counts as answered when nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// When the time is over.
    pub at: Timestamp,
    /// The answer that counts then.
    pub answer: Answer,
}

impl Shown {
    /// Whether this answer makes sense; any does where nothing is said.
    pub fn allows(&self, answer: Answer) -> bool {
        self.choices.is_empty() || self.choices.iter().any(|one| one.answer == answer)
    }
}

#[cfg(test)]
mod tests;
