//! What has happened in a run: written down in one order by all its sessions, and shown in the project.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::{Mutex, watch};
use unstuck_core::episode::RunFold;
use unstuck_core::event::{Part, RunFinished, RunStarted, VERSION};
use unstuck_core::redact::Redactor;
use unstuck_core::{Event, Recorded, RunId, SessionId, Timestamp};
use unstuck_store::{Append, Store};

use super::announce::Announcer;
use super::error::RunError;
use super::finished::{ChildEnd, Finished};
use super::lease::Held;
use crate::folder::{self, RunFolder};

/// The log of a run that is being driven.
pub(crate) struct Journal<'a> {
    store: &'a Store,
    redactor: &'a Redactor,
    run: RunId,
    project: PathBuf,
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
    late: Vec<Recorded>,
}

/// What was written, and whether it could be shown.
pub(super) struct Written {
    pub(super) events: Vec<Recorded>,
    pub(super) shown: io::Result<()>,
}

impl<'a> Journal<'a> {
    /// Begins the journal of a new run. Its beginning is written with whatever comes first.
    pub(super) fn begin(
        store: &'a Store,
        redactor: &'a Redactor,
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
        Some(Self::of(store, redactor, fold, 0, held))
    }

    /// Goes on with the journal of an old run; none if it has no beginning.
    pub(super) fn again(
        store: &'a Store,
        redactor: &'a Redactor,
        events: &[Recorded],
        held: Held,
    ) -> Option<Self> {
        let seq = events.last()?.seq;
        let journal = Self::of(store, redactor, RunFold::fold(events)?, seq, held);
        journal.known.borrow_mut().late = events.to_vec();
        Some(journal)
    }

    fn of(store: &'a Store, redactor: &'a Redactor, fold: RunFold, seq: u64, held: Held) -> Self {
        Self {
            store,
            redactor,
            run: fold.view.id.clone(),
            project: PathBuf::from(&fold.run.project),
            held,
            announcer: None,
            turn: Mutex::new(()),
            known: RefCell::new(Known {
                fold,
                seq,
                files: Files::NotYet,
                late: Vec::new(),
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
        let events = self.store.append(append).await?;
        let known = self.known.borrow().seq;
        if events.first().is_some_and(|first| first.seq > known + 1) {
            // Others wrote in between; what they said must not be lost.
            let own = events.first().map_or(0, |first| first.seq);
            let mut others = self.store.load(&self.run).await?;
            others.retain(|recorded| recorded.seq > known && recorded.seq < own);
            let _ = self.take_in(&others);
        }
        let shown = self.take_in(&events);
        Ok(Written { events, shown })
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

    fn take_in(&self, events: &[Recorded]) -> io::Result<()> {
        let mut known = self.known.borrow_mut();
        let known = &mut *known;
        for recorded in events {
            if !matches!(recorded.event, Event::RunStarted(_)) {
                known.fold.record(recorded);
            }
            known.seq = recorded.seq;
        }
        let shown = known.show(&self.project, events, self.redactor);
        if shown.is_err() {
            // If they cannot be had once, they are not asked for again.
            known.files = Files::Without;
        }
        shown
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

    /// The folder of an attempt in the project, made if it is not there; none if there are no files.
    pub(super) fn attempt_folder(&self, part: Option<&Part>, number: u32) -> Option<PathBuf> {
        match &self.known.borrow().files {
            Files::At(folder) => folder.attempt(part, number).ok(),
            Files::NotYet | Files::Without => None,
        }
    }

    /// Puts a text into the folder of a role in the project, where there are files.
    pub(super) fn keep(&self, part: &Part, name: &str, text: &str) {
        if let Files::At(folder) = &self.known.borrow().files {
            // It is a view for people; what counts is kept elsewhere.
            let _ = folder.keep(part, name, text);
        }
    }

    /// Where the files of the run are.
    pub(super) fn folder_path(&self) -> PathBuf {
        folder::path_of(&self.project, &self.run)
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
        let run = self.run;
        match end {
            Some(end) => Ok(Finished { run, end, child }),
            None => {
                self.held.release(self.store).await?;
                let why = "it has no end".into();
                Err(RunError::NotResumable { run, why })
            }
        }
    }
}

impl Known {
    fn show(&mut self, project: &Path, events: &[Recorded], redactor: &Redactor) -> io::Result<()> {
        if matches!(self.files, Files::NotYet) {
            let folder = RunFolder::open(project, &self.fold.view.id)?;
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

/// The files of the run in its project.
enum Files {
    NotYet,
    At(RunFolder),
    Without,
}
