//! A configuration that was changed while the loop ran is taken over between two iterations, or refused.

use std::rc::Rc;

use unstuck_core::Event;
use unstuck_core::decision::AskWhy;
use unstuck_core::event::{ConfigRejected, ConfigReloaded, EscalationKind, RecoveryEscalated};
use unstuck_core::pipeline::changes;
use unstuck_core::question::Circumstances;

use super::resume::kept_budgets;
use super::{Conductor, Plan, Stage};
use crate::drive::asking::Asking;
use crate::drive::error::RunError;
use crate::drive::journal::Journal;
use crate::drive::repair::RepairTerms;

impl Conductor<'_> {
    /// Takes over what was changed; what cannot be read is refused, and the loop goes on as it was.
    pub(super) async fn reload(&self, stage: &Stage<'_, '_>) -> Result<(), RunError> {
        self.take_over(stage, |_, now| now).await
    }

    /// Takes over what was changed about repairs and people while a person is waited for. The roles are at work; what
    /// was changed about them counts from the next iteration on.
    pub(super) async fn reload_waiting(&self, stage: &Stage<'_, '_>) -> Result<(), RunError> {
        let keep_roles = |before: &Plan, now: Plan| Plan {
            repair: now.repair,
            untrusted: now.untrusted,
            patience: now.patience,
            ..before.clone()
        };
        self.take_over(stage, keep_roles).await
    }

    async fn take_over(
        &self,
        stage: &Stage<'_, '_>,
        what: impl FnOnce(&Plan, Plan) -> Plan,
    ) -> Result<(), RunError> {
        let journal = stage.journal;
        let before = self.plan();
        let path = before.config_path.as_ref();
        let path = path
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let read = (self.reload)().and_then(|now| same_roles(&before, now));
        // It is read several times; the same reason is told once.
        let rejected = read.as_ref().err().cloned();
        if stage.rejected.replace(rejected.clone()) == rejected && rejected.is_some() {
            return Ok(());
        }
        let events = match read {
            Err(error) => vec![ConfigRejected { path, error }.into()],
            Ok(mut now) => {
                now.command.clone_from(&before.command);
                now.task.clone_from(&before.task);
                let raised = now.keep_budgets(&before.described(self.knowledge.version));
                if !raised.is_empty() {
                    self.tell(|reporter| reporter.note(&kept_budgets(&raised)));
                }
                let now = what(&before, now);
                if now == *before {
                    return Ok(());
                }
                self.taken_over(journal, &before, now, path)
            }
        };
        self.write(journal, events).await?;
        Ok(())
    }

    fn taken_over(
        &self,
        journal: &Journal<'_>,
        before: &Plan,
        now: Plan,
        path: String,
    ) -> Vec<Event> {
        let (then, described) = (
            before.described(self.knowledge.version),
            now.described(self.knowledge.version),
        );
        let of_roles = changes(&then, &described).into_iter().flat_map(|change| {
            let who = change.role.unwrap_or_else(|| "all roles".to_owned());
            let what = change.what.into_iter();
            what.map(move |what| format!("{who}: {what}"))
        });
        let of_repairs = RepairTerms::changes(before.repair.as_ref(), now.repair.as_ref());
        let reloaded = ConfigReloaded {
            path,
            changes: of_roles.chain(of_repairs).collect(),
            pipeline: Some(Box::new(described)),
        };
        let is_wider = now.untrusted != before.untrusted && !now.untrusted.is_empty();
        let question = is_wider.then(|| self.about_trust(journal, &now.untrusted));
        self.plan.replace(Rc::new(now));
        let events = [Event::from(reloaded)].into_iter();
        events.chain(question.map(Event::from)).collect()
    }

    /// The project allows more than before, and nobody has trusted that: it does not count until somebody does.
    fn about_trust(&self, journal: &Journal<'_>, wider: &[String]) -> Box<RecoveryEscalated> {
        let reason = format!(
            "the project's [recovery] was widened while it ran, which does not count until `unstuck trust`: {}",
            wider.join("; ")
        );
        let question = EscalationKind::RecoveryApprovalRequired;
        let asking = Asking::about(question, AskWhy::Trust, reason);
        let id = format!("{}-t{}", journal.run(), self.clock.at().millis());
        self.question(id, asking, &Circumstances::default(), None)
    }
}

/// What a loop consists of cannot change while it runs.
fn same_roles(before: &Plan, now: Plan) -> Result<Plan, String> {
    let ids = |plan: &Plan| -> Vec<String> {
        let left_out = |id: &String| !before.left_out.contains(id);
        let ids = plan.roles.iter().map(|role| role.id.clone());
        ids.filter(left_out).collect()
    };
    let (then, named) = (ids(before), ids(&now));
    match then == named {
        true => Ok(now),
        false => Err(format!(
            "the roles of a running loop and their order cannot change (they are {}, not {}); `unstuck run` starts anew with them",
            then.join(", "),
            named.join(", ")
        )),
    }
}
