//! Repairs between two iterations: proposals of roles, and repairs that match a failed check. The next iteration starts
//! in the repaired environment.

use unstuck_core::decision::{EscalationReason, RepairPermission};
use unstuck_core::escalation::AnswerOptionsContext;
use unstuck_core::event::{DiagnosedCheck, EscalationKind, EscalationResolved, Event};
use unstuck_core::session_state::RepairRecord;

use super::{PipelineExecution, PipelineRunner, PipelineSpec};
use crate::process::AttemptStopRequest;
use crate::runner::error::RunError;
use crate::runner::escalation_draft::EscalationDraft;
use crate::runner::repair::{
    RepairCoordinator, RepairQuery, RepairQueryScope, SelectedRepair, SnapshotPhase, events,
    load_history,
};

/// The readiness for the next iteration.
pub(super) enum IterationReadiness {
    /// The next iteration may begin, with these notes for its roles.
    Ready(Vec<String>),
    /// A human is asked first, or the iteration is evaluated again.
    Blocked,
}

impl PipelineRunner<'_> {
    /// Applies configuration changes and runs repairs before an iteration begins.
    pub(super) async fn repair_before_iteration(
        &self,
        stage: &PipelineExecution<'_, '_>,
        iteration: u32,
    ) -> Result<IterationReadiness, RunError> {
        if iteration == 1 {
            return Ok(IterationReadiness::Ready(Vec::new()));
        }
        self.reload(stage).await?;
        self.record_interrupted_repair(stage).await?;
        let plan = self.plan();
        let Some(repairer) = self.repair_coordinator(&plan) else {
            return Ok(IterationReadiness::Ready(Vec::new()));
        };
        let mut told = self.refused_proposals(stage);
        while *self.stop.borrow() == AttemptStopRequest::Continue {
            let Some(best) = self.select_repair(stage, repairer).await? else {
                break;
            };
            if matches!(best.permission, RepairPermission::Granted { .. }) {
                let until = self.clock.timestamp().after(best.delay());
                self.clock.wait_until(until).await;
            } else {
                self.escalate_repair(stage, repairer, &best).await?;
                return Ok(IterationReadiness::Blocked);
            }
            if let Some(said) = self.run_repair(stage, repairer, &best.proposed.id).await? {
                told.push(said);
                if self.is_check_passing(stage, &best.proposed.id).await? {
                    // The repair may have met the last unmet goal.
                    self.evaluate_iteration(stage).await?;
                    let done = self.with_pipeline(stage.journal, |pipeline| {
                        pipeline.last_iteration().is_some_and(|judged| judged.done)
                    });
                    return Ok(if done {
                        IterationReadiness::Blocked
                    } else {
                        IterationReadiness::Ready(told)
                    });
                }
            }
        }
        Ok(IterationReadiness::Ready(told))
    }

    /// Returns the repair coordinator of this pipeline; `None` if repairs are disabled.
    pub(super) fn repair_coordinator<'p>(
        &self,
        plan: &'p PipelineSpec,
    ) -> Option<RepairCoordinator<'p>>
    where
        Self: 'p,
    {
        Some(RepairCoordinator {
            settings: plan.repair.as_ref()?,
            project: &plan.project,
            context: self.repair_context,
        })
    }

    /// Returns the refused proposals of the last iteration, for the next one.
    fn refused_proposals(&self, stage: &PipelineExecution<'_, '_>) -> Vec<String> {
        stage.journal.with_view(|run| {
            let why = run.repairs.unreported_refusals();
            why.map(|why| format!("Your recovery.json is invalid and was ignored: {why}"))
                .collect()
        })
    }

    /// Selects and records a matching repair; `None` if there is no untried one.
    async fn select_repair(
        &self,
        stage: &PipelineExecution<'_, '_>,
        repairer: RepairCoordinator<'_>,
    ) -> Result<Option<SelectedRepair>, RunError> {
        let (repairs, project, check) = stage.journal.with_view(|run| {
            let judged = run.pipeline.as_ref().and_then(|one| one.last_iteration());
            let check = judged.and_then(|judged| judged.failed_check.clone());
            (run.repairs.clone(), run.run.project.clone(), check)
        });
        repairer.probe_sandbox().await;
        let now = self.clock.timestamp();
        if let Some(allowed) = repairs.next_approved() {
            return Ok(Some(SelectedRepair::approved_by_human(
                allowed.proposed.clone(),
            )));
        }
        let known = match &check {
            Some(check) => load_history(self.store, &project, &check.diagnosis.fingerprint).await?,
            None => Vec::new(),
        };
        let failure = check
            .as_deref()
            .map(|check| (check.to_failure(), &check.diagnosis));
        let best = repairer.select_repair(&RepairQuery {
            source: RepairQueryScope::Run,
            dir: repairer.project,
            failure: failure.as_ref().map(|(failure, found)| (failure, *found)),
            repairs: &repairs,
            history: &known,
            now,
        });
        if let Some(best) = best.as_ref().filter(|best| best.is_new) {
            let proposed = Box::new(best.proposed.clone());
            self.write(stage.journal, vec![proposed.into()]).await?;
        }
        Ok(best)
    }

    async fn escalate_repair(
        &self,
        stage: &PipelineExecution<'_, '_>,
        repairer: RepairCoordinator<'_>,
        best: &SelectedRepair,
    ) -> Result<(), RunError> {
        let proposed = &best.proposed;
        let reason = format!(
            "`{}` may fix the environment; approval required: {}",
            proposed.command, proposed.reason
        );
        let question = EscalationKind::RecoveryApprovalRequired;
        let asking = EscalationDraft::without_failure(question, EscalationReason::Repair, reason);
        let of = AnswerOptionsContext {
            repair: Some(&proposed.command),
            ..AnswerOptionsContext::default()
        };
        let id = format!("{}-{}", stage.journal.run(), proposed.id);
        let mut asked = self.run_escalation(id, asking, &of, Some(proposed.id.clone()));
        asked.details.conditions = Some(repairer.repair_conditions(&proposed.command));
        self.write(stage.journal, vec![asked.into()]).await?;
        Ok(())
    }

    /// Runs a repair if it is still allowed; returns the note for the next iteration if it succeeded.
    async fn run_repair(
        &self,
        stage: &PipelineExecution<'_, '_>,
        repairer: RepairCoordinator<'_>,
        id: &str,
    ) -> Result<Option<String>, RunError> {
        let repairs = stage.journal.with_view(|run| run.repairs.clone());
        let Some(repair) = repairs.get(id) else {
            return Ok(None);
        };
        repairer.probe_sandbox().await;
        let allowed = match repairer.authorize(repair, &repairs, self.clock.timestamp()) {
            Ok(allowed) => allowed,
            Err(why) => {
                self.record(stage, events::failed_event(repair, why))
                    .await?;
                return Ok(None);
            }
        };
        let run = stage.journal.run().clone();
        let before = repairer
            .snapshot_tree(&run, id, SnapshotPhase::Before)
            .await;
        let begun = events::started_events(repair, &allowed, before);
        self.write(stage.journal, begun).await?;
        let ran = repairer.run(&allowed, &run, self.stop.clone());
        let ran = self.with_ticks(stage.journal, ran).await;
        let after = repairer.snapshot_tree(&run, id, SnapshotPhase::After).await;
        let ended = events::finished_events(repair, &allowed, ran, after, self.redactor);
        let is_fine = !ended
            .iter()
            .any(|one| matches!(one, Event::RepairFailed(_)));
        self.write(stage.journal, ended).await?;
        Ok(is_fine.then(|| format!("The environment was repaired with `{}`.", allowed.command())))
    }

    /// Returns true if the check that failed passes now.
    async fn is_check_passing(
        &self,
        stage: &PipelineExecution<'_, '_>,
        id: &str,
    ) -> Result<bool, RunError> {
        let repair = stage.journal.with_view(|run| run.repairs.get(id).cloned());
        let before = self.with_pipeline(stage.journal, |pipeline| {
            let judged = pipeline.last_iteration()?;
            Some(judged.failed_check.as_deref()?.check.command.clone())
        });
        let (Some(repair), Some(line)) = (repair, before) else {
            return Ok(false);
        };
        match self.run_check(&line).await? {
            None => {
                let helped = EscalationResolved::by_repair(repair.proposed.session.clone(), id);
                self.write(stage.journal, vec![helped.into()]).await?;
                Ok(true)
            }
            Some(still) => {
                self.record_still_failing(stage, &repair, &still).await?;
                Ok(false)
            }
        }
    }

    /// Records that the check still fails in the same way; a different failure means progress.
    async fn record_still_failing(
        &self,
        stage: &PipelineExecution<'_, '_>,
        repair: &RepairRecord,
        now: &DiagnosedCheck,
    ) -> Result<(), RunError> {
        let error = format!("still failing: {}", now.diagnosis.message);
        self.record(stage, events::failed_event(repair, error))
            .await
    }

    /// Records that a repair was interrupted by a crash; it is not run again.
    async fn record_interrupted_repair(
        &self,
        stage: &PipelineExecution<'_, '_>,
    ) -> Result<(), RunError> {
        let cut = stage
            .journal
            .with_view(|run| run.repairs.interrupted().cloned());
        let Some(repair) = cut.filter(|one| one.proposed.session.is_none()) else {
            return Ok(());
        };
        let event = events::interrupted_event(None, &repair.proposed.id);
        self.record(stage, event).await
    }

    async fn record(
        &self,
        stage: &PipelineExecution<'_, '_>,
        event: impl Into<Event>,
    ) -> Result<(), RunError> {
        self.write(stage.journal, vec![event.into()]).await?;
        Ok(())
    }
}
