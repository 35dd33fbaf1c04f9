//! What has happened in a run: noted at once, written down before anything is done because of it.

use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use unstuck_core::event::{AttemptInterrupted, InterruptedBy, Outcome, RunStarted, VERSION};
use unstuck_core::redact::Redactor;
use unstuck_core::{Event, Kind, Recorded, Recovery, RunId, RunView, Timestamp};
use unstuck_store::{Append, Store};

use super::error::RunError;
use super::finished::Finished;
use super::lease::Held;
use super::request::Options;
use crate::folder::{self, RunFolder};

/// The log of the run that is being driven.
pub(super) struct Log {
    recovery: Recovery,
    view: RunView,
    options: Options,
    pending: Vec<Event>,
    /// When the first of the pending events happened; all of one write have one moment.
    at: Option<Timestamp>,
    seq: u64,
    folder: Files,
    held: Held,
}

impl Log {
    /// Begins the log of a new run.
    pub(super) fn begin(run: &RunId, started: RunStarted, at: Timestamp, held: Held) -> Self {
        let options = options(&started);
        let event = Event::from(Box::new(started.clone()));
        Self {
            recovery: Recovery::of(run, &started, at),
            view: RunView::of(run, &started, at),
            options,
            pending: vec![event],
            at: Some(at),
            seq: 0,
            folder: Files::NotYet,
            held,
        }
    }

    /// Goes on with the log of an old run; none if it has no beginning.
    pub(super) fn again(events: &[Recorded], held: Held) -> Option<Self> {
        let recovery = Recovery::fold(events)?;
        let options = options(recovery.run());
        Some(Self {
            view: RunView::fold(events)?,
            options,
            pending: Vec::new(),
            at: None,
            seq: events.last()?.seq,
            folder: Files::NotYet,
            held,
            recovery,
        })
    }

    pub(super) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Notes what happened. It counts from now on, and is written by the next flush.
    pub(super) fn note(&mut self, at: Timestamp, event: impl Into<Event>) {
        let event = event.into();
        let recorded = Recorded {
            version: VERSION,
            run: self.recovery.id().clone(),
            seq: self.seq + self.pending.len() as u64 + 1,
            at: *self.at.get_or_insert(at),
            event,
        };
        self.take_in(&recorded);
        self.pending.push(recorded.event);
    }

    fn take_in(&mut self, recorded: &Recorded) {
        self.recovery.record(recorded);
        self.view.record(recorded);
    }

    /// Takes in what others wrote to this run.
    pub(super) fn hear(&mut self, events: &[Recorded]) {
        for recorded in events {
            self.take_in(recorded);
            self.seq = recorded.seq;
        }
    }

    /// The number of the newest event that is written.
    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    /// Writes down what was noted; none if there was nothing.
    pub(super) async fn flush(&mut self, store: &Store) -> Result<Option<Vec<Recorded>>, RunError> {
        let Some(at) = self.at.take() else {
            return Ok(None);
        };
        let append = Append {
            run: self.recovery.id().clone(),
            at,
            events: std::mem::take(&mut self.pending),
            guard: Some(self.held.token()),
        };
        let written = store.append(append).await?;
        self.seq = written.last().map_or(self.seq, |newest| newest.seq);
        Ok(Some(written))
    }

    /// Shows in the project what was written.
    pub(super) fn show(&mut self, events: &[Recorded], redactor: &Redactor) -> io::Result<()> {
        if matches!(self.folder, Files::NotYet) {
            // If it cannot be had once, it is not asked for again.
            self.folder = Files::Without;
            let project = Path::new(&self.recovery.run().project);
            self.folder = Files::At(RunFolder::open(project, self.recovery.id())?);
        }
        let shown = match &mut self.folder {
            Files::At(folder) => folder.show(events, &self.view, &self.recovery, redactor),
            Files::NotYet | Files::Without => Ok(()),
        };
        if shown.is_err() {
            self.folder = Files::Without;
        }
        shown
    }

    pub(super) fn folder(&self) -> Option<&RunFolder> {
        match &self.folder {
            Files::At(folder) => Some(folder),
            Files::NotYet | Files::Without => None,
        }
    }

    pub(super) fn folder_path(&self) -> PathBuf {
        folder::path_of(Path::new(&self.recovery.run().project), self.recovery.id())
    }

    pub(super) fn interruption(&self, by: InterruptedBy) -> AttemptInterrupted {
        AttemptInterrupted {
            session: self.recovery.run().session.clone(),
            number: self.recovery.attempts(),
            by,
        }
    }

    /// Tells whether another process has taken the run over.
    pub(super) fn taken_over(&self) -> watch::Receiver<bool> {
        self.held.taken_over()
    }

    /// The exit code of the child, as the shell would see it.
    pub(super) fn childs_code(&self, timed_out: i32) -> i32 {
        let Some(end) = self.recovery.end() else {
            return 1;
        };
        match (end.limit.is_some(), end.exit_code, end.signal) {
            (true, ..) => timed_out,
            (_, Some(code), _) => code,
            (_, _, signal) => 128 + signal.unwrap_or(0),
        }
    }

    pub(super) fn why_asked(&self) -> String {
        self.view.reason.clone().unwrap_or_default()
    }

    pub(super) fn why_passed_on(&self) -> String {
        let failed = self.recovery.failure();
        if failed.is_some_and(|failed| failed.diagnosis.kind == Kind::None) {
            let code = self.childs_code(1);
            return format!("it ended with code {code} and no complaint; passed on as it is");
        }
        self.why_asked()
    }

    pub(super) fn how_it_went(&self) -> String {
        match self.view.error_count {
            0 => "done at the first try".to_owned(),
            1 => "done after one failure".to_owned(),
            n => format!("done after {n} failures"),
        }
    }

    /// Gives the run up and tells how it ended.
    pub(super) async fn close(self, store: &Store) -> Result<Finished, RunError> {
        let run = self.recovery.id().clone();
        let end = self.recovery.finished().cloned();
        if end.is_none() {
            self.held.release(store).await?;
        }
        end.map(|end| Finished {
            run: run.clone(),
            end,
        })
        .ok_or_else(|| RunError::NotResumable {
            run,
            why: "it has no end".into(),
        })
    }

    /// Whether the child failed but its exit code says otherwise.
    pub(super) fn failed_code(&self, timed_out: i32) -> i32 {
        match self.childs_code(timed_out) {
            0 => 1,
            code => code,
        }
    }

    /// Whether it ended in a way that leaves nothing to take up again.
    pub(super) fn is_over(&self) -> bool {
        let end = self.recovery.finished();
        end.is_some_and(|end| !end.outcome.is_resumable() && end.outcome != Outcome::Failed)
    }
}

/// The files of the run in its project.
enum Files {
    NotYet,
    At(RunFolder),
    Without,
}

fn options(run: &RunStarted) -> Options {
    serde_json::from_value(run.options.clone()).unwrap_or_default()
}
