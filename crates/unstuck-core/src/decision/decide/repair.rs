//! Level 2 by a repair: before any other strategy if it may run, after all of them if it needs approval.

use std::time::Duration;

use crate::duration::HumanDuration;
use crate::failure::RecoveryLevel;

use super::DecisionBuilder;
use super::decision_types::{
    ConcreteAttemptChange, Decision, EscalationReason, ProposedAction, RecoveryAction,
};
use super::input::{AvailableRepair, OperationRepeatability, RepairPermission};

/// The name of the strategy.
pub(super) const REPAIR: &str = "repair";

impl DecisionBuilder<'_, '_> {
    /// Chooses the matching repair, or escalates it if its proposer waits for an answer.
    pub(super) fn try_repair(&mut self) -> Option<Decision> {
        let offer = self.input.repair?;
        match offer.permission {
            // An operation that may have had an effect is not repeated, whatever the repair does.
            _ if self.input.repeatable == OperationRepeatability::Unsafe => None,
            RepairPermission::Granted { after } => Some(self.run_repair(offer, after)),
            RepairPermission::AskNow => Some(self.escalate_repair(offer)),
            RepairPermission::AskLast => None,
        }
    }

    fn run_repair(&mut self, offer: AvailableRepair<'_>, after: Duration) -> Decision {
        let when = if after.is_zero() {
            String::new()
        } else {
            format!(" in {}", HumanDuration(after))
        };
        let reason = format!(
            "{}: repairing{when} with `{}` (repair {} of {}).",
            self.input.kind_knowledge.title, offer.command, offer.number, offer.max_auto
        );
        let action = RecoveryAction::Change {
            changes: vec![repair_change(offer)],
            delay: after,
            until: self.input.now.after(after),
        };
        Decision {
            strategy: Some(REPAIR.to_owned()),
            attempt: offer.number,
            max_attempts: offer.max_auto,
            ..self.finish(Some(RecoveryLevel::Alternative), action, reason)
        }
    }

    pub(super) fn escalate_repair(&mut self, offer: AvailableRepair<'_>) -> Decision {
        let reason = format!(
            "{}: `{}` may fix it; approval required.",
            self.input.kind_knowledge.title, offer.command
        );
        let proposed = ProposedAction {
            strategy: REPAIR.to_owned(),
            changes: vec![repair_change(offer)],
        };
        self.escalate_with(EscalationReason::Repair, Some(proposed), None, reason)
    }
}

/// True if a repair that needs approval is left and is proposed instead of the usual escalation.
pub(super) fn is_last_resort(offer: &AvailableRepair<'_>, why: EscalationReason) -> bool {
    offer.permission == RepairPermission::AskLast
        && matches!(
            why,
            EscalationReason::Exhausted | EscalationReason::Chain | EscalationReason::Fatal
        )
}

fn repair_change(offer: AvailableRepair<'_>) -> ConcreteAttemptChange {
    ConcreteAttemptChange::Repair {
        id: offer.id.to_owned(),
        command: offer.command.to_owned(),
    }
}
