//! Creates escalations of a session, with everything that is needed to answer them.

use unstuck_core::Timestamp;
use unstuck_core::command_policy::sanitize;
use unstuck_core::decision::{
    CostEstimate, EscalationReason, ProposedAction, RetryChangeCapability,
};
use unstuck_core::escalation::{
    self, AnswerOption, AnswerOptionsContext, EscalationDeadline, EscalationDetails, StrongerModel,
};
use unstuck_core::event::{EscalationKind, EscalationOpened, EscalationResolved};
use unstuck_core::recovery_plan::shell_quote;

use super::escalation_draft::{
    EscalationDraft, bind_to_settings, run_escalation_details, settings_changed_reason,
};
use super::resume::ResumedSettings;
use super::session_event_log::SessionEventLog;
use super::session_runner::SessionRunner;
use super::stored_stdin::StoredStdin;
use crate::process::KnownStdinContents;

impl SessionRunner<'_> {
    /// Escalates to a human, with all known details.
    pub(super) fn escalate(&self, log: &mut SessionEventLog<'_, '_>, asking: EscalationDraft) {
        let now = self.clock.timestamp();
        let repair = asking.proposed.as_ref().and_then(ProposedAction::repair_id);
        let repair = repair.map(str::to_owned);
        let shown = self.escalation_details(log, &asking, repair.as_deref(), now);
        let asked = EscalationOpened {
            session: Some(log.recovery().spec().session.clone()),
            id: escalation_id(log),
            escalation_kind: asking.escalation_kind,
            trigger: asking.escalation_kind.trigger().into(),
            kind: asking.kind,
            reason_code: asking.why,
            reason: asking.reason,
            awaiting: "human".into(),
            proposed: asking.proposed,
            cost: asking.cost,
            repair,
            budget: asking.budget,
            details: shown,
        };
        log.note(now, Box::new(asked));
    }

    /// Asks about changed project settings, or withdraws the question if nothing differs any more. The run continues.
    pub(super) fn ask_about_settings(
        &self,
        log: &mut SessionEventLog<'_, '_>,
        settings: &ResumedSettings,
    ) {
        let now = self.clock.timestamp();
        let open = log.journal().with_view(|run| {
            let mut open = run.open_escalations.iter();
            open.find(|asked| asked.is_about_settings()).cloned()
        });
        if settings.held.is_empty() {
            if let Some(open) = open {
                log.note(now, EscalationResolved::new_withdrawal(&open));
            }
            return;
        }
        let kind = EscalationKind::RecoveryApprovalRequired;
        let reason = settings_changed_reason(&settings.held);
        let asking = EscalationDraft::without_failure(kind, EscalationReason::Trust, reason);
        let circumstances = AnswerOptionsContext {
            settings: settings.held.len(),
            ..AnswerOptionsContext::default()
        };
        let doing = display_command(&log.recovery().spec().command);
        let patience = self.deadline_policy;
        let mut details = run_escalation_details(&asking, doing, &circumstances, patience, now);
        bind_to_settings(&mut details, &settings.held, &settings.written);
        let number = || format!("{}-t{}", log.recovery().id(), now.millis());
        let asked = EscalationOpened {
            session: None,
            id: open.map_or_else(number, |open| open.id),
            escalation_kind: kind,
            trigger: kind.trigger().into(),
            kind: asking.kind,
            reason_code: asking.why,
            reason: asking.reason,
            awaiting: "human".into(),
            proposed: None,
            cost: None,
            repair: None,
            budget: None,
            details,
        };
        log.note(now, Box::new(asked));
    }

    fn escalation_details(
        &self,
        log: &SessionEventLog<'_, '_>,
        asking: &EscalationDraft,
        repair: Option<&str>,
        now: Timestamp,
    ) -> EscalationDetails {
        let recovery = log.recovery();
        let spec = recovery.spec();
        let can = self.capabilities(spec);
        let command = repair.and_then(|id| {
            log.journal()
                .with_view(|run| Some(run.repairs.get(id)?.proposed.command.clone()))
        });
        let from = recovery.model();
        let next = from.filter(|_| can.has(RetryChangeCapability::Model));
        let next = next.and_then(|from| Some((from, self.suggested_model(asking, from)?)));
        let estimate = next
            .as_ref()
            .map(|(from, to)| recovery.extra_cost(self.knowledge.catalog(), from, to));
        let unrepeatable = self.unrepeatable_reason(log);
        let choices = escalation::answer_options(
            asking.why,
            &AnswerOptionsContext {
                repair: command.as_deref(),
                role: log.role_instance().map(|part| part.role.as_str()),
                iterations: None,
                settings: 0,
                budget: asking.budget.as_ref(),
                is_unrepeatable: unrepeatable.is_some(),
                accepts_message: can.has(RetryChangeCapability::Prompt),
                model: next.as_ref().map(|(from, to)| StrongerModel {
                    from,
                    to,
                    cost: estimate.as_ref().and_then(CostEstimate::usd),
                }),
            },
        );
        let failed = recovery.last_failure().map(|failed| &failed.diagnosis);
        let repairer = self.repairer.as_ref();
        let conditions = repairer.and_then(|one| Some(one.repair_conditions(command.as_deref()?)));
        EscalationDetails {
            activity: match log.role_instance() {
                Some(part) => format!("{} ({})", part.role, display_command(&spec.command)),
                None => display_command(&spec.command),
            },
            role: log.role_instance().map(|part| part.role.clone()),
            evidence: failed.map_or_else(String::new, |failed| failed.evidence.line.clone()),
            prior_attempts: recovery.prior_attempts().to_vec(),
            fingerprint: failed.map_or_else(String::new, |failed| failed.fingerprint.clone()),
            hash: escalation::binding_hash(
                asking.why,
                &asking.reason,
                command.as_deref(),
                &choices,
            ),
            deadline: self.escalation_deadline(log, asking, now, &choices),
            command,
            options: choices,
            reread: recovery
                .reread_cost_when_answered(self.knowledge.catalog())
                .filter(|_| unrepeatable.is_none()),
            unrepeatable_reason: unrepeatable,
            conditions,
            ..EscalationDetails::default()
        }
    }

    /// Returns the deadline of the default answer; by default, an agent's conversation is never given up.
    fn escalation_deadline(
        &self,
        log: &SessionEventLog<'_, '_>,
        asking: &EscalationDraft,
        now: Timestamp,
        choices: &[AnswerOption],
    ) -> Option<EscalationDeadline> {
        let configured =
            self.deadline_policy
                .deadline_for(asking.escalation_kind, asking.why, now, choices);
        let is_plain = self.role.is_none() && log.recovery().spec().agent.is_none();
        let expires = is_plain && asking.budget.is_none() && !log.options().wait;
        configured.or_else(|| {
            let usual = expires.then(|| escalation::plain_command_deadline(now, choices));
            usual.flatten()
        })
    }

    /// Returns the reason why the command cannot be re-run after this process ends, if there is one.
    fn unrepeatable_reason(&self, log: &SessionEventLog<'_, '_>) -> Option<String> {
        let recovery = log.recovery();
        if let Some(why) = &recovery.spec().unrepeatable_reason {
            return Some(why.clone());
        }
        let is_lost = self.stdin.contents() == KnownStdinContents::TooLarge;
        if self.role.is_some() || (log.options().wait && !is_lost) {
            return None;
        }
        let input = StoredStdin::new(self.state, recovery.id()).restore();
        input.err().map(str::to_owned)
    }

    /// Returns the model in question, or else the next stronger one.
    fn suggested_model(&self, asking: &EscalationDraft, from: &str) -> Option<String> {
        let changes = asking.proposed.iter().flat_map(|one| &one.changes);
        let mut proposed = changes.filter_map(|change| change.model_switch());
        let next = || self.knowledge.catalog().next_model(from).ok();
        let to = proposed.next().map(|(_, to)| to).or_else(next)?;
        Some(to.to_owned())
    }
}

/// Returns the id of a session's escalation: that of the run if it has only one session.
fn escalation_id(log: &SessionEventLog<'_, '_>) -> String {
    let recovery = log.recovery();
    let number = recovery.escalation_count() + 1;
    match log.role_instance() {
        Some(_) => format!("{}-e{number}", recovery.spec().session.as_str()),
        None => format!("{}-e{number}", recovery.id()),
    }
}

/// Formats a command line as a human would type it, on one line.
fn display_command(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| shell_quote(word)).collect();
    sanitize(&words.join(" "))
}
