//! What is watched over around an attempt: the work tree before and after, and what may be used.

use unstuck_core::Kind;
use unstuck_core::decision::AskWhy;
use unstuck_core::event::{BudgetReached, EscalationKind};
use unstuck_core::money::BudgetLimit;

use super::asking::Asking;
use super::budget::Used;
use super::engine::Engine;
use super::error::RunError;
use super::log::Log;
use crate::worktree::{Snapshot, Snapshots, WorktreeError};

/// When a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

impl Engine<'_> {
    /// Keeps the work tree as it is at this moment, where that can be done.
    pub(super) async fn snapshot(
        &mut self,
        log: &mut Log<'_, '_>,
        number: u32,
        moment: Moment,
    ) -> Option<Snapshot> {
        let session = log.recovery().spec().session.as_str();
        let when = match moment {
            Moment::Before => "before",
            Moment::After => "after",
        };
        let label = format!("{session}-{number}-{when}");
        let taken = match self.snapshots(log) {
            Ok(snapshots) => {
                let snapshots = snapshots?;
                let taken = tokio::task::spawn_blocking(move || snapshots.take(&label)).await;
                taken.ok()?
            }
            Err(error) => Err(error),
        };
        match taken {
            Ok(taken) => Some(taken),
            Err(error) => {
                let is_told = match self.role {
                    Some(role) => role.told.replace(true),
                    None => false,
                };
                if !is_told {
                    let message = format!("the changes of attempts are not kept: {error}");
                    self.reporter.warn(&message);
                }
                log.without_snapshots();
                None
            }
        }
    }

    /// Where the changes of attempts are kept, if they are.
    fn snapshots(&self, log: &Log<'_, '_>) -> Result<Option<Snapshots>, WorktreeError> {
        match self.role {
            Some(role) => Ok(role.snapshots.cloned()),
            None => log.snapshots(self.state).map(Option::<&_>::cloned),
        }
    }

    /// Undoes what a failed attempt changed, if that is wanted.
    pub(super) async fn roll_back(&mut self, log: &Log<'_, '_>, before: Snapshot) {
        let is_wanted = match self.role {
            Some(role) => role.rollback,
            None => log.options().rollback,
        };
        let Some(snapshots) = self.snapshots(log).ok().flatten().filter(|_| is_wanted) else {
            return;
        };
        let restored = tokio::task::spawn_blocking(move || snapshots.restore(&before)).await;
        match restored {
            Ok(Ok(restored)) => {
                let files = restored.written.len() + restored.removed.len();
                let recovery = log.recovery();
                let (id, number) = (recovery.id().short(), recovery.attempts());
                let (role, attempt) = match log.as_part() {
                    Some(part) => (
                        format!("{}: ", part.role),
                        format!("{id}/{}/{number}", part.role),
                    ),
                    None => (String::new(), format!("{id}/{number}")),
                };
                if files > 0 {
                    self.reporter.note(&format!(
                        "{role}what attempt {number} changed was rolled back ({files} files); unstuck diff {attempt} shows it"
                    ));
                }
                let commits = restored.commits.len();
                if commits > 0 {
                    self.reporter.warn(&format!(
                        "{role}{commits} commits that the failed attempt made are still there"
                    ));
                }
            }
            Ok(Err(error)) => self.reporter.warn(&format!(
                "what the failed attempt changed could not be rolled back: {error}"
            )),
            Err(_) => {}
        }
    }

    /// The budgets that hold for the attempt that is about to begin.
    pub(super) async fn budget_limits(
        &self,
        log: &Log<'_, '_>,
    ) -> Result<Vec<BudgetLimit>, RunError> {
        let Some(role) = self.role else {
            return Ok(Vec::new());
        };
        let (used, raised) = log.journal().know(|run| {
            let used = Used {
                usd: run.view.cost_usd,
                tokens: run.view.tokens,
            };
            let raised = run.pipeline.as_ref().map(|one| one.budgets().clone());
            (used, raised.unwrap_or_default())
        });
        let session = &log.recovery().spec().session;
        let now = self.clock.at();
        role.purse.limits(used, &raised, session, now).await
    }

    /// Whether no further attempt may be made without asking; then a person is asked.
    pub(super) fn is_out_of_money(&self, log: &mut Log<'_, '_>, limits: &[BudgetLimit]) -> bool {
        let reached = limits.iter().find_map(|one| one.reached(0.0));
        if let Some(reached) = reached {
            self.ask_about_budget(log, reached);
        }
        reached.is_some()
    }

    /// Asks a person whether a budget may be raised.
    pub(super) fn ask_about_budget(&self, log: &mut Log<'_, '_>, reached: BudgetReached) {
        let question = EscalationKind::CostConfirmation;
        let asking = Asking::about(question, AskWhy::MaxCost, reached.sentence());
        self.ask(
            log,
            Asking {
                budget: Some(reached),
                ..asking
            },
        );
    }

    /// Asks a person about a call that cannot be made as it is.
    pub(super) fn ask_about_call(&mut self, log: &mut Log<'_, '_>, error: &RunError) {
        let kind = Kind::ContextError;
        let reason = format!("{kind}: {error}");
        let asking = Asking::about(EscalationKind::Hiccup, AskWhy::Fatal, reason);
        self.ask(log, Asking { kind, ..asking });
    }
}
