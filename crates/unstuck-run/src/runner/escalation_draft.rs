//! The draft of an escalation.

use unstuck_core::decision::{CostEstimate, EscalationReason, ProposedAction};
use unstuck_core::escalation::{
    self, AnswerOptionsContext, EscalationDeadlinePolicy, EscalationDetails,
};
use unstuck_core::event::{BudgetReached, EscalationKind};
use unstuck_core::project_settings_snapshot::ProjectSettingChange;
use unstuck_core::{FailureKind, Timestamp};

/// The draft of a session's escalation.
pub(super) struct EscalationDraft {
    pub(super) escalation_kind: EscalationKind,
    pub(super) why: EscalationReason,
    pub(super) kind: FailureKind,
    pub(super) reason: String,
    pub(super) proposed: Option<ProposedAction>,
    pub(super) cost: Option<CostEstimate>,
    /// The exhausted budget, if it is about one.
    pub(super) budget: Option<BudgetReached>,
}

impl EscalationDraft {
    /// Returns a draft that is not caused by a failed attempt.
    pub(super) fn without_failure(
        escalation_kind: EscalationKind,
        why: EscalationReason,
        reason: String,
    ) -> Self {
        Self {
            escalation_kind,
            why,
            kind: FailureKind::None,
            reason,
            proposed: None,
            cost: None,
            budget: None,
        }
    }
}

/// Binds an escalation about changed project settings to exactly these changes and contents, to the last byte.
pub(super) fn bind_to_settings(
    details: &mut EscalationDetails,
    changes: &[ProjectSettingChange],
    written: &str,
) {
    let bytes = written.trim_start_matches("sha256:");
    details.hash = format!("{}{bytes}", details.hash);
    details.settings = changes.to_vec();
    details.accepted_settings = Some(written.to_owned());
}

/// Returns the reason of an escalation about changed project settings.
pub(super) fn settings_changed_reason(changes: &[ProjectSettingChange]) -> String {
    let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
    format!(
        "the project's configuration changed during the run; the changes are ignored until approved: {}",
        changes.join("; ")
    )
}

/// Returns the details of an escalation about the whole run.
pub(super) fn run_escalation_details(
    asking: &EscalationDraft,
    doing: String,
    circumstances: &AnswerOptionsContext<'_>,
    patience: &EscalationDeadlinePolicy,
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
