//! What a person is asked, and what they can answer.
//!
//! A question tells on one screen all that is needed for an answer, so that whoever shows it, be it a terminal, a page
//! or a message on a phone, has to look nothing up. Only answers that make sense for it are offered, each with what it
//! will do.

mod answer_options;
mod open_escalations;

pub use answer_options::{EscalationContext, NextModel, answer_options, offered_options};
pub use open_escalations::OpenEscalations;

pub use crate::event::{
    AnswerOption, EscalationAnswer, EscalationDeadline, EscalationDetails, PriorAttempt,
};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::EscalationReason;
use crate::event::EscalationKind;
use crate::time::Timestamp;

/// How long is waited for a person, and what counts as answered then; by what is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadlinePolicy {
    /// For each kind of question that is not waited for without end.
    pub deadlines: BTreeMap<EscalationKind, (Duration, EscalationAnswer)>,
}

impl DeadlinePolicy {
    /// What counts when nobody answers a question that is asked now; only what makes sense for it.
    ///
    /// A budget is raised by a person and never by the lack of one.
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

/// How long the escalation of a plain command stays open, unless the configuration says otherwise.
const PLAIN_COMMAND_EXPIRY: Duration = Duration::from_secs(24 * 3600);

/// When the escalation of a plain command, which is no agent's conversation, expires by default: it is aborted then.
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

/// What an answer binds to: everything about a question that decides what the answer does.
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
    // FNV-1a: it tells two questions apart; what may run is bound by the guard's own hash.
    let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{mixed:016x}")
}

#[cfg(test)]
mod tests;
