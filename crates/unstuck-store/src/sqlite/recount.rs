//! Counts everything in the file anew: to fill in counts that were not kept before, and to check those that are.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;
use unstuck_core::episode::{PromptPattern, RunView};
use unstuck_core::event::{Event, Recorded, SessionId};

use super::projects::Projects;
use super::tries::Tries;
use super::{calls, hourly, read};
use crate::rollup::{self, Cell, Failing, Key};
use crate::tried::{self, Attempt};

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Recount {
    pub(super) cells: HashMap<Key, Cell>,
    pub(super) tries: Tries,
    pub(super) projects: Projects,
}

impl Recount {
    /// Counts all events.
    pub(super) fn of_events(connection: &Connection) -> rusqlite::Result<Self> {
        let mut recount = Self::default();
        read::each_run(connection, |events| recount.run(events))?;
        Ok(recount)
    }

    /// Counts all events and calls.
    pub(super) fn of_all(connection: &Connection) -> rusqlite::Result<Self> {
        let mut recount = Self::of_events(connection)?;
        recount.add_calls(connection)?;
        Ok(recount)
    }

    /// Counts all calls too.
    pub(super) fn add_calls(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        calls::each_alone(connection, |call, project, fault| {
            self.tries.call(call, project, fault);
            let cost = call.cost_usd.map_or(0, rollup::nanos);
            self.projects.add(project, call.at, cost);
        })
    }

    /// Counts the events of one run.
    pub(super) fn run(&mut self, events: &[Recorded]) {
        let mut view: Option<RunView> = None;
        let mut failing = Failing::default();
        let mut roles: HashMap<&SessionId, PromptPattern> = HashMap::new();
        for recorded in events {
            match &mut view {
                Some(view) => view.record(recorded),
                None => view = RunView::begin(recorded),
            }
            let failing_since = failing.record(recorded);
            for line in rollup::lines(recorded, view.as_ref(), failing_since) {
                self.cells.entry(line.key.clone()).or_default().add(&line);
            }
            if let Some(view) = &view {
                let cost = rollup::cost_nanos(&recorded.event);
                self.projects.add(&view.project, recorded.at, cost);
            }
            if let Event::SessionStarted(started) = &recorded.event {
                roles.insert(&started.spec.session, PromptPattern::of_role(started));
            }
            if let Some(attempt) = Attempt::of(recorded) {
                let role = || roles.get(&attempt.end.session).cloned();
                let pattern = || Arc::new(tried::pattern(role(), view.as_ref()));
                let pattern = attempt.failure.map(|_| pattern());
                self.tries.attempt(&attempt, view.as_ref(), pattern);
            }
        }
    }
}

/// Fills in the hourly counts, in a store that had none.
pub(super) fn fill_hourly(connection: &Connection) -> rusqlite::Result<()> {
    let recount = Recount::of_events(connection)?;
    hourly::write(connection, &recount.cells)
}

/// Fills in what the dashboard shows, in a store that did not count it.
pub(super) fn fill_dashboard(connection: &Connection) -> rusqlite::Result<()> {
    calls::find_alone(connection)?;
    let mut recount = Recount::of_all(connection)?;
    hourly::fill_recoveries(connection, &recount.cells)?;
    recount.tries.fill(connection)?;
    recount.projects.flush(connection)
}
