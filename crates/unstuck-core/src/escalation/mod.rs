//! Escalations to a human and their answers.
//!
//! An escalation shows everything needed for an answer on one screen, so that a terminal, a web page or a phone message
//! needs no further lookup. Only answers that can work are offered, each with its effect.

mod answer_options;
mod open_escalations;

pub use answer_options::{AnswerOptionsContext, StrongerModel, answer_options, offered_options};
pub use open_escalations::OpenEscalations;

pub use crate::event::{
    AnswerOption, EscalationAnswer, EscalationDeadline, EscalationDetails, EscalationPriorAttempt,
};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::EscalationReason;
use crate::event::EscalationKind;
use crate::time::Timestamp;

/// The deadlines and default answers of escalations, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EscalationDeadlinePolicy {
    /// The deadline and default answer for each escalation kind that has one.
    pub deadlines: BTreeMap<EscalationKind, (Duration, EscalationAnswer)>,
}

impl EscalationDeadlinePolicy {
    /// Returns the deadline and default answer of an escalation opened now; only an offered answer can be the default.
    ///
    /// A budget is raised by a human's answer and never by default.
    pub fn deadline_for(
        &self,
        question: EscalationKind,
        why: EscalationReason,
        now: Timestamp,
        choices: &[AnswerOption],
    ) -> Option<EscalationDeadline> {
        let (after, answer) = *self.deadlines.get(&question)?;
        let makes_sense = choices.iter().any(|one| one.answer == answer);
        let raises = why == EscalationReason::MaxCost && answer.continues();
        (makes_sense && !raises).then(|| EscalationDeadline {
            at: now.after(after),
            answer,
        })
    }
}

/// The time after which the escalation of a plain command expires, unless configured otherwise.
const PLAIN_COMMAND_EXPIRY: Duration = Duration::from_secs(24 * 3600);

/// Returns the default deadline of the escalation of a plain command, which is not an agent's conversation: it is
/// aborted then.
pub fn plain_command_deadline(
    now: Timestamp,
    choices: &[AnswerOption],
) -> Option<EscalationDeadline> {
    let can_abort = choices
        .iter()
        .any(|one| one.answer == EscalationAnswer::Abort);
    can_abort.then(|| EscalationDeadline {
        at: now.after(PLAIN_COMMAND_EXPIRY),
        answer: EscalationAnswer::Abort,
    })
}

/// Returns the hash that an answer binds to: it covers everything that determines the effect of the answer.
pub fn binding_hash(
    why: EscalationReason,
    reason: &str,
    command: Option<&str>,
    choices: &[AnswerOption],
) -> String {
    let mut text = format!("{why:?}\0{reason}\0{}", command.unwrap_or_default());
    for choice in choices {
        text.push_str(&format!("\0{}\0{}", choice.answer, choice.effect));
    }
    // FNV-1a is enough to distinguish escalations; the command policy's own hash binds what may run.
    let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{mixed:016x}")
}

#[cfg(test)]
mod tests;
