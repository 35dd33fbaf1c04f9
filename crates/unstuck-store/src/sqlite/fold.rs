//! Writes events, and folds them into the runs at a glance and the hourly counts as it goes.
//!
//! The folds of a transaction are kept in memory and written once at its end, however many events there were. Runs stay
//! in memory from one transaction to the next; the writer makes this forget them when another process has written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use unstuck_core::Timestamp;
use unstuck_core::episode::{PromptPattern, RunView};
use unstuck_core::event::{Event, Recorded, RunId, SessionId, VERSION};

use super::calls::Counting;
use super::projects::Projects;
use super::tries::{self, Tries};
use super::{calls, failure, hourly, leases, outbox, questions, read, spending, told};
use crate::append::{Line, Prepared};
use crate::calls::Ready;
use crate::error::StoreError;
use crate::rollup::{self, Cell, Key};
use crate::spending::{Key as SpentKey, Sum};
use crate::tried::{self, Attempt};

/// So many runs are kept in memory at most.
const KEPT: usize = 4096;

const INSERT: &str = "INSERT INTO events (run, seq, at, v, event, session, kind, payload)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const BELONGS: &str = "INSERT OR IGNORE INTO sessions (session, run) VALUES (?1, ?2)";

const UPSERT: &str =
    "INSERT INTO runs (id, project, status, kind, started, updated, finished, view)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (id) DO UPDATE SET
        status = ?3, kind = ?4, updated = ?6, finished = ?7, view = ?8";

/// A run as far as the events so far tell.
#[derive(Debug, Default)]
struct Run {
    /// The number of its newest event; 0 before the first.
    seq: u64,
    /// None if it began in a way that only a newer unstuck understands.
    view: Option<RunView>,
    /// The session of the newest event that has one.
    session: Option<SessionId>,
    /// The prompts of the sessions that have failed.
    patterns: HashMap<SessionId, Arc<PromptPattern>>,
}

impl Run {
    fn note_session(
        &mut self,
        connection: &Connection,
        recorded: &Recorded,
    ) -> rusqlite::Result<()> {
        let session = recorded.event.session();
        if session.is_some() && session != self.session.as_ref() {
            let row = params![session.map(SessionId::as_str), recorded.run.as_str()];
            connection.prepare_cached(BELONGS)?.execute(row)?;
            self.session = session.cloned();
        }
        Ok(())
    }

    /// The prompt of one of its sessions.
    fn pattern(
        &mut self,
        connection: &Connection,
        id: &RunId,
        session: &SessionId,
    ) -> rusqlite::Result<Arc<PromptPattern>> {
        if let Some(known) = self.patterns.get(session) {
            return Ok(Arc::clone(known));
        }
        let is_pipeline = self.view.as_ref().is_none_or(|view| view.roles.is_some());
        let role = match is_pipeline {
            true => tries::role(connection, id, session)?,
            false => None,
        };
        let pattern = Arc::new(tried::pattern(role, self.view.as_ref()));
        self.patterns.insert(session.clone(), Arc::clone(&pattern));
        Ok(pattern)
    }
}

/// What was folded, some of it not yet written.
#[derive(Debug, Default)]
pub(super) struct Folds {
    runs: HashMap<RunId, Run>,
    changed: HashSet<RunId>,
    cells: HashMap<Key, Cell>,
    spent: HashMap<SpentKey, Sum>,
    tries: Tries,
    projects: Projects,
}

impl Folds {
    /// Writes the events, or says why they are refused; the outer error is one of the database, which ends the transaction.
    pub(super) fn append(
        &mut self,
        connection: &Connection,
        append: &mut Prepared,
    ) -> rusqlite::Result<Result<Vec<Recorded>, StoreError>> {
        if append.events.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        if let Some(token) = &append.guard
            && (token.run != append.run || !leases::holds(connection, token)?)
        {
            let run = append.run.clone();
            return Ok(Err(StoreError::LostLease { run }));
        }
        if let Some(answers) = &append.answers
            && let Some(refused) = questions::refuse(connection, &append.run, answers)?
        {
            return Ok(Err(refused));
        }
        let run = self.run(connection, &append.run)?;
        if let Some(refused) = refuse(run, append) {
            return Ok(Err(refused));
        }
        let lines = std::mem::take(&mut append.events);
        let written = lines
            .into_iter()
            .map(|line| self.write(connection, &append.run, append.at, line))
            .collect::<rusqlite::Result<Vec<Recorded>>>()?;
        outbox::write(connection, &append.outbox, &written)?;
        let is_end = |recorded: &Recorded| matches!(recorded.event, Event::RunFinished(_));
        if let Some(token) = &append.guard
            && written.iter().any(is_end)
        {
            leases::release(connection, token)?;
        }
        if !self.changed.contains(&append.run) {
            self.changed.insert(append.run.clone());
        }
        Ok(Ok(written))
    }

    /// Writes calls; they need no events of their run.
    pub(super) fn calls(&mut self, connection: &Connection, calls: &Ready) -> rusqlite::Result<()> {
        for call in &calls.0 {
            let view = self.run(connection, &call.run)?.view.as_ref();
            let counting = Counting::of(connection, call, view)?;
            let project = view.map(|view| view.project.clone()).unwrap_or_default();
            calls::insert(connection, call, &project, &counting)?;
            if counting.alone {
                self.tries.call(call, &project, counting.fault.as_ref());
                let cost = call.cost_usd.map_or(0, rollup::nanos);
                self.projects.add(&project, call.at, cost);
            }
            let key = SpentKey::of(call, &project);
            self.spent.entry(key).or_default().add(call);
        }
        Ok(())
    }

    /// Writes what was folded since the last time.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for id in self.changed.drain() {
            if let Some(view) = self.runs.get(&id).and_then(|run| run.view.as_ref()) {
                put(connection, view)?;
            }
        }
        for (key, cell) in self.cells.drain() {
            hourly::add(connection, &key, &cell)?;
        }
        for (key, sum) in self.spent.drain() {
            spending::add(connection, &key, &sum)?;
        }
        self.tries.flush(connection)?;
        self.projects.flush(connection)?;
        if self.runs.len() > KEPT {
            self.runs.clear();
        }
        Ok(())
    }

    /// Forgets everything: the transaction has failed, or others have written.
    pub(super) fn forget(&mut self) {
        self.runs.clear();
        self.changed.clear();
        self.cells.clear();
        self.spent.clear();
        self.tries.forget();
        self.projects.forget();
    }

    fn run(&mut self, connection: &Connection, id: &RunId) -> rusqlite::Result<&mut Run> {
        if !self.runs.contains_key(id) {
            self.runs.insert(id.clone(), find(connection, id)?);
        }
        Ok(self.runs.entry(id.clone()).or_default())
    }

    fn write(
        &mut self,
        connection: &Connection,
        id: &RunId,
        at: Timestamp,
        line: Line,
    ) -> rusqlite::Result<Recorded> {
        let run = self.runs.entry(id.clone()).or_default();
        let recorded = Recorded {
            version: VERSION,
            run: id.clone(),
            seq: run.seq + 1,
            at,
            event: line.event,
        };
        insert(connection, &recorded, &line.payload)?;
        run.seq = recorded.seq;
        run.note_session(connection, &recorded)?;
        match &mut run.view {
            Some(view) => view.record(&recorded),
            None => run.view = RunView::begin(&recorded),
        }
        questions::record(connection, &recorded, run.view.as_ref())?;
        told::record(connection, &recorded, run.view.as_ref())?;
        let failing_since = hourly::failing_since(connection, &recorded)?;
        for line in rollup::lines(&recorded, run.view.as_ref(), failing_since) {
            self.cells.entry(line.key.clone()).or_default().add(&line);
        }
        if let Some(view) = &run.view {
            let cost = rollup::cost_nanos(&recorded.event);
            self.projects.add(&view.project, at, cost);
        }
        if let Event::SessionStarted(started) = &recorded.event {
            run.patterns.remove(&started.spec.session);
        }
        if let Some(attempt) = Attempt::of(&recorded) {
            let pattern = match attempt.failure {
                Some(_) => Some(run.pattern(connection, id, &attempt.end.session)?),
                None => None,
            };
            self.tries.attempt(&attempt, run.view.as_ref(), pattern);
        }
        Ok(recorded)
    }
}

/// A run begins exactly once.
fn refuse(run: &Run, append: &Prepared) -> Option<StoreError> {
    let begins = |line: &Line| line.event.name() == "run_started";
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

fn insert(connection: &Connection, recorded: &Recorded, payload: &str) -> rusqlite::Result<()> {
    let event = &recorded.event;
    connection.prepare_cached(INSERT)?.execute(params![
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

/// A run as the file has it.
fn find(connection: &Connection, id: &RunId) -> rusqlite::Result<Run> {
    let mut statement = connection.prepare_cached("SELECT view FROM runs WHERE id = ?1")?;
    let view: Option<String> = statement
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(view) = view.and_then(|view| serde_json::from_str::<RunView>(&view).ok()) {
        return Ok(Run {
            seq: view.seq,
            view: Some(view),
            ..Run::default()
        });
    }
    // Not there, or written by a newer unstuck: the events tell.
    let events = read::load(connection, id)?;
    Ok(Run {
        seq: events.last().map_or(0, |last| last.seq),
        view: RunView::fold(&events),
        ..Run::default()
    })
}

fn put(connection: &Connection, view: &RunView) -> rusqlite::Result<()> {
    let text = serde_json::to_string(view).map_err(|error| failure::unreadable(7, error))?;
    connection.prepare_cached(UPSERT)?.execute(params![
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
