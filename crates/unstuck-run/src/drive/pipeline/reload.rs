//! A configuration that was changed while the loop ran is taken over between two iterations, or refused.

use std::rc::Rc;

use unstuck_core::Event;
use unstuck_core::decision::AskWhy;
use unstuck_core::event::{ConfigRejected, ConfigReloaded, EscalationKind, RecoveryResolved};
use unstuck_core::pipeline::changes;
use unstuck_core::question::Circumstances;
use unstuck_core::settings::ProjectSettings;

use super::resume::kept_budgets;
use super::{Conductor, Plan, Stage};
use crate::blobs::{Blobs, hash};
use crate::drive::asking::Asking;
use crate::drive::error::RunError;
use crate::drive::journal::Journal;
use crate::drive::repair::RepairTerms;

impl Conductor<'_> {
    /// Takes over what was changed; what cannot be read is refused, and the loop goes on as it was.
    pub(super) async fn reload(&self, stage: &Stage<'_, '_>) -> Result<(), RunError> {
        let approved = self.approved_settings(stage.journal);
        self.take_over(stage, approved, |_, now| now).await
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
        self.take_over(stage, None, keep_roles).await
    }

    /// What a person has approved of the project's files since they were last taken over.
    fn approved_settings(&self, journal: &Journal<'_>) -> Option<ProjectSettings> {
        let name = self.know(journal, |pipeline| {
            pipeline.approved_settings().map(str::to_owned)
        })?;
        let content = Blobs::at(self.state).get(&name).ok();
        let settings = content.and_then(|content| ProjectSettings::from_content(&content));
        if settings.is_none() {
            let told = "the configuration that you approved cannot be read, and is not used";
            self.tell(|reporter| reporter.note(told));
        }
        settings
    }

    /// Keeps what the run goes by of the project's files, so that a later process can compare it. Where that is not possible
    /// the run goes on all the same, and a later process asks.
    pub(super) fn keep_settings(&self, plan: &Plan) {
        let settings = &plan.project_settings;
        let blobs = Blobs::at(self.state);
        let in_effect = settings.in_effect.iter();
        let written = (!settings.held.is_empty()).then_some(&settings.written);
        for kept in in_effect.chain(written) {
            if let Err(error) = blobs.put(kept.content().as_bytes()) {
                self.tell(|reporter| reporter.note(&error.to_string()));
            }
        }
    }

    async fn take_over(
        &self,
        stage: &Stage<'_, '_>,
        approved: Option<ProjectSettings>,
        what: impl FnOnce(&Plan, Plan) -> Plan,
    ) -> Result<(), RunError> {
        let journal = stage.journal;
        let before = self.plan();
        let path = before.config_path.as_ref();
        let path = path
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let is_approved = approved.is_some();
        let accepted = approved.or_else(|| before.project_settings.in_effect.clone());
        let read = (self.reload)(accepted.as_ref()).and_then(|now| same_roles(&before, now));
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
                // What a person has approved with its difference they have seen.
                if !is_approved {
                    let raised = now.keep_budgets(&before.described(self.knowledge.version));
                    if !raised.is_empty() {
                        self.tell(|reporter| reporter.note(&kept_budgets(&raised)));
                    }
                }
                let now = what(&before, now);
                if now == *before {
                    return Ok(());
                }
                self.taken_over(journal, &before, now, path, is_approved)
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
        is_approved: bool,
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
        let mut told: Vec<_> = of_roles.chain(of_repairs).collect();
        if is_approved && told.is_empty() {
            told.push("what you approved".to_owned());
        }
        self.keep_settings(&now);
        let question = self.about_changes(journal, Some(before), &now);
        let mut events = Vec::new();
        if is_approved || !only_waits(before, &now) {
            let reloaded = ConfigReloaded {
                path,
                changes: told,
                pipeline: Some(Box::new(described)),
            };
            events.push(Event::from(reloaded));
        }
        events.extend(question);
        self.plan.replace(Rc::new(now));
        events
    }

    /// One question about all that the project says differently than before, and that does not count until somebody
    /// agrees; or the end of the one that was asked, where nothing is different any more.
    pub(super) fn about_changes(
        &self,
        journal: &Journal<'_>,
        before: Option<&Plan>,
        now: &Plan,
    ) -> Option<Event> {
        let settings = &now.project_settings;
        let held_before = before.map_or(&[][..], |plan| &plan.project_settings.held);
        let untrusted_before = before.map_or(&now.untrusted, |plan| &plan.untrusted);
        let is_new = settings.held != held_before && !settings.held.is_empty();
        let is_wider = now.untrusted != *untrusted_before && !now.untrusted.is_empty();
        let open = journal.know(|run| {
            let mut questions = run.questions.iter();
            questions.find(|asked| asked.is_about_settings()).cloned()
        });
        if settings.held.is_empty() && !held_before.is_empty() && !is_wider {
            let withdrawn = open.map(|asked| RecoveryResolved::withdrawing(&asked));
            return withdrawn.map(Event::from);
        }
        if !is_new && !is_wider {
            return None;
        }
        let mut reasons = Vec::new();
        if !settings.held.is_empty() {
            let changes: Vec<_> = settings.held.iter().map(ToString::to_string).collect();
            reasons.push(format!(
                "the project's configuration was changed while the run was under way, which does not count until it is approved: {}",
                changes.join("; ")
            ));
        }
        if !now.untrusted.is_empty() && (is_wider || before.is_none()) {
            reasons.push(format!(
                "the project's [recovery] was widened while it ran, which does not count until `unstuck trust`: {}",
                now.untrusted.join("; ")
            ));
        }
        let question = EscalationKind::RecoveryApprovalRequired;
        let asking = Asking::about(question, AskWhy::Trust, reasons.join("; "));
        let circumstances = Circumstances {
            settings: settings.held.len(),
            ..Circumstances::default()
        };
        // A question that is still open is asked anew: nobody approves what is not in the file any more.
        let number = || format!("{}-t{}", journal.run(), self.clock.at().millis());
        let id = open.map_or_else(number, |asked| asked.id);
        let mut asked = self.question(id, asking, &circumstances, None);
        if !settings.held.is_empty() {
            let accepts = hash(settings.written.content().as_bytes());
            // The answer is bound to what would count, to the last byte.
            let bytes = accepts.trim_start_matches("sha256:");
            asked.shown.hash = format!("{}{bytes}", asked.shown.hash);
            asked.shown.settings.clone_from(&settings.held);
            asked.shown.accepts = Some(accepts);
        }
        Some(asked.into())
    }
}

/// Whether nothing is different but what waits for a person.
fn only_waits(before: &Plan, now: &Plan) -> bool {
    let in_effect = |plan: &Plan| plan.project_settings.in_effect.clone();
    let waiting = Plan {
        project_settings: before.project_settings.clone(),
        untrusted: before.untrusted.clone(),
        ..now.clone()
    };
    waiting == *before && in_effect(before) == in_effect(now)
}

/// What a loop consists of cannot change while it runs.
fn same_roles(before: &Plan, now: Plan) -> Result<Plan, String> {
    let ids = |plan: &Plan| -> Vec<String> {
        let left_out = |id: &String| !before.left_out.contains(id);
        let ids = plan.project_settings.written_roles.iter().cloned();
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
