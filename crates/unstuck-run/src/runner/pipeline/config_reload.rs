//! Reloads a configuration that was changed while the loop ran, between two iterations, or rejects it.

use std::rc::Rc;

use unstuck_core::Event;
use unstuck_core::decision::EscalationReason;
use unstuck_core::escalation::AnswerOptionsContext;
use unstuck_core::event::{ConfigRejected, ConfigReloaded, EscalationKind, EscalationResolved};
use unstuck_core::pipeline::role_changes;
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;

use super::resume::unapplied_budgets_warning;
use super::{PipelineExecution, PipelineRunner, PipelineSpec};
use crate::blobs::{BlobStore, content_hash};
use crate::runner::error::RunError;
use crate::runner::escalation_draft::{EscalationDraft, bind_to_settings, settings_changed_reason};
use crate::runner::repair::RepairSettings;
use crate::runner::run_event_log::RunEventLog;

impl PipelineRunner<'_> {
    /// Applies configuration changes; an invalid configuration is rejected and the loop continues unchanged.
    pub(super) async fn reload(&self, stage: &PipelineExecution<'_, '_>) -> Result<(), RunError> {
        let approved = self.newly_approved_settings(stage.journal);
        self.apply_reload(stage, approved, |_, now| now).await
    }

    /// Applies changes of repair rules and deadlines while the run waits for human input. Roles are running; their
    /// changes take effect in the next iteration.
    pub(super) async fn reload_waiting(
        &self,
        stage: &PipelineExecution<'_, '_>,
    ) -> Result<(), RunError> {
        let keep_roles = |before: &PipelineSpec, now: PipelineSpec| PipelineSpec {
            repair: now.repair,
            untrusted: now.untrusted,
            patience: now.patience,
            ..before.clone()
        };
        self.apply_reload(stage, None, keep_roles).await
    }

    /// Returns the project settings that a human has approved since the last reload.
    fn newly_approved_settings(
        &self,
        journal: &RunEventLog<'_>,
    ) -> Option<ProjectSettingsSnapshot> {
        let name = self.with_pipeline(journal, |pipeline| {
            pipeline.approved_settings().map(str::to_owned)
        })?;
        let content = BlobStore::in_state_dir(self.state).get(&name).ok();
        let settings = content.and_then(|content| ProjectSettingsSnapshot::from_content(&content));
        if settings.is_none() {
            let told = "cannot read the approved configuration; ignoring it";
            self.with_reporter(|reporter| reporter.note(told));
        }
        settings
    }

    /// Saves the accepted project settings, so that a later process can compare them. If that fails, the run continues
    /// and a later process asks.
    pub(super) fn save_settings(&self, plan: &PipelineSpec) {
        let settings = &plan.project_settings;
        let blobs = BlobStore::in_state_dir(self.state);
        let in_effect = settings.in_effect.iter();
        let written = (!settings.pending_changes.is_empty()).then_some(&settings.on_disk);
        for kept in in_effect.chain(written) {
            if let Err(error) = blobs.put(kept.canonical_text().as_bytes()) {
                self.with_reporter(|reporter| reporter.note(&error.to_string()));
            }
        }
    }

    async fn apply_reload(
        &self,
        stage: &PipelineExecution<'_, '_>,
        approved: Option<ProjectSettingsSnapshot>,
        what: impl FnOnce(&PipelineSpec, PipelineSpec) -> PipelineSpec,
    ) -> Result<(), RunError> {
        let journal = stage.journal;
        let before = self.plan();
        let path = before.config_path.as_ref();
        let path = path
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let is_approved = approved.is_some();
        let accepted = approved.or_else(|| before.project_settings.in_effect.clone());
        let read =
            (self.reload)(accepted.as_ref()).and_then(|now| require_same_roles(&before, now));
        // The configuration is read several times; the same reason is reported once.
        let rejected = read.as_ref().err().cloned();
        if stage.rejected_config.replace(rejected.clone()) == rejected && rejected.is_some() {
            return Ok(());
        }
        let events = match read {
            Err(error) => vec![ConfigRejected { path, error }.into()],
            Ok(mut now) => {
                now.command.clone_from(&before.command);
                now.task.clone_from(&before.task);
                // A human has already seen the difference that they approved.
                if !is_approved {
                    let raised =
                        now.revert_raised_budgets(&before.to_started_event(self.knowledge.version));
                    if !raised.is_empty() {
                        self.with_reporter(|reporter| {
                            reporter.note(&unapplied_budgets_warning(&raised))
                        });
                    }
                }
                let now = what(&before, now);
                if now == *before {
                    return Ok(());
                }
                self.reload_events(journal, &before, now, path, is_approved)
            }
        };
        self.write(journal, events).await?;
        Ok(())
    }

    fn reload_events(
        &self,
        journal: &RunEventLog<'_>,
        before: &PipelineSpec,
        now: PipelineSpec,
        path: String,
        is_approved: bool,
    ) -> Vec<Event> {
        let (then, described) = (
            before.to_started_event(self.knowledge.version),
            now.to_started_event(self.knowledge.version),
        );
        let of_roles = role_changes(&then, &described)
            .into_iter()
            .flat_map(|change| {
                let who = change.role.unwrap_or_else(|| "all roles".to_owned());
                let what = change.descriptions.into_iter();
                what.map(move |what| format!("{who}: {what}"))
            });
        let of_repairs =
            RepairSettings::describe_changes(before.repair.as_ref(), now.repair.as_ref());
        let mut told: Vec<_> = of_roles.chain(of_repairs).collect();
        if is_approved && told.is_empty() {
            told.push("the changes you approved".to_owned());
        }
        self.save_settings(&now);
        let question = self.settings_escalation_event(journal, Some(before), &now);
        let mut events = Vec::new();
        if is_approved || !is_only_pending_changes(before, &now) {
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

    /// Returns an escalation about all changed project settings that are not in effect without approval, or the
    /// cancellation of the earlier one if there are no more differences.
    pub(super) fn settings_escalation_event(
        &self,
        journal: &RunEventLog<'_>,
        before: Option<&PipelineSpec>,
        now: &PipelineSpec,
    ) -> Option<Event> {
        let settings = &now.project_settings;
        let held_before = before.map_or(&[][..], |plan| &plan.project_settings.pending_changes);
        let untrusted_before = before.map_or(&now.untrusted, |plan| &plan.untrusted);
        let is_new =
            settings.pending_changes != held_before && !settings.pending_changes.is_empty();
        let is_wider = now.untrusted != *untrusted_before && !now.untrusted.is_empty();
        let open = journal.with_view(|run| {
            let mut questions = run.open_escalations.iter();
            questions.find(|asked| asked.is_about_settings()).cloned()
        });
        if settings.pending_changes.is_empty() && !held_before.is_empty() && !is_wider {
            let withdrawn = open.map(|asked| EscalationResolved::new_withdrawal(&asked));
            return withdrawn.map(Event::from);
        }
        if !is_new && !is_wider {
            return None;
        }
        let mut reasons = Vec::new();
        if !settings.pending_changes.is_empty() {
            reasons.push(settings_changed_reason(&settings.pending_changes));
        }
        if !now.untrusted.is_empty() && (is_wider || before.is_none()) {
            reasons.push(format!(
                "[recovery] of the project allows more since the run began; the changes are ignored until trusted (`unstuck trust`): {}",
                now.untrusted.join("; ")
            ));
        }
        let question = EscalationKind::RecoveryApprovalRequired;
        let asking =
            EscalationDraft::without_failure(question, EscalationReason::Trust, reasons.join("; "));
        let circumstances = AnswerOptionsContext {
            settings: settings.pending_changes.len(),
            ..AnswerOptionsContext::default()
        };
        // A pending escalation is replaced: nobody may approve what is no longer in the file.
        let number = || format!("{}-t{}", journal.run(), self.clock.timestamp().millis());
        let id = open.map_or_else(number, |asked| asked.id);
        let mut asked = self.run_escalation(id, asking, &circumstances, None);
        if !settings.pending_changes.is_empty() {
            let accepts = content_hash(settings.on_disk.canonical_text().as_bytes());
            bind_to_settings(&mut asked.details, &settings.pending_changes, &accepts);
        }
        Some(asked.into())
    }
}

/// Returns true if the only differences are those that need approval.
fn is_only_pending_changes(before: &PipelineSpec, now: &PipelineSpec) -> bool {
    let in_effect = |plan: &PipelineSpec| plan.project_settings.in_effect.clone();
    let waiting = PipelineSpec {
        project_settings: before.project_settings.clone(),
        untrusted: before.untrusted.clone(),
        ..now.clone()
    };
    waiting == *before && in_effect(before) == in_effect(now)
}

/// Rejects a configuration with other roles: the roles of a loop cannot change while it runs.
fn require_same_roles(before: &PipelineSpec, now: PipelineSpec) -> Result<PipelineSpec, String> {
    let ids = |plan: &PipelineSpec| -> Vec<String> {
        let left_out = |id: &String| !before.excluded_roles.contains(id);
        let ids = plan.project_settings.roles_on_disk.iter().cloned();
        ids.filter(left_out).collect()
    };
    let (then, named) = (ids(before), ids(&now));
    if then == named {
        Ok(now)
    } else {
        Err(format!(
            "the roles of a running loop and their order cannot change (running: {}; configured: {}); to use the new ones, start a new run with `unstuck run`",
            then.join(", "),
            named.join(", ")
        ))
    }
}
