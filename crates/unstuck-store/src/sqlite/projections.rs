//! Writes events and updates the projections: run summaries and hourly counts.
//!
//! The projections of a transaction are kept in memory and written once at its end, however many events there were.
//! Runs stay cached between transactions; the writer clears the cache when another process has written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use unstuck_core::Timestamp;
use unstuck_core::event::{Event, EventRecord, RunId, SessionId, VERSION};
use unstuck_core::views::{NormalizedPrompt, RunSummary};

use super::api_calls::CallClassification;
use super::attempt_stats::{self as attempt_tables, PendingAttemptCounts};
use super::projects::PendingProjectTotals;
use super::{
    api_calls, escalations, hourly_stats, leases, outbox, reported_usage, run_and_event_queries,
    spending, sqlite_error,
};
use crate::api_calls::PreparedCalls;
use crate::append_request::{PreparedEvent, PreparedEventBatch};
use crate::attempt_stats::{self, EndedAttempt};
use crate::error::StoreError;
use crate::rollup::{self, RollupCell, RollupKey};
use crate::spending::{SpendingKey as SpentKey, SpendingTotals};

/// The maximum number of cached runs.
const MAX_CACHED_RUNS: usize = 4096;

const INSERT_EVENT: &str = "INSERT INTO events (run, seq, at, v, event, session, kind, payload)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const INSERT_SESSION: &str = "INSERT OR IGNORE INTO sessions (session, run) VALUES (?1, ?2)";

const UPSERT_RUN: &str =
    "INSERT INTO runs (id, project, status, kind, started, updated, finished, view)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (id) DO UPDATE SET
        status = ?3, kind = ?4, updated = ?6, finished = ?7, view = ?8";

/// The cached state of a run.
#[derive(Debug, Default)]
struct CachedRun {
    /// The number of the newest event; 0 before the first.
    seq: u64,
    /// `None` if the run starts in a way that only a newer unstuck can decode.
    view: Option<RunSummary>,
    /// The session of the newest event that has one.
    session: Option<SessionId>,
    /// The prompt patterns of failed sessions.
    patterns: HashMap<SessionId, Arc<NormalizedPrompt>>,
}

impl CachedRun {
    fn note_session(
        &mut self,
        connection: &Connection,
        recorded: &EventRecord,
    ) -> rusqlite::Result<()> {
        let session = recorded.event.session();
        if session.is_some() && session != self.session.as_ref() {
            let row = params![session.map(SessionId::as_str), recorded.run.as_str()];
            connection.prepare_cached(INSERT_SESSION)?.execute(row)?;
            self.session = session.cloned();
        }
        Ok(())
    }

    /// Returns the prompt pattern of a session.
    fn prompt_pattern(
        &mut self,
        connection: &Connection,
        id: &RunId,
        session: &SessionId,
    ) -> rusqlite::Result<Arc<NormalizedPrompt>> {
        if let Some(known) = self.patterns.get(session) {
            return Ok(Arc::clone(known));
        }
        let is_pipeline = self.view.as_ref().is_none_or(|view| view.roles.is_some());
        let role = if is_pipeline {
            attempt_tables::role_pattern(connection, id, session)?
        } else {
            None
        };
        let pattern = Arc::new(attempt_stats::session_pattern(role, self.view.as_ref()));
        self.patterns.insert(session.clone(), Arc::clone(&pattern));
        Ok(pattern)
    }
}

/// Projection updates, some of them not yet written.
#[derive(Debug, Default)]
pub(super) struct Projections {
    runs: HashMap<RunId, CachedRun>,
    changed: HashSet<RunId>,
    cells: HashMap<RollupKey, RollupCell>,
    spent: HashMap<SpentKey, SpendingTotals>,
    attempts: PendingAttemptCounts,
    projects: PendingProjectTotals,
}

impl Projections {
    /// Writes events or returns why they are rejected; the outer error is a database error that aborts the transaction.
    pub(super) fn append(
        &mut self,
        connection: &Connection,
        append: &mut PreparedEventBatch,
    ) -> rusqlite::Result<Result<Vec<EventRecord>, StoreError>> {
        if append.events.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        if let Some(token) = &append.lease
            && (token.run != append.run || !leases::is_held(connection, token)?)
        {
            let run = append.run.clone();
            return Ok(Err(StoreError::LostLease { run }));
        }
        if let Some(answers) = &append.answer_guard
            && let Some(refused) = escalations::answer_refusal(connection, &append.run, answers)?
        {
            return Ok(Err(refused));
        }
        let run = self.cached_run(connection, &append.run)?;
        if let Some(refused) = check_run_start(run, append) {
            return Ok(Err(refused));
        }
        let lines = std::mem::take(&mut append.events);
        let written = lines
            .into_iter()
            .map(|line| self.write_event(connection, &append.run, append.at, line))
            .collect::<rusqlite::Result<Vec<EventRecord>>>()?;
        outbox::insert_messages(connection, &append.messages, &written)?;
        let is_end = |recorded: &EventRecord| matches!(recorded.event, Event::RunFinished(_));
        if let Some(token) = &append.lease
            && written.iter().any(is_end)
        {
            leases::release(connection, token)?;
        }
        if !self.changed.contains(&append.run) {
            self.changed.insert(append.run.clone());
        }
        Ok(Ok(written))
    }

    /// Writes calls; they do not need events of their run.
    pub(super) fn record_calls(
        &mut self,
        connection: &Connection,
        calls: &PreparedCalls,
    ) -> rusqlite::Result<()> {
        for call in &calls.0 {
            let view = self.cached_run(connection, &call.run)?.view.as_ref();
            let counting = CallClassification::classify(connection, call, view)?;
            let project = view.map(|view| view.project.clone()).unwrap_or_default();
            api_calls::insert(connection, call, &project, &counting)?;
            if counting.is_unsupervised {
                self.attempts
                    .add_call(call, &project, counting.failure.as_ref());
                let cost = call.cost_usd.map_or(0, rollup::usd_to_nanos);
                self.projects.add(&project, call.at, cost);
            }
            let key = SpentKey::for_call(call, &project);
            self.spent.entry(key).or_default().add(call);
        }
        Ok(())
    }

    /// Writes the pending updates.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for id in self.changed.drain() {
            if let Some(view) = self.runs.get(&id).and_then(|run| run.view.as_ref()) {
                save_run(connection, view)?;
            }
        }
        for (key, cell) in self.cells.drain() {
            hourly_stats::add_cell(connection, &key, &cell)?;
        }
        for (key, sum) in self.spent.drain() {
            spending::add_totals(connection, &key, &sum)?;
        }
        self.attempts.flush(connection)?;
        self.projects.flush(connection)?;
        if self.runs.len() > MAX_CACHED_RUNS {
            self.runs.clear();
        }
        Ok(())
    }

    /// Discards all state: the transaction failed, or another process has written.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.changed.clear();
        self.cells.clear();
        self.spent.clear();
        self.attempts.clear();
        self.projects.clear();
    }

    fn cached_run(
        &mut self,
        connection: &Connection,
        id: &RunId,
    ) -> rusqlite::Result<&mut CachedRun> {
        if !self.runs.contains_key(id) {
            self.runs.insert(id.clone(), load_run(connection, id)?);
        }
        Ok(self.runs.entry(id.clone()).or_default())
    }

    fn write_event(
        &mut self,
        connection: &Connection,
        id: &RunId,
        at: Timestamp,
        line: PreparedEvent,
    ) -> rusqlite::Result<EventRecord> {
        let run = self.runs.entry(id.clone()).or_default();
        let recorded = EventRecord {
            version: VERSION,
            run: id.clone(),
            seq: run.seq + 1,
            at,
            event: line.event,
        };
        insert_event(connection, &recorded, &line.payload)?;
        run.seq = recorded.seq;
        run.note_session(connection, &recorded)?;
        match &mut run.view {
            Some(view) => view.apply(&recorded),
            None => run.view = RunSummary::from_first_event(&recorded),
        }
        escalations::apply_event(connection, &recorded, run.view.as_ref())?;
        reported_usage::record(connection, &recorded, run.view.as_ref())?;
        let failing_since = hourly_stats::failing_since(connection, &recorded)?;
        for line in rollup::rollup_entries(&recorded, run.view.as_ref(), failing_since) {
            self.cells.entry(line.key.clone()).or_default().add(&line);
        }
        if let Some(view) = &run.view {
            let cost = rollup::event_cost_nanos(&recorded.event);
            self.projects.add(&view.project, at, cost);
        }
        if let Event::SessionStarted(started) = &recorded.event {
            run.patterns.remove(&started.spec.session);
        }
        if let Some(attempt) = EndedAttempt::from_event(&recorded) {
            let pattern = match attempt.failure {
                Some(_) => Some(run.prompt_pattern(connection, id, &attempt.end.session)?),
                None => None,
            };
            self.attempts
                .add_attempt(&attempt, run.view.as_ref(), pattern);
        }
        Ok(recorded)
    }
}

/// Checks that a run starts exactly once.
fn check_run_start(run: &CachedRun, append: &PreparedEventBatch) -> Option<StoreError> {
    let begins = |line: &PreparedEvent| line.event.name() == "run_started";
    let first_begins = append.events.first().is_some_and(begins);
    let run_id = || append.run.clone();
    match run.seq {
        0 if !first_begins => Some(StoreError::UnknownRun { run: run_id() }),
        0 if append.events.iter().skip(1).any(begins) => {
            Some(StoreError::RunExists { run: run_id() })
        }
        1.. if append.events.iter().any(begins) => Some(StoreError::RunExists { run: run_id() }),
        _ => None,
    }
}

fn insert_event(
    connection: &Connection,
    recorded: &EventRecord,
    payload: &str,
) -> rusqlite::Result<()> {
    let event = &recorded.event;
    connection.prepare_cached(INSERT_EVENT)?.execute(params![
        recorded.run.as_str(),
        recorded.seq as i64,
        recorded.at.millis(),
        recorded.version,
        event.name(),
        event.session().map(|session| session.as_str()),
        event.kind().map(|kind| kind.name()),
        payload,
    ])?;
    Ok(())
}

/// Loads a run from the file.
fn load_run(connection: &Connection, id: &RunId) -> rusqlite::Result<CachedRun> {
    let mut statement = connection.prepare_cached("SELECT view FROM runs WHERE id = ?1")?;
    let view: Option<String> = statement
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(view) = view.and_then(|view| serde_json::from_str::<RunSummary>(&view).ok()) {
        return Ok(CachedRun {
            seq: view.seq,
            view: Some(view),
            ..CachedRun::default()
        });
    }
    // Missing, or written by a newer unstuck: rebuild it from the events.
    let events = run_and_event_queries::load(connection, id)?;
    Ok(CachedRun {
        seq: events.last().map_or(0, |last| last.seq),
        view: RunSummary::from_events(&events),
        ..CachedRun::default()
    })
}

fn save_run(connection: &Connection, view: &RunSummary) -> rusqlite::Result<()> {
    let text = serde_json::to_string(view).map_err(|error| sqlite_error::invalid_json(7, error))?;
    connection.prepare_cached(UPSERT_RUN)?.execute(params![
        view.id.as_str(),
        view.project,
        view.status.name(),
        view.kind.map(|kind| kind.name()),
        view.started.millis(),
        view.updated.millis(),
        view.finished.map(Timestamp::millis),
        text,
    ])?;
    Ok(())
}
