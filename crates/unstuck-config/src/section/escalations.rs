//! `[escalations]`: deadlines for human input, and who may answer.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unstuck_core::escalation::{EscalationAnswer, EscalationDeadlinePolicy};
use unstuck_core::event::EscalationKind;

use super::duration;

/// `[escalations]`: default answers for requests that are not answered in time, and who may answer them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct EscalationsSection {
    /// A failure that is fatal or whose strategies are exhausted.
    pub hiccup: Option<TimeoutAnswer>,
    /// A repair that needs approval.
    pub recovery_approval_required: Option<TimeoutAnswer>,
    /// A more expensive model, or a budget that is exhausted.
    pub cost_confirmation: Option<TimeoutAnswer>,
    /// An agent that is stuck in a loop.
    pub stuck: Option<TimeoutAnswer>,
    /// Users who may give each answer, by user name; everybody for answers that are not listed.
    pub answerers: BTreeMap<AnswerName, Vec<String>>,
}

/// The default answer after a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table like { after = \"8h\", answer = \"skip\" }"
)]
pub struct TimeoutAnswer {
    /// Time to wait.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub after: Duration,
    /// Answer that applies then.
    pub answer: DefaultAnswer,
}

/// An answer that can apply without a human; approval is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultAnswer {
    /// Do not perform the proposed action; continue.
    Reject,
    /// Retry.
    Resolve,
    /// Skip the step.
    Skip,
    /// Abort the run.
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
    /// Perform the proposed action.
    Approve,
    /// Do not perform it; continue.
    Reject,
    /// Continue after a manual fix.
    Resolve,
    /// Retry with instructions.
    Retry,
    /// Retry with a stronger model.
    Escalate,
    /// Skip the step.
    Skip,
    /// Abort the run.
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

impl EscalationsSection {
    /// Returns the deadlines and default answers.
    pub fn deadline_policy(&self) -> EscalationDeadlinePolicy {
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
        EscalationDeadlinePolicy {
            deadlines: ends.collect(),
        }
    }

    /// Returns the users who may give this answer; `None` if everybody may.
    pub fn answerers(&self, answer: EscalationAnswer) -> Option<&[String]> {
        let mut all = self.answerers.iter();
        let found = all.find(|(name, _)| name.answer() == answer);
        found.map(|(_, people)| people.as_slice())
    }
}
