//! Resumes a pipeline: outputs of successful roles are reused unless their inputs have changed.

use std::rc::Rc;

use unstuck_core::RunId;
use unstuck_core::event::{IterationFinished, RunOutcome, RunResumed};
use unstuck_core::pipeline::{RoleConfigChange, role_changes};
use unstuck_core::{Event, PipelineState};

use super::{PipelineExecution, PipelineRunner, nothing_to_run_error};
use crate::runner::error::RunError;
use crate::runner::resume::wait_for_orphans;
use crate::runner::run_event_log::RunEventLog;
use crate::runner::run_lease::RunLease;
use crate::runner::run_result::RunResult;

/// The options of resuming a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipelineResumeOptions {
    /// Completed roles to re-run, with all roles that depend on them.
    pub restart: Vec<String>,
    /// True if outputs are reused although their inputs have changed.
    pub accept_changes: bool,
}

impl PipelineRunner<'_> {
    /// Resumes a pipeline and completes it.
    pub async fn resume(
        &self,
        run: &RunId,
        again: &PipelineResumeOptions,
    ) -> Result<RunResult, RunError> {
        let held = RunLease::claim(self.store, run, self.clock).await?;
        let mut past = self.store.load(run).await?;
        let refuse = |why: String| RunError::NotResumable {
            run: run.clone(),
            why,
        };
        wait_for_orphans(&past).await;
        let pipeline =
            PipelineState::from_events(&past).ok_or_else(|| nothing_to_run_error(run))?;
        if let Some(why) = self.not_resumable_reason(&pipeline, again) {
            return Err(refuse(why));
        }
        let restarted = pipeline.with_dependents(&again.restart);
        if let Some((question, reason)) = pipeline.blocking_budget_escalation(&restarted) {
            return Err(RunError::budget_approval_pending(run, question, reason));
        }
        let mut plan = (*self.plan()).clone();
        let raised = plan.revert_raised_budgets(pipeline.plan());
        if !raised.is_empty() {
            self.with_reporter(|reporter| reporter.note(&unapplied_budgets_warning(&raised)));
        }
        self.save_settings(&plan);
        self.plan.replace(Rc::new(plan));
        let mut now = self.plan().to_started_event(self.knowledge.version);
        now.command.clone_from(&pipeline.plan().command);
        let changed = role_changes(pipeline.plan(), &now);
        let in_the_way = blocking_changes(&pipeline, &changed, &restarted);
        if !in_the_way.is_empty() && !again.accept_changes {
            return Err(RunError::InputsChanged {
                run: run.clone(),
                changes: in_the_way,
            });
        }
        if !changed.is_empty() {
            self.with_reporter(|reporter| reporter.note(&in_effect(&changed)));
        }
        let journal = RunEventLog::reopen(self.run_storage(), &past, held);
        let journal = journal.ok_or_else(|| nothing_to_run_error(run))?;
        let journal = journal.with_notifier(self.notifier);
        let resumed = RunResumed {
            stop_reason: match pipeline.run_finished() {
                Some(end) => end.reason.clone(),
                None => "previous process exited unexpectedly".to_owned(),
            },
            pid: std::process::id(),
            pipeline: (now != *pipeline.plan()).then(|| Box::new(now)),
            restarted,
            keep_trying_ms: None,
            project_settings: None,
        };
        let question = self.settings_escalation_event(&journal, None, &self.plan());
        let events = [Event::from(resumed)].into_iter();
        let events: Vec<_> = events.chain(question).collect();
        let written = self.write(&journal, events).await?;
        past.extend(written);
        Box::pin(self.run_loop(journal, past)).await
    }

    /// Returns the reason why the pipeline cannot be resumed, if there is one.
    fn not_resumable_reason(
        &self,
        pipeline: &PipelineState,
        again: &PipelineResumeOptions,
    ) -> Option<String> {
        let unknown = |id: &&String| pipeline.role(id).is_none();
        if let Some(role) = again.restart.iter().find(unknown) {
            return Some(format!("unknown role `{role}`"));
        }
        let end = pipeline.run_finished().map(|end| end.outcome);
        let is_done = matches!(end, Some(RunOutcome::Succeeded | RunOutcome::Recovered));
        (is_done && again.restart.is_empty()).then(|| "the run has already succeeded".to_owned())
    }
}

/// Returns the warning that budgets raised in the configuration of a resumed run are not in effect.
pub(super) fn unapplied_budgets_warning(raised: &[String]) -> String {
    format!(
        "budget raised: {}; applies to the next run. To raise the budget of this run, approve its request \
         (`unstuck approve`)",
        raised.join(", ")
    )
}

/// Returns the message about changes that take effect in the resumed run, including contents of prompt files.
fn in_effect(changed: &[RoleConfigChange]) -> String {
    let lines = changed.iter().flat_map(|change| {
        let who = change.role.as_deref().unwrap_or("all roles");
        change
            .descriptions
            .iter()
            .map(move |what| format!("{who}: {what}"))
    });
    let lines: Vec<_> = lines.collect();
    format!(
        "now in effect (changed since the run began): {}",
        lines.join("; ")
    )
}

/// Returns the changes that concern completed roles which are not re-run.
fn blocking_changes(
    pipeline: &PipelineState,
    changed: &[RoleConfigChange],
    restarted: &[String],
) -> Vec<RoleConfigChange> {
    let completed = pipeline.completed_roles();
    let reused = |id: &str| completed.contains(&id) && !restarted.iter().any(|one| one == id);
    let concerns = |change: &&RoleConfigChange| match &change.role {
        Some(role) => reused(role),
        None => completed.iter().any(|id| reused(id)),
    };
    changed.iter().filter(concerns).cloned().collect()
}

impl PipelineExecution<'_, '_> {
    /// Returns the evaluation of the previous iteration, unless a human has resumed the run since.
    pub(super) fn previous_iteration(&self) -> Option<IterationFinished> {
        if let Some(newest) = self.last_iteration.borrow().as_ref() {
            return Some(newest.clone());
        }
        self.past
            .iter()
            .rev()
            .find_map(|recorded| match &recorded.event {
                Event::IterationFinished(finished) => Some(IterationFinished {
                    unchanged: 0,
                    ..finished.clone()
                }),
                _ => None,
            })
    }

    pub(super) fn remember_iteration(&self, finished: &IterationFinished) {
        self.last_iteration.replace(Some(finished.clone()));
    }
}
