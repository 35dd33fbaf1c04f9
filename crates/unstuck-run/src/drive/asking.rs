//! What a person is asked.

use unstuck_core::decision::{AskWhy, CostEstimate, Proposed};
use unstuck_core::event::{BudgetReached, EscalationKind};
use unstuck_core::question::{self, Circumstances, Patience, Shown};
use unstuck_core::{Kind, Timestamp};

/// What a person is asked about a session.
pub(super) struct Asking {
    pub(super) question: EscalationKind,
    pub(super) why: AskWhy,
    pub(super) kind: Kind,
    pub(super) reason: String,
    pub(super) proposed: Option<Proposed>,
    pub(super) cost: Option<CostEstimate>,
    /// The budget that is used up, where it is about one.
    pub(super) budget: Option<BudgetReached>,
}

impl Asking {
    /// A question that is no answer to a failed attempt.
    pub(super) fn about(question: EscalationKind, why: AskWhy, reason: String) -> Self {
        Self {
            question,
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
pub(super) fn of_run(
    asking: &Asking,
    doing: String,
    circumstances: &Circumstances<'_>,
    patience: &Patience,
    now: Timestamp,
) -> Shown {
    let choices = question::choices(asking.why, circumstances);
    let command = circumstances.repair;
    Shown {
        doing,
        hash: question::binding(asking.why, &asking.reason, command, &choices),
        deadline: patience.deadline(asking.question, asking.why, now, &choices),
        command: command.map(str::to_owned),
        choices,
        ..Shown::default()
    }
}
