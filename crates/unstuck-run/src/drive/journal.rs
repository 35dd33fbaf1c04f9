//! What has happened in a run: written down in one order by all its sessions, and shown in the project.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::{Mutex, watch};
use unstuck_core::episode::{EventWithState, RunFold};
use unstuck_core::event::{Part, RunFinished, RunStarted, VERSION};
use unstuck_core::redact::Redactor;
use unstuck_core::{Event, Recorded, RunId, SessionId, Timestamp};
use unstuck_files::DirHandle;
use unstuck_store::{Append, Store, StoreError};

use super::announce::Announcer;
use super::error::RunError;
use super::finished::{ChildEnd, Finished};
use super::lease::Held;
use crate::folder::{self, AttemptFiles, RunFolder};

/// The log of a run that is being driven.
pub(crate) struct Journal<'a> {
    store: &'a Store,
    redactor: &'a Redactor,
    run: RunId,
    project: PathBuf,
    /// The state folder, in which the files of the run are.
    state: PathBuf,
    held: Held,
    announcer: Option<&'a dyn Announcer>,
    /// Whose turn it is to write: what is written first is also shown first.
    turn: Mutex<()>,
    known: RefCell<Known>,
}

struct Known {
    fold: RunFold,
    seq: u64,
    files: Files,
    /// What was written before this process took the run up: the files may not show all of it.
    late: Vec<EventWithState>,
    /// What the store could not take yet, in order.
    backlog: Vec<Append>,
}

/// What was written, and whether it could be shown.
pub(super) struct Written {
    pub(super) events: Vec<Recorded>,
    /// What people have to be told about files that could not be written.
    pub(super) warning: Option<String>,
    pub(super) store: StoreState,
}

/// Whether the store takes what happens.
#[derive(Debug, Clone)]
pub(super) enum StoreState {
    /// It does.
    Writable,
    /// It cannot be written since now: what happens is kept in memory.
    BecameUnwritable(StoreError),
    /// It still cannot be written.
    StillUnwritable,
    /// It can be written again, and so many events that were kept in memory are in it now.
    CaughtUp(usize),
}

impl<'a> Journal<'a> {
    /// Begins the journal of a new run. Its beginning is written with whatever comes first.
    pub(super) fn begin(
        place: Place<'a>,
        run: &RunId,
        started: &RunStarted,
        at: Timestamp,
        held: Held,
    ) -> Option<Self> {
        let first = Recorded {
            version: VERSION,
            run: run.clone(),
            seq: 0,
            at,
            event: Event::from(Box::new(started.clone())),
        };
        let fold = RunFold::begin(&first)?;
        Some(Self::of(place, fold, 0, held))
    }

    /// Goes on with the journal of an old run; none if it has no beginning.
    pub(super) fn again(place: Place<'a>, events: &[Recorded], held: Held) -> Option<Self> {
        let seq = events.last()?.seq;
        let (fold, late) = RunFold::fold_with_states(events)?;
        let journal = Self::of(place, fold, seq, held);
        journal.known.borrow_mut().late = late;
        Some(journal)
    }

    fn of(place: Place<'a>, fold: RunFold, seq: u64, held: Held) -> Self {
        Self {
            store: place.store,
            redactor: place.redactor,
            run: fold.view.id.clone(),
            project: PathBuf::from(&fold.run.project),
            state: place.state.to_owned(),
            held,
            announcer: None,
            turn: Mutex::new(()),
            known: RefCell::new(Known {
                fold,
                seq,
                files: Files::NotYet,
                late: Vec::new(),
                backlog: Vec::new(),
            }),
        }
    }

    /// The same, and people are told what happens.
    pub(super) fn announcing(self, announcer: Option<&'a dyn Announcer>) -> Self {
        Self { announcer, ..self }
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// The root folder of the project.
    pub(super) fn project(&self) -> &Path {
        &self.project
    }

    /// What is known about the run.
    pub(crate) fn know<T>(&self, look: impl FnOnce(&RunFold) -> T) -> T {
        look(&self.known.borrow().fold)
    }

    /// Writes down what happened, and shows it.
    pub(super) async fn write(
        &self,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<Written, RunError> {
        let _turn = self.turn.lock().await;
        let outbox = match self.announcer {
            Some(announcer) => self.know(|run| announcer.announce(run, &events, at)),
            None => Vec::new(),
        };
        let append = Append {
            run: self.run.clone(),
            at,
            events,
            guard: Some(self.held.token()),
            answers: None,
            outbox,
        };
        let Some(caught_up) = self.write_backlog().await? else {
            return Ok(self.keep_back(append, StoreState::StillUnwritable));
        };
        let events = match self.store.append(append.clone()).await {
            Err(error) if error.is_unwritable() => {
                return Ok(self.keep_back(append, StoreState::BecameUnwritable(error)));
            }
            written => written?,
        };
        self.hear_others(&events).await?;
        let warning = self.take_in(&events);
        Ok(Written {
            events,
            warning,
            store: match caught_up {
                0 => StoreState::Writable,
                count => StoreState::CaughtUp(count),
            },
        })
    }

    /// Takes in what others wrote before these events; it must not be lost.
    async fn hear_others(&self, events: &[Recorded]) -> Result<(), RunError> {
        let known = self.known.borrow().seq;
        let own = events.first().map_or(0, |first| first.seq);
        if own > known + 1 {
            let mut others = self.store.load(&self.run).await?;
            others.retain(|recorded| recorded.seq > known && recorded.seq < own);
            let _ = self.take_in(&others);
        }
        Ok(())
    }

    /// Keeps in memory what the store cannot take; it counts all the same.
    fn keep_back(&self, append: Append, store: StoreState) -> Written {
        let seq = self.known.borrow().seq;
        let numbered = append.events.iter().cloned().zip(seq + 1..);
        let events: Vec<_> = numbered
            .map(|(event, seq)| Recorded {
                version: VERSION,
                run: self.run.clone(),
                seq,
                at: append.at,
                event,
            })
            .collect();
        let warning = self.take_in(&events);
        self.known.borrow_mut().backlog.push(append);
        Written {
            events,
            warning,
            store,
        }
    }

    /// Writes what the store could not take before, and tells how many events that were; none if it still cannot.
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

    /// Tries again to write what the store could not take; whether nothing is left.
    pub(super) async fn catch_up_with_store(&self) -> Result<bool, RunError> {
        let _turn = self.turn.lock().await;
        Ok(self.write_backlog().await?.is_some())
    }

    /// What happened that the store could not take yet, without secrets.
    fn unrecorded(&self) -> Vec<Recorded> {
        let known = self.known.borrow();
        let events = known.backlog.iter().flat_map(|append| {
            let recorded = |event: &Event| Recorded {
                version: VERSION,
                run: self.run.clone(),
                seq: 0,
                at: append.at,
                event: event.clone(),
            };
            append.events.iter().map(recorded).collect::<Vec<_>>()
        });
        let clean = |recorded: Recorded| {
            let mut value = serde_json::to_value(&recorded).ok()?;
            self.redactor.redact_value(&mut value);
            serde_json::from_value(value).ok()
        };
        events.filter_map(clean).collect()
    }

    /// Whether something happened that the store could not take yet.
    pub(super) fn is_ahead_of_store(&self) -> bool {
        !self.known.borrow().backlog.is_empty()
    }

    /// What people have answered since a session asked; all that others wrote is taken in.
    pub(super) async fn answers(&self, session: &SessionId) -> Result<Vec<Recorded>, RunError> {
        let _turn = self.turn.lock().await;
        let seq = self.known.borrow().seq;
        let all = self.store.load(&self.run).await?;
        let newer = all.partition_point(|recorded| recorded.seq <= seq);
        // Whoever reads the files sees it with the next that is written.
        let _ = self.take_in(&all[newer..]);
        let asks = |recorded: &Recorded| matches!(&recorded.event, Event::RecoveryEscalated(asked) if asked.session.as_ref() == Some(session));
        let since = all.iter().rposition(asks).unwrap_or(0);
        let answers = all.into_iter().skip(since);
        let is_answer = |one: &Recorded| {
            matches!(
                one.event,
                Event::RecoveryResolved(_) | Event::RecoveryApproved(_)
            )
        };
        let answers = answers.filter(is_answer);
        Ok(answers.collect())
    }

    /// Takes in what others have written.
    pub(super) async fn hear(&self) -> Result<(), RunError> {
        let _turn = self.turn.lock().await;
        let seq = self.known.borrow().seq;
        let all = self.store.load(&self.run).await?;
        let newer = all.partition_point(|recorded| recorded.seq <= seq);
        // Whoever reads the files sees it with the next that is written.
        let _ = self.take_in(&all[newer..]);
        Ok(())
    }

    /// Takes in what happened and shows it; tells if files could not be written, the first time.
    fn take_in(&self, events: &[Recorded]) -> Option<String> {
        let mut known = self.known.borrow_mut();
        let known = &mut *known;
        let mut with_states = Vec::new();
        for recorded in events {
            let is_first = matches!(recorded.event, Event::RunStarted(_));
            with_states.push(match is_first {
                true => known.fold.with_state(recorded.clone()),
                false => known.fold.record_with_state(recorded.clone()),
            });
            known.seq = recorded.seq;
        }
        if let Err(error) = known.show(self, &with_states) {
            // If they cannot be had once, they are not asked for again.
            known.files = Files::Without;
            let path = self.files_path().display().to_string();
            return Some(format!(
                "the files in {path} could not be written ({error}); the run goes on without them"
            ));
        }
        let Files::At(folder) = &known.files else {
            return None;
        };
        let failure = folder.take_copy_failure()?;
        Some(format!(
            "copies of this run's files could not be written ({failure}); the run goes on without them, its files are in {}",
            folder.path().display()
        ))
    }

    /// Whether the files of the run do not show all that has happened.
    pub(super) fn is_behind(&self) -> bool {
        match &self.known.borrow().files {
            Files::At(folder) => folder.is_behind(),
            Files::NotYet | Files::Without => false,
        }
    }

    /// Brings the files of the run up to date, where they are behind.
    pub(super) fn catch_up(&self) {
        let mut known = self.known.borrow_mut();
        let Known { fold, files, .. } = &mut *known;
        if let Files::At(folder) = files {
            // They are views; if they cannot be written, the next write tells.
            let _ = folder.catch_up(fold, self.redactor);
        }
    }

    /// The files of an attempt; none if there are no files.
    pub(super) fn attempt_files(&self, part: Option<&Part>, number: u32) -> Option<AttemptFiles> {
        let known = self.known.borrow();
        let instances = known.fold.run.instances(part);
        match &known.files {
            Files::At(folder) => folder.attempt(part, instances, number).ok(),
            Files::NotYet | Files::Without => None,
        }
    }

    /// The folder in the project that an agent puts its proposal of an attempt into, and its path; none if there is none.
    pub(super) fn proposals(
        &self,
        part: Option<&Part>,
        number: u32,
    ) -> Option<(DirHandle, PathBuf)> {
        let known = self.known.borrow();
        let instances = known.fold.run.instances(part);
        match &known.files {
            Files::At(folder) => folder.proposals(part, instances, number),
            Files::NotYet | Files::Without => None,
        }
    }

    /// Puts a text into the folder of a role, where there are files.
    pub(super) fn keep(&self, part: &Part, name: &str, text: &str) {
        let known = self.known.borrow();
        if let Files::At(folder) = &known.files {
            let instances = known.fold.run.instances(Some(part));
            // It is a view for people; what counts is kept elsewhere.
            let _ = folder.keep(part, instances, name, text);
        }
    }

    /// Where the files of the run are.
    pub(super) fn files_path(&self) -> PathBuf {
        folder::files_of(&self.state, &self.run)
    }

    /// Tells whether another process has taken the run over.
    pub(super) fn taken_over(&self) -> watch::Receiver<bool> {
        self.held.taken_over()
    }

    /// Gives the run up and tells how it ended.
    pub(super) async fn close(
        self,
        end: Option<RunFinished>,
        child: Option<ChildEnd>,
    ) -> Result<Finished, RunError> {
        let unrecorded = self.unrecorded();
        let run = self.run;
        match end {
            Some(end) => Ok(Finished {
                run,
                end,
                child,
                unrecorded,
            }),
            None => {
                self.held.release(self.store).await?;
                let why = "it has no end".into();
                Err(RunError::NotResumable { run, why })
            }
        }
    }
}

impl Known {
    fn show(&mut self, journal: &Journal<'_>, events: &[EventWithState]) -> io::Result<()> {
        let redactor = journal.redactor;
        if matches!(self.files, Files::NotYet) {
            let folder = RunFolder::open(&journal.state, &journal.project, &journal.run)?;
            self.files = Files::At(folder);
        }
        match &mut self.files {
            Files::At(folder) => {
                let late = std::mem::take(&mut self.late);
                folder.show(&late, &self.fold, redactor)?;
                folder.show(events, &self.fold, redactor)
            }
            Files::NotYet | Files::Without => Ok(()),
        }
    }
}

/// Where a run is written down, and what takes the secrets out.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) store: &'a Store,
    pub(super) redactor: &'a Redactor,
    /// The state folder, in which the files of all runs are.
    pub(super) state: &'a Path,
}

/// The files of the run.
enum Files {
    NotYet,
    At(RunFolder),
    Without,
}
