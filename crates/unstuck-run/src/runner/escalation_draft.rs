//! What a person is asked.

use unstuck_core::decision::{CostEstimate, EscalationReason, ProposedAction};
use unstuck_core::escalation::{self, DeadlinePolicy, EscalationContext, EscalationDetails};
use unstuck_core::event::{BudgetReached, EscalationKind};
use unstuck_core::{Kind, Timestamp};

/// What a person is asked about a session.
pub(super) struct EscalationDraft {
    pub(super) escalation_kind: EscalationKind,
    pub(super) why: EscalationReason,
    pub(super) kind: Kind,
    pub(super) reason: String,
    pub(super) proposed: Option<ProposedAction>,
    pub(super) cost: Option<CostEstimate>,
    /// The budget that is used up, where it is about one.
    pub(super) budget: Option<BudgetReached>,
}

impl EscalationDraft {
    /// A question that is no answer to a failed attempt.
    pub(super) fn without_failure(
        escalation_kind: EscalationKind,
        why: EscalationReason,
        reason: String,
    ) -> Self {
        Self {
            escalation_kind,
            why,
            kind: Kind::None,
            reason,
            proposed: None,
            cost: None,
            budget: None,
        }
    }
}

/// What is shown of a question about the run as a whole.
pub(super) fn run_escalation_details(
    asking: &EscalationDraft,
    doing: String,
    circumstances: &EscalationContext<'_>,
    patience: &DeadlinePolicy,
    now: Timestamp,
) -> EscalationDetails {
    let choices = escalation::answer_options(asking.why, circumstances);
    let command = circumstances.repair;
    EscalationDetails {
        activity: doing,
        hash: escalation::binding_hash(asking.why, &asking.reason, command, &choices),
        deadline: patience.deadline_for(asking.escalation_kind, asking.why, now, &choices),
        command: command.map(str::to_owned),
        options: choices,
        ..EscalationDetails::default()
    }
}
