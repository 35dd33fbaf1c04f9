//! Rebuilds all counts: to backfill new ones, and to check existing ones.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;
use unstuck_core::event::{Event, EventRecord, SessionId};
use unstuck_core::views::{NormalizedPrompt, RunSummary};

use super::attempt_stats::PendingAttemptCounts;
use super::projects::PendingProjectTotals;
use super::{api_calls, hourly_stats, run_and_event_queries};
use crate::attempt_stats::{self, EndedAttempt};
use crate::rollup::{self, FailingSessions, RollupCell, RollupKey};

/// The rebuilt counts.
#[derive(Debug, Default)]
pub(super) struct RebuiltCounts {
    pub(super) cells: HashMap<RollupKey, RollupCell>,
    pub(super) attempts: PendingAttemptCounts,
    pub(super) projects: PendingProjectTotals,
}

impl RebuiltCounts {
    /// Counts all events.
    pub(super) fn from_events(connection: &Connection) -> rusqlite::Result<Self> {
        let mut recount = Self::default();
        run_and_event_queries::for_each_run(connection, |events| recount.add_run(events))?;
        Ok(recount)
    }

    /// Counts all events and calls.
    pub(super) fn from_events_and_calls(connection: &Connection) -> rusqlite::Result<Self> {
        let mut recount = Self::from_events(connection)?;
        recount.add_calls(connection)?;
        Ok(recount)
    }

    /// Adds all calls.
    pub(super) fn add_calls(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        api_calls::for_each_unsupervised(connection, |call, project, fault| {
            self.attempts.add_call(call, project, fault);
            let cost = call.cost_usd.map_or(0, rollup::usd_to_nanos);
            self.projects.add(project, call.at, cost);
        })
    }

    /// Adds the events of one run.
    pub(super) fn add_run(&mut self, events: &[EventRecord]) {
        let mut view: Option<RunSummary> = None;
        let mut failing = FailingSessions::default();
        let mut roles: HashMap<&SessionId, NormalizedPrompt> = HashMap::new();
        for recorded in events {
            match &mut view {
                Some(view) => view.apply(recorded),
                None => view = RunSummary::from_first_event(recorded),
            }
            let failing_since = failing.on_event(recorded);
            for line in rollup::rollup_entries(recorded, view.as_ref(), failing_since) {
                self.cells.entry(line.key.clone()).or_default().add(&line);
            }
            if let Some(view) = &view {
                let cost = rollup::event_cost_nanos(&recorded.event);
                self.projects.add(&view.project, recorded.at, cost);
            }
            if let Event::SessionStarted(started) = &recorded.event {
                roles.insert(&started.spec.session, NormalizedPrompt::from_role(started));
            }
            if let Some(attempt) = EndedAttempt::from_event(recorded) {
                let role = || roles.get(&attempt.end.session).cloned();
                let pattern = || Arc::new(attempt_stats::session_pattern(role(), view.as_ref()));
                let pattern = attempt.failure.map(|_| pattern());
                self.attempts.add_attempt(&attempt, view.as_ref(), pattern);
            }
        }
    }
}

/// Backfills the hourly counts.
pub(super) fn backfill_hourly(connection: &Connection) -> rusqlite::Result<()> {
    let recount = RebuiltCounts::from_events(connection)?;
    hourly_stats::write_cells(connection, &recount.cells)
}

/// Backfills the dashboard counts.
pub(super) fn backfill_dashboard(connection: &Connection) -> rusqlite::Result<()> {
    api_calls::backfill_unsupervised(connection)?;
    let mut recount = RebuiltCounts::from_events_and_calls(connection)?;
    hourly_stats::backfill_recoveries(connection, &recount.cells)?;
    recount.attempts.backfill(connection)?;
    recount.projects.flush(connection)
}
