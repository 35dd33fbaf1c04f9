//! `[escalations]`: how long people are waited for, and who may answer.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unstuck_core::escalation::{DeadlinePolicy, EscalationAnswer};
use unstuck_core::event::EscalationKind;

use super::duration;

/// `[escalations]`: what happens to questions that nobody answers, and who may answer what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Escalations {
    /// A failure that is fatal, or whose chain is used up.
    pub hiccup: Option<TimeoutAnswer>,
    /// A repair that nobody has allowed yet.
    pub recovery_approval_required: Option<TimeoutAnswer>,
    /// A dearer model, or a budget that is used up.
    pub cost_confirmation: Option<TimeoutAnswer>,
    /// An agent that goes in circles.
    pub stuck: Option<TimeoutAnswer>,
    /// Who may give which answer, by the name of the user; everybody where an answer is left out.
    pub answerers: BTreeMap<AnswerName, Vec<String>>,
}

/// What counts when nobody answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table like { after = \"8h\", answer = \"skip\" }"
)]
pub struct TimeoutAnswer {
    /// How long is waited.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub after: Duration,
    /// What counts then.
    pub answer: DefaultAnswer,
}

/// What can count as answered when nobody has answered. Silence is no consent: nothing is approved by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultAnswer {
    /// What is proposed is not done, and it goes on.
    Reject,
    /// It is tried again.
    Resolve,
    /// It is left out.
    Skip,
    /// The run ends.
    Abort,
}

impl DefaultAnswer {
    fn answer(self) -> EscalationAnswer {
        match self {
            Self::Reject => EscalationAnswer::Reject,
            Self::Resolve => EscalationAnswer::Resolve,
            Self::Skip => EscalationAnswer::Skip,
            Self::Abort => EscalationAnswer::Abort,
        }
    }
}

/// An answer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AnswerName {
    /// Do what is proposed.
    Approve,
    /// Do not do it, and go on.
    Reject,
    /// It was seen to by hand.
    Resolve,
    /// Again, with words.
    Retry,
    /// Again, with a stronger model.
    Escalate,
    /// Leave it out.
    Skip,
    /// End the run.
    Abort,
}

impl AnswerName {
    const ALL: [(Self, EscalationAnswer); 7] = [
        (Self::Approve, EscalationAnswer::Approve),
        (Self::Reject, EscalationAnswer::Reject),
        (Self::Resolve, EscalationAnswer::Resolve),
        (Self::Retry, EscalationAnswer::Retry),
        (Self::Escalate, EscalationAnswer::SwitchModel),
        (Self::Skip, EscalationAnswer::Skip),
        (Self::Abort, EscalationAnswer::Abort),
    ];

    fn answer(self) -> EscalationAnswer {
        let found = Self::ALL.iter().find(|(name, _)| *name == self);
        found.map_or(EscalationAnswer::Resolve, |(_, answer)| *answer)
    }
}

impl Escalations {
    /// How long people are waited for.
    pub fn deadline_policy(&self) -> DeadlinePolicy {
        let endings = [
            (EscalationKind::Hiccup, self.hiccup),
            (
                EscalationKind::RecoveryApprovalRequired,
                self.recovery_approval_required,
            ),
            (EscalationKind::CostConfirmation, self.cost_confirmation),
            (EscalationKind::Stuck, self.stuck),
        ];
        let ends = endings.into_iter().filter_map(|(question, ending)| {
            let ending = ending?;
            Some((question, (ending.after, ending.answer.answer())))
        });
        DeadlinePolicy {
            deadlines: ends.collect(),
        }
    }

    /// Who alone may give this answer; none where everybody may.
    pub fn answerers(&self, answer: EscalationAnswer) -> Option<&[String]> {
        let mut all = self.answerers.iter();
        let found = all.find(|(name, _)| name.answer() == answer);
        found.map(|(_, people)| people.as_slice())
    }
}
