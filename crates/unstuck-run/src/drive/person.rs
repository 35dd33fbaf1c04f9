//! Questions to people about a session, each with all that is needed to answer it.

use unstuck_core::Timestamp;
use unstuck_core::action::shell_quote;
use unstuck_core::decision::{Capability, CostEstimate, Proposed};
use unstuck_core::event::RecoveryEscalated;
use unstuck_core::guard::show;
use unstuck_core::question::{self, Choice, Circumstances, Deadline, NextModel, Shown};

use super::asking::Asking;
use super::engine::Engine;
use super::input::Input;
use super::log::Log;
use crate::process::Recorded;

impl Engine<'_> {
    /// Asks a person, and tells them all that is known.
    pub(super) fn ask(&self, log: &mut Log<'_, '_>, asking: Asking) {
        let now = self.clock.at();
        let repair = asking.proposed.as_ref().and_then(Proposed::repair);
        let repair = repair.map(str::to_owned);
        let shown = self.shown(log, &asking, repair.as_deref(), now);
        let asked = RecoveryEscalated {
            session: Some(log.recovery().spec().session.clone()),
            id: question_id(log),
            question: asking.question,
            trigger: asking.question.trigger().into(),
            kind: asking.kind,
            why: asking.why,
            reason: asking.reason,
            awaiting: "human".into(),
            proposed: asking.proposed,
            cost: asking.cost,
            repair,
            budget: asking.budget,
            shown,
        };
        log.note(now, Box::new(asked));
    }

    fn shown(
        &self,
        log: &Log<'_, '_>,
        asking: &Asking,
        repair: Option<&str>,
        now: Timestamp,
    ) -> Shown {
        let recovery = log.recovery();
        let spec = recovery.spec();
        let can = self.capabilities(spec);
        let command = repair.and_then(|id| {
            log.journal()
                .know(|run| Some(run.repairs.named(id)?.proposed.command.clone()))
        });
        let from = recovery.model();
        let next = from.filter(|_| can.has(Capability::Model));
        let next = next.and_then(|from| Some((from, self.next_model(asking, from)?)));
        let estimate = next
            .as_ref()
            .map(|(from, to)| recovery.dearer(self.knowledge.catalog(), from, to));
        let unrepeatable = self.why_unrepeatable(log);
        let choices = question::choices(
            asking.why,
            &Circumstances {
                repair: command.as_deref(),
                role: log.as_part().map(|part| part.role.as_str()),
                iterations: None,
                settings: 0,
                budget: asking.budget.as_ref(),
                unrepeatable: unrepeatable.is_some(),
                words: can.has(Capability::Prompt),
                model: next.as_ref().map(|(from, to)| NextModel {
                    from,
                    to,
                    cost: estimate.as_ref().and_then(CostEstimate::usd),
                }),
            },
        );
        let failed = recovery.failure().map(|failed| &failed.diagnosis);
        let repairer = self.repairer.as_ref();
        let conditions = repairer.and_then(|one| Some(one.conditions(command.as_deref()?)));
        Shown {
            doing: match log.as_part() {
                Some(part) => format!("{} ({})", part.role, line(&spec.command)),
                None => line(&spec.command),
            },
            role: log.as_part().map(|part| part.role.clone()),
            evidence: failed.map_or_else(String::new, |failed| failed.evidence.line.clone()),
            tried: recovery.tries().to_vec(),
            fingerprint: failed.map_or_else(String::new, |failed| failed.fingerprint.clone()),
            hash: question::binding(asking.why, &asking.reason, command.as_deref(), &choices),
            deadline: self.deadline(log, asking, now, &choices),
            command,
            choices,
            reread: recovery
                .reread_when_answered(self.knowledge.catalog())
                .filter(|_| unrepeatable.is_none()),
            unrepeatable,
            conditions,
            ..Shown::default()
        }
    }

    /// When an answer counts that nobody gave; an agent's conversation is never given up by default.
    fn deadline(
        &self,
        log: &Log<'_, '_>,
        asking: &Asking,
        now: Timestamp,
        choices: &[Choice],
    ) -> Option<Deadline> {
        let configured = self
            .patience
            .deadline(asking.question, asking.why, now, choices);
        let is_plain = self.role.is_none() && log.recovery().spec().agent.is_none();
        let expires = is_plain && asking.budget.is_none() && !log.options().wait;
        configured.or_else(|| {
            let usual = expires.then(|| question::plain_command_deadline(now, choices));
            usual.flatten()
        })
    }

    /// Why the command cannot be run again once this process ends, if it cannot.
    fn why_unrepeatable(&self, log: &Log<'_, '_>) -> Option<String> {
        let recovery = log.recovery();
        if let Some(why) = &recovery.spec().unrepeatable {
            return Some(why.clone());
        }
        let is_lost = self.stdin.recorded() == Recorded::TooLarge;
        if self.role.is_some() || (log.options().wait && !is_lost) {
            return None;
        }
        let input = Input::of(self.state, recovery.id()).again();
        input.err().map(str::to_owned)
    }

    /// The model that is asked about, or else the next stronger one.
    fn next_model(&self, asking: &Asking, from: &str) -> Option<String> {
        let changes = asking.proposed.iter().flat_map(|one| &one.changes);
        let mut proposed = changes.filter_map(|change| change.model());
        let next = || self.knowledge.catalog().next(from).ok();
        let to = proposed.next().map(|(_, to)| to).or_else(next)?;
        Some(to.to_owned())
    }
}

/// The id of a question about a session: that of the run where it is the only one.
fn question_id(log: &Log<'_, '_>) -> String {
    let recovery = log.recovery();
    let number = recovery.questions() + 1;
    match log.as_part() {
        Some(_) => format!("{}-e{number}", recovery.spec().session.as_str()),
        None => format!("{}-e{number}", recovery.id()),
    }
}

/// A command line as a person would type it, on one line.
fn line(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| shell_quote(word)).collect();
    show(&words.join(" "))
}
