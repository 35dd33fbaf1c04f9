//! Snapshots of the work tree around an attempt, rollback and budget checks.

use unstuck_core::FailureKind;
use unstuck_core::decision::EscalationReason;
use unstuck_core::event::{BudgetReached, EscalationKind};
use unstuck_core::money::ActiveUsageBudget;

use super::budget_tracker::BudgetUsage;
use super::error::RunError;
use super::escalation_draft::EscalationDraft;
use super::session_event_log::SessionEventLog;
use super::session_runner::SessionRunner;
use crate::worktree::{Snapshot, SnapshotStore, WorktreeError};

/// The time at which a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SnapshotPhase {
    Before,
    After,
}

impl SessionRunner<'_> {
    /// Takes a snapshot of the work tree, if possible.
    pub(super) async fn take_snapshot(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        number: u32,
        moment: SnapshotPhase,
    ) -> Option<Snapshot> {
        let session = log.recovery().spec().session.as_str();
        let when = match moment {
            SnapshotPhase::Before => "before",
            SnapshotPhase::After => "after",
        };
        let label = format!("{session}-{number}-{when}");
        let taken = match self.open_snapshots(log) {
            Ok(snapshots) => {
                let snapshots = snapshots?;
                let taken = tokio::task::spawn_blocking(move || snapshots.create(&label)).await;
                taken.ok()?
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(taken) => Some(taken),
            Err(error) => {
                let is_told = match self.role {
                    Some(role) => role.is_snapshot_warning_shown.replace(true),
                    None => false,
                };
                if !is_told {
                    let message = format!("cannot record the changes of attempts: {error}");
                    self.reporter.warn(&message);
                }
                log.disable_snapshots();
                None
            }
        }
    }

    /// Opens the snapshot store, if snapshots are enabled.
    fn open_snapshots(
        &self,
        log: &SessionEventLog<'_, '_>,
    ) -> Result<Option<SnapshotStore>, WorktreeError> {
        match self.role {
            Some(role) => Ok(role.snapshots.cloned()),
            None => log.snapshots(self.state).map(Option::<&_>::cloned),
        }
    }

    /// Undoes the changes of a failed attempt, if wanted.
    pub(super) async fn roll_back_attempt(
        &mut self,
        log: &SessionEventLog<'_, '_>,
        before: Snapshot,
    ) {
        let is_wanted = match self.role {
            Some(role) => role.rollback,
            None => log.options().rollback,
        };
        let Some(snapshots) = self
            .open_snapshots(log)
            .ok()
            .flatten()
            .filter(|_| is_wanted)
        else {
            return;
        };
        let restored = tokio::task::spawn_blocking(move || snapshots.restore(&before)).await;
        match restored {
            Ok(Ok(restored)) => {
                let files = restored.written.len() + restored.removed.len();
                let recovery = log.recovery();
                let (id, number) = (recovery.id().short(), recovery.attempt_count());
                let (role, attempt) = match log.role_instance() {
                    Some(part) => (
                        format!("{}: ", part.role),
                        format!("{id}/{}/{number}", part.role),
                    ),
                    None => (String::new(), format!("{id}/{number}")),
                };
                if files > 0 {
                    let noun = if files == 1 { "file" } else { "files" };
                    self.reporter.note(&format!(
                        "{role}rolled back the changes of attempt {number} ({files} {noun}); see unstuck diff {attempt}"
                    ));
                }
                let commits = restored.commits.len();
                if commits > 0 {
                    let noun = if commits == 1 { "commit" } else { "commits" };
                    self.reporter.warn(&format!(
                        "{role}{commits} {noun} of the failed attempt not rolled back"
                    ));
                }
            }
            Ok(Err(error)) => self.reporter.warn(&format!(
                "cannot roll back the changes of the failed attempt: {error}"
            )),
            Err(_) => {}
        }
    }

    /// Returns the budgets of the attempt that is about to begin.
    pub(super) async fn budget_limits(
        &self,
        log: &SessionEventLog<'_, '_>,
    ) -> Result<Vec<ActiveUsageBudget>, RunError> {
        let Some(role) = self.role else {
            return Ok(Vec::new());
        };
        let (used, raised) = log.journal().with_view(|run| {
            let used = BudgetUsage {
                usd: run.summary.cost_usd,
                tokens: run.summary.tokens,
            };
            let raised = run.pipeline.as_ref().map(|one| one.budget_raises().clone());
            (used, raised.unwrap_or_default())
        });
        let session = &log.recovery().spec().session;
        let now = self.clock.timestamp();
        role.budget
            .limits_for_attempt(used, &raised, session, now)
            .await
    }

    /// Returns true if a budget is exhausted and no attempt may be made without approval; then it escalates.
    pub(super) fn is_budget_exhausted(
        &self,
        log: &mut SessionEventLog<'_, '_>,
        limits: &[ActiveUsageBudget],
    ) -> bool {
        let reached = limits.iter().find_map(|one| one.check_reached(0.0));
        if let Some(reached) = reached {
            self.escalate_budget(log, reached);
        }
        reached.is_some()
    }

    /// Asks a human to raise a budget.
    pub(super) fn escalate_budget(
        &self,
        log: &mut SessionEventLog<'_, '_>,
        reached: BudgetReached,
    ) {
        let question = EscalationKind::CostConfirmation;
        let asking = EscalationDraft::without_failure(
            question,
            EscalationReason::MaxCost,
            reached.description(),
        );
        self.escalate(
            log,
            EscalationDraft {
                budget: Some(reached),
                ..asking
            },
        );
    }

    /// Escalates a role whose command line cannot be built.
    pub(super) fn escalate_invocation_error(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        error: &RunError,
    ) {
        let kind = FailureKind::ContextError;
        let reason = format!("{kind}: {error}");
        let asking = EscalationDraft::without_failure(
            EscalationKind::Hiccup,
            EscalationReason::Fatal,
            reason,
        );
        self.escalate(log, EscalationDraft { kind, ..asking });
    }
}
