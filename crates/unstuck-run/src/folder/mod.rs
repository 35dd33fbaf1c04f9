//! The files of a run in its project: `.unstuck/runs/<run>/`.
//!
//! They are views for people and other programs, and never read back as truth. A file that replaces another is
//! written beside it and renamed, so that nobody ever reads half of one.

mod checkpoint;
mod log;
mod state;

pub use log::{LOG_LIMIT, Log};

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_core::event::{Event, RecoveryEscalated};
use unstuck_core::redact::Redactor;
use unstuck_core::{Recorded, Recovery, RunId, RunView, Timestamp};

/// The folder of unstuck in a project.
pub const PROJECT_FOLDER: &str = ".unstuck";

/// Where the files of a run are.
pub fn path_of(project: &Path, run: &RunId) -> PathBuf {
    project.join(PROJECT_FOLDER).join("runs").join(run.as_str())
}

/// The files of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    events: File,
}

impl RunFolder {
    /// Makes the folder, or opens it where it is there already.
    pub fn open(project: &Path, run: &RunId) -> io::Result<Self> {
        let path = path_of(project, run);
        fs::create_dir_all(&path)?;
        ignore_itself(&project.join(PROJECT_FOLDER))?;
        let events = append_to(&path.join("events.jsonl"))?;
        Ok(Self { path, events })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of an attempt, made if it is not there.
    pub fn attempt(&self, number: u32) -> io::Result<PathBuf> {
        let path = self.path.join(format!("attempt-{number}"));
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Writes down what has happened, and what follows from it.
    pub fn show(
        &mut self,
        events: &[Recorded],
        view: &RunView,
        recovery: &Recovery,
        redactor: &Redactor,
    ) -> io::Result<()> {
        let mut lines = Vec::new();
        for recorded in events {
            serde_json::to_writer(&mut lines, recorded)?;
            lines.push(b'\n');
        }
        self.events.write_all(&lines)?;
        for recorded in events {
            self.follow(recorded, &Clean { recovery, redactor })?;
        }
        let state = state::State::of(view, recovery);
        self.replace("state.json", &redacted(&state, redactor)?)
    }

    fn follow(&self, recorded: &Recorded, clean: &Clean<'_>) -> io::Result<()> {
        let (recovery, redactor) = (clean.recovery, clean.redactor);
        match &recorded.event {
            Event::AttemptFailed(attempt) => self.used(recorded.at, &attempt.end),
            Event::AttemptSucceeded(attempt) => self.used(recorded.at, &attempt.end),
            Event::RecoveryEscalated(asked) => self.asked(recorded, asked, clean),
            Event::RecoveryResolved(_) => self.answered(),
            Event::RunFinished(end) => {
                let episode = redacted(&recovery.episode(end, recorded.at), redactor)?;
                self.add_line("episodes.jsonl", &episode)?;
                if end.outcome.is_success() {
                    return self.remove("checkpoint.json");
                }
                let saved = checkpoint::Checkpoint::of(recovery, recorded.at);
                self.replace("checkpoint.json", &redacted(&saved, redactor)?)
            }
            _ => Ok(()),
        }
    }

    fn used(&self, at: Timestamp, end: &unstuck_core::event::AttemptEnd) -> io::Result<()> {
        if end.used.cost_usd.is_none() && end.used.tokens.is_none() {
            return Ok(());
        }
        let line = serde_json::json!({
            "timestamp": at, "session": end.session, "attempt": end.number, "model": end.model,
            "cost_usd": end.used.cost_usd, "tokens": end.used.tokens,
        });
        self.add_line("usage.jsonl", &line)
    }

    fn asked(
        &self,
        recorded: &Recorded,
        asked: &RecoveryEscalated,
        clean: &Clean<'_>,
    ) -> io::Result<()> {
        let escalation = state::Escalation::of(recorded, asked, clean.recovery);
        let escalation = redacted(&escalation, clean.redactor)?;
        let all = self.path.join("escalations");
        fs::create_dir_all(&all)?;
        replace(&all.join(format!("{}.json", asked.id)), &escalation)?;
        self.replace("escalation.json", &escalation)
    }

    /// Marks every question as answered.
    fn answered(&self) -> io::Result<()> {
        let all = self.path.join("escalations");
        for entry in fs::read_dir(all).into_iter().flatten() {
            let path = entry?.path();
            let mut question: serde_json::Value = serde_json::from_slice(&fs::read(&path)?)?;
            question["status"] = "answered".into();
            replace(&path, &question)?;
        }
        self.remove("escalation.json")
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn add_line(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        append_to(&self.path.join(name))?.write_all(&line)
    }

    fn replace(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        replace(&self.path.join(name), value)
    }
}

/// What files are made from, and what takes the secrets out of it.
struct Clean<'a> {
    recovery: &'a Recovery,
    redactor: &'a Redactor,
}

/// A value without secrets.
fn redacted(value: &impl Serialize, redactor: &Redactor) -> io::Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    redactor.redact_value(&mut value);
    Ok(value)
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn replace(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(beside, path)
}

/// Keeps the folder out of version control without touching a file of the project.
fn ignore_itself(folder: &Path) -> io::Result<()> {
    let path = folder.join(".gitignore");
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
