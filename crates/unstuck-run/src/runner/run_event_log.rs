//! The event log of a run: written in one order by all its sessions, and shown in the project.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::{Mutex, watch};
use unstuck_core::event::{RoleInstance, RunFinished, RunStarted, VERSION};
use unstuck_core::redact::Redactor;
use unstuck_core::views::{EventWithState, RunProjection};
use unstuck_core::{Event, EventRecord, RunId, SessionId, Timestamp};
use unstuck_files::DirHandle;
use unstuck_store::{RunEventBatch, Store, StoreError};

use super::error::RunError;
use super::notify_hook::NotificationBuilder;
use super::run_lease::RunLease;
use super::run_result::{AttemptProcessExit, RunResult};
use crate::run_dir::{self, AttemptFiles, RunDir};

/// The event log of an active run.
pub(crate) struct RunEventLog<'a> {
    store: &'a Store,
    redactor: &'a Redactor,
    run: RunId,
    project: PathBuf,
    /// The state directory, which holds the files of the run.
    state: PathBuf,
    lease: RunLease,
    notifier: Option<&'a dyn NotificationBuilder>,
    /// Serializes writes: events are shown in the order in which they are written.
    write_lock: Mutex<()>,
    known: RefCell<RunLogState>,
}

struct RunLogState {
    fold: RunProjection,
    seq: u64,
    files: RunFiles,
    /// Events written before this process resumed the run: the files may not show all of them.
    missed_by_files: Vec<EventWithState>,
    /// Events that the store could not take yet, in order.
    backlog: Vec<RunEventBatch>,
}

/// The result of an append to the log.
pub(super) struct AppendOutcome {
    pub(super) events: Vec<EventRecord>,
    /// The warning about files that could not be written.
    pub(super) warning: Option<String>,
    pub(super) store: StoreState,
}

/// The state of the store.
#[derive(Debug, Clone)]
pub(super) enum StoreState {
    /// The store can be written.
    Writable,
    /// The store has just become unwritable: events are kept in memory.
    BecameUnwritable(StoreError),
    /// The store still cannot be written.
    StillUnwritable,
    /// The store can be written again and has received this number of buffered events.
    CaughtUp(usize),
}

impl<'a> RunEventLog<'a> {
    /// Begins the log of a new run. Its first event is written with the next ones.
    pub(super) fn begin(
        place: RunStorage<'a>,
        run: &RunId,
        started: &RunStarted,
        at: Timestamp,
        held: RunLease,
    ) -> Option<Self> {
        let first = EventRecord {
            version: VERSION,
            run: run.clone(),
            seq: 0,
            at,
            event: Event::from(Box::new(started.clone())),
        };
        let fold = RunProjection::from_first_event(&first)?;
        Some(Self::from_parts(place, fold, 0, held))
    }

    /// Reopens the log of an existing run; `None` if its first event is missing.
    pub(super) fn reopen(
        place: RunStorage<'a>,
        events: &[EventRecord],
        held: RunLease,
    ) -> Option<Self> {
        let seq = events.last()?.seq;
        let (fold, late) = RunProjection::from_events_with_states(events)?;
        let journal = Self::from_parts(place, fold, seq, held);
        journal.known.borrow_mut().missed_by_files = late;
        Some(journal)
    }

    fn from_parts(place: RunStorage<'a>, fold: RunProjection, seq: u64, lease: RunLease) -> Self {
        Self {
            store: place.store,
            redactor: place.redactor,
            run: fold.summary.id.clone(),
            project: PathBuf::from(&fold.run.project),
            state: place.state.to_owned(),
            lease,
            notifier: None,
            write_lock: Mutex::new(()),
            known: RefCell::new(RunLogState {
                fold,
                seq,
                files: RunFiles::NotOpened,
                missed_by_files: Vec::new(),
                backlog: Vec::new(),
            }),
        }
    }

    /// Returns the log with a notifier.
    pub(super) fn with_notifier(self, announcer: Option<&'a dyn NotificationBuilder>) -> Self {
        Self {
            notifier: announcer,
            ..self
        }
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the root directory of the project.
    pub(super) fn project(&self) -> &Path {
        &self.project
    }

    /// Calls a function with the view of the run.
    pub(crate) fn with_view<T>(&self, look: impl FnOnce(&RunProjection) -> T) -> T {
        look(&self.known.borrow().fold)
    }

    /// Writes events and shows them.
    pub(super) async fn write(
        &self,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<AppendOutcome, RunError> {
        let _turn = self.write_lock.lock().await;
        let outbox = match self.notifier {
            Some(announcer) => self.with_view(|run| announcer.notifications_for(run, &events, at)),
            None => Vec::new(),
        };
        let append = RunEventBatch {
            run: self.run.clone(),
            at,
            events,
            lease: Some(self.lease.token()),
            answer_guard: None,
            messages: outbox,
        };
        let Some(caught_up) = self.write_backlog().await? else {
            return Ok(self.buffer(append, StoreState::StillUnwritable));
        };
        let events = match self.store.append(append.clone()).await {
            Err(error) if error.is_unwritable() => {
                return Ok(self.buffer(append, StoreState::BecameUnwritable(error)));
            }
            written => written?,
        };
        self.apply_events_before(&events).await?;
        let warning = self.apply(&events);
        Ok(AppendOutcome {
            events,
            warning,
            store: match caught_up {
                0 => StoreState::Writable,
                count => StoreState::CaughtUp(count),
            },
        })
    }

    /// Applies events that other processes wrote before these; they must not be lost.
    async fn apply_events_before(&self, events: &[EventRecord]) -> Result<(), RunError> {
        let known = self.known.borrow().seq;
        let own = events.first().map_or(0, |first| first.seq);
        if own > known + 1 {
            let mut others = self.store.load(&self.run).await?;
            others.retain(|recorded| recorded.seq > known && recorded.seq < own);
            let _ = self.apply(&others);
        }
        Ok(())
    }

    /// Buffers events that the store cannot take; they are in effect all the same.
    fn buffer(&self, append: RunEventBatch, store: StoreState) -> AppendOutcome {
        let seq = self.known.borrow().seq;
        let numbered = append.events.iter().cloned().zip(seq + 1..);
        let events: Vec<_> = numbered
            .map(|(event, seq)| EventRecord {
                version: VERSION,
                run: self.run.clone(),
                seq,
                at: append.at,
                event,
            })
            .collect();
        let warning = self.apply(&events);
        self.known.borrow_mut().backlog.push(append);
        AppendOutcome {
            events,
            warning,
            store,
        }
    }

    /// Writes the buffered events and returns their number; `None` if the store still cannot be written.
    async fn write_backlog(&self) -> Result<Option<usize>, RunError> {
        let backlog = std::mem::take(&mut self.known.borrow_mut().backlog);
        let mut count = 0;
        let mut appends = backlog.into_iter();
        while let Some(append) = appends.next() {
            match self.store.append(append.clone()).await {
                Ok(events) => {
                    count += events.len();
                    if let Some(last) = events.last().filter(|_| appends.len() == 0) {
                        self.known.borrow_mut().seq = last.seq;
                    }
                }
                Err(error) if error.is_unwritable() => {
                    let rest = std::iter::once(append).chain(appends);
                    self.known.borrow_mut().backlog = rest.collect();
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(count))
    }

    /// Retries to write the buffered events; returns true if none are left.
    pub(super) async fn flush_backlog(&self) -> Result<bool, RunError> {
        let _turn = self.write_lock.lock().await;
        Ok(self.write_backlog().await?.is_some())
    }

    /// Returns the events that the store could not take yet, without secrets.
    fn unrecorded(&self) -> Vec<EventRecord> {
        let known = self.known.borrow();
        let events = known.backlog.iter().flat_map(|append| {
            let recorded = |event: &Event| EventRecord {
                version: VERSION,
                run: self.run.clone(),
                seq: 0,
                at: append.at,
                event: event.clone(),
            };
            append.events.iter().map(recorded).collect::<Vec<_>>()
        });
        let clean = |recorded: EventRecord| {
            let mut value = serde_json::to_value(&recorded).ok()?;
            self.redactor.redact_value(&mut value);
            serde_json::from_value(value).ok()
        };
        events.filter_map(clean).collect()
    }

    /// Returns true if there are events that the store could not take yet.
    pub(super) fn is_ahead_of_store(&self) -> bool {
        !self.known.borrow().backlog.is_empty()
    }

    /// Returns the answers since a session's escalation; applies all events of other processes.
    pub(super) async fn answers(&self, session: &SessionId) -> Result<Vec<EventRecord>, RunError> {
        let _turn = self.write_lock.lock().await;
        let seq = self.known.borrow().seq;
        let all = self.store.load(&self.run).await?;
        let newer = all.partition_point(|recorded| recorded.seq <= seq);
        // The files are updated with the next write.
        let _ = self.apply(&all[newer..]);
        let asks = |recorded: &EventRecord| matches!(&recorded.event, Event::EscalationOpened(asked) if asked.session.as_ref() == Some(session));
        let since = all.iter().rposition(asks).unwrap_or(0);
        let answers = all.into_iter().skip(since);
        let is_answer = |one: &EventRecord| {
            matches!(
                one.event,
                Event::EscalationResolved(_) | Event::RepairApproved(_)
            )
        };
        let answers = answers.filter(is_answer);
        Ok(answers.collect())
    }

    /// Applies the events of other processes.
    pub(super) async fn apply_external_events(&self) -> Result<(), RunError> {
        let _turn = self.write_lock.lock().await;
        let seq = self.known.borrow().seq;
        let all = self.store.load(&self.run).await?;
        let newer = all.partition_point(|recorded| recorded.seq <= seq);
        // The files are updated with the next write.
        let _ = self.apply(&all[newer..]);
        Ok(())
    }

    /// Applies events and shows them; returns a warning if files could not be written, the first time.
    fn apply(&self, events: &[EventRecord]) -> Option<String> {
        let mut known = self.known.borrow_mut();
        let known = &mut *known;
        let mut with_states = Vec::new();
        for recorded in events {
            let is_first = matches!(recorded.event, Event::RunStarted(_));
            with_states.push(if is_first {
                known.fold.with_state(recorded.clone())
            } else {
                known.fold.apply_with_state(recorded.clone())
            });
            known.seq = recorded.seq;
        }
        if let Err(error) = known.write_files(self, &with_states) {
            // Files that could not be created once are not tried again.
            known.files = RunFiles::Unavailable;
            let path = self.files_dir().display().to_string();
            return Some(format!(
                "cannot write the files in {path} ({error}); continuing without them"
            ));
        }
        let RunFiles::Open(folder) = &known.files else {
            return None;
        };
        let failure = folder.take_copy_failure()?;
        Some(format!(
            "cannot write copies of this run's files ({failure}); the originals are in {}",
            folder.path().display()
        ))
    }

    /// Returns true if the files of the run do not show all events.
    pub(super) fn has_stale_files(&self) -> bool {
        match &self.known.borrow().files {
            RunFiles::Open(folder) => folder.has_stale_views(),
            RunFiles::NotOpened | RunFiles::Unavailable => false,
        }
    }

    /// Updates the files of the run if they are stale.
    pub(super) fn refresh_files(&self) {
        let mut known = self.known.borrow_mut();
        let RunLogState { fold, files, .. } = &mut *known;
        if let RunFiles::Open(folder) = files {
            // The files are only views; if they cannot be written, the next write reports it.
            let _ = folder.refresh_views(fold, self.redactor);
        }
    }

    /// Returns the files of an attempt; `None` if there are no files.
    pub(super) fn attempt_files(
        &self,
        part: Option<&RoleInstance>,
        number: u32,
    ) -> Option<AttemptFiles> {
        let known = self.known.borrow();
        let instances = known.fold.run.instances(part);
        match &known.files {
            RunFiles::Open(folder) => folder.open_attempt_files(part, instances, number).ok(),
            RunFiles::NotOpened | RunFiles::Unavailable => None,
        }
    }

    /// Returns the directory for an agent's proposals of an attempt and its path; `None` if there is none.
    pub(super) fn proposal_dir(
        &self,
        part: Option<&RoleInstance>,
        number: u32,
    ) -> Option<(DirHandle, PathBuf)> {
        let known = self.known.borrow();
        let instances = known.fold.run.instances(part);
        match &known.files {
            RunFiles::Open(folder) => folder.open_proposal_dir(part, instances, number),
            RunFiles::NotOpened | RunFiles::Unavailable => None,
        }
    }

    /// Writes a text to the directory of a role, if there are files.
    pub(super) fn write_role_file(&self, part: &RoleInstance, name: &str, text: &str) {
        let known = self.known.borrow();
        if let RunFiles::Open(folder) = &known.files {
            let instances = known.fold.run.instances(Some(part));
            // It is only a view for humans; the real data is stored elsewhere.
            let _ = folder.write_role_file(part, instances, name, text);
        }
    }

    /// Returns the directory of the run's files.
    pub(super) fn files_dir(&self) -> PathBuf {
        run_dir::run_files_dir(&self.state, &self.run)
    }

    /// Returns a receiver of the takeover by another process.
    pub(super) fn takeover_signal(&self) -> watch::Receiver<bool> {
        self.lease.takeover_signal()
    }

    /// Closes the log and returns the result of the run; an unfinished run is released and is an error.
    pub(super) async fn close(
        self,
        end: Option<RunFinished>,
        child: Option<AttemptProcessExit>,
    ) -> Result<RunResult, RunError> {
        let unrecorded = self.unrecorded();
        let run = self.run;
        match end {
            Some(end) => Ok(RunResult {
                run,
                end,
                child,
                unrecorded,
            }),
            None => {
                self.lease.release(self.store).await?;
                let why = "the end event is missing".into();
                Err(RunError::NotResumable { run, why })
            }
        }
    }
}

impl RunLogState {
    fn write_files(
        &mut self,
        journal: &RunEventLog<'_>,
        events: &[EventWithState],
    ) -> io::Result<()> {
        let redactor = journal.redactor;
        if matches!(self.files, RunFiles::NotOpened) {
            let folder = RunDir::open(&journal.state, &journal.project, &journal.run)?;
            self.files = RunFiles::Open(folder);
        }
        match &mut self.files {
            RunFiles::Open(folder) => {
                let late = std::mem::take(&mut self.missed_by_files);
                folder.record_events(&late, &self.fold, redactor)?;
                folder.record_events(events, &self.fold, redactor)
            }
            RunFiles::NotOpened | RunFiles::Unavailable => Ok(()),
        }
    }
}

/// The storage of a run and the redactor of its secrets.
#[derive(Clone, Copy)]
pub(super) struct RunStorage<'a> {
    pub(super) store: &'a Store,
    pub(super) redactor: &'a Redactor,
    /// The state directory, which holds the files of all runs.
    pub(super) state: &'a Path,
}

/// The files of the run.
enum RunFiles {
    NotOpened,
    Open(RunDir),
    Unavailable,
}
