//! What a person is asked, and what they can answer.
//!
//! A question tells on one screen all that is needed for an answer, so that whoever shows it, be it a terminal, a page
//! or a message on a phone, has to look nothing up. Only answers that make sense for it are offered, each with what it
//! will do.

mod answer;
mod choices;
mod open;

pub use answer::Answer;
pub use choices::{Circumstances, NextModel, choices};
pub use open::OpenQuestions;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decision::{AskWhy, Changed};
use crate::event::EscalationKind;
use crate::moment::Timestamp;

/// What is shown of a question beside its kind and its reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// What was being done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// The role that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The answer.
    pub answer: Answer,
    /// What will happen.
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

/// How long is waited for a person, and what counts as answered then; by what is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patience {
    /// For each kind of question that is not waited for without end.
    pub ends: BTreeMap<EscalationKind, (Duration, Answer)>,
}

impl Patience {
    /// What counts when nobody answers a question that is asked now; only what makes sense for it.
    pub fn deadline(
        &self,
        question: EscalationKind,
        now: Timestamp,
        choices: &[Choice],
    ) -> Option<Deadline> {
        let (after, answer) = *self.ends.get(&question)?;
        let makes_sense = choices.iter().any(|one| one.answer == answer);
        makes_sense.then(|| Deadline {
            at: now.after(after),
            answer,
        })
    }
}

/// What an answer binds to: everything about a question that decides what the answer does.
pub fn binding(why: AskWhy, reason: &str, command: Option<&str>, choices: &[Choice]) -> String {
    let mut text = format!("{why:?}\0{reason}\0{}", command.unwrap_or_default());
    for choice in choices {
        text.push_str(&format!("\0{}\0{}", choice.answer, choice.does));
    }
    // FNV-1a: it tells two questions apart; what may run is bound by the guard's own hash.
    let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{mixed:016x}")
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

#[cfg(test)]
mod tests;
