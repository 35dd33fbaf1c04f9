//! The files of a run in its project: `.unstuck/runs/<run>/`.
//!
//! They are views for people and other programs, and never read back as truth. A file that replaces another is
//! written beside it and renamed, so that nobody ever reads half of one.

mod checkpoint;
mod log;
mod repairs;
mod state;

pub use log::{LOG_LIMIT, Log};

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use unstuck_core::episode::{EventWithState, RunFold};
use unstuck_core::event::{AttemptEnd, Event, Part, RecoveryEscalated, RunFinished, SessionId};
use unstuck_core::money::tidy_costs;
use unstuck_core::redact::Redactor;
use unstuck_core::{Recorded, RunId, Timestamp};

/// How far apart the views of a run of many roles are written, unless something of weight happens.
const APART: Duration = Duration::from_millis(150);

/// So much of the end of a file of events is looked at; no event is longer.
const TAIL: u64 = 1 << 20;

/// The folder of unstuck in a project.
pub const PROJECT_FOLDER: &str = ".unstuck";

/// Where the files of a run are.
pub fn path_of(project: &Path, run: &RunId) -> PathBuf {
    project.join(PROJECT_FOLDER).join("runs").join(run.as_str())
}

/// Where the files of an attempt are, in the folder of its run; `instances` play its role.
pub fn attempt_of(run: &Path, part: Option<&Part>, instances: u32, number: u32) -> PathBuf {
    let folder = part.map_or_else(|| run.to_owned(), |part| iteration_of(run, part, instances));
    folder.join(format!("attempt-{number}"))
}

/// Where the newest files of a role are, in the folder of its run: `tester`, or `tester.1` and `tester.2` where several play it.
pub fn role_of(run: &Path, part: &Part, instances: u32) -> PathBuf {
    let roles = run.join("roles");
    // No role's own id has a dot.
    let numbered = roles.join(format!("{}.{}", part.role, part.instance));
    if part.instance > 1 {
        return numbered;
    }
    let alone = roles.join(&part.role);
    let (usual, other) = match instances > 1 {
        true => (numbered, alone),
        false => (alone, numbered),
    };
    // How many play it may have changed since it was made.
    match !usual.exists() && other.exists() {
        true => other,
        false => usual,
    }
}

/// Where the files of a role in one iteration are, in the folder of its run.
pub fn iteration_of(run: &Path, part: &Part, instances: u32) -> PathBuf {
    role_of(run, part, instances).join(format!("iteration-{}", part.iteration))
}

/// The files of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    events: File,
    /// The number of the newest event that they show.
    newest: u64,
    /// When the views of the whole run were last written.
    shown: Option<Timestamp>,
    /// Whether something has happened since that they do not show.
    is_behind: bool,
}

impl RunFolder {
    /// Makes the folder, or opens it where it is there already.
    pub fn open(project: &Path, run: &RunId) -> io::Result<Self> {
        let path = path_of(project, run);
        fs::create_dir_all(&path)?;
        ignore_itself(&project.join(PROJECT_FOLDER))?;
        let newest = newest_in(&path.join("events.jsonl"))?;
        let events = append_to(&path.join("events.jsonl"))?;
        Ok(Self {
            path,
            events,
            newest,
            shown: None,
            is_behind: false,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of an attempt, made if it is not there.
    pub fn attempt(&self, part: Option<&Part>, instances: u32, number: u32) -> io::Result<PathBuf> {
        let path = attempt_of(&self.path, part, instances, number);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Puts a text into the folder of a role, where the newest iteration is, and into that of its iteration.
    pub fn keep(&self, part: &Part, instances: u32, name: &str, text: &str) -> io::Result<()> {
        let iteration = iteration_of(&self.path, part, instances);
        fs::create_dir_all(&iteration)?;
        let kept = iteration.join(name);
        write_over(&kept, text.as_bytes())?;
        let newest = role_of(&self.path, part, instances).join(name);
        // Making a file is what costs most here; a second name for it is cheap, where the file system has it.
        link_over(&kept, &newest).or_else(|_| write_over(&newest, text.as_bytes()))
    }

    /// Writes down what has happened, and what follows from it.
    pub fn show(
        &mut self,
        events: &[EventWithState],
        run: &RunFold,
        redactor: &Redactor,
    ) -> io::Result<()> {
        // Whoever was killed has shown some of what it wrote.
        let known = events.partition_point(|one| one.recorded.seq <= self.newest);
        let events = &events[known..];
        let mut lines = Vec::new();
        for one in events {
            serde_json::to_writer(&mut lines, one)?;
            lines.push(b'\n');
            self.newest = one.recorded.seq;
        }
        self.events.write_all(&lines)?;
        for one in events {
            self.follow(&one.recorded, &Clean { run, redactor })?;
        }
        self.is_behind = true;
        let now = run.view.updated;
        let soon = self.shown.is_some_and(|shown| now.since(shown) < APART);
        let matters = |one: &EventWithState| {
            matches!(
                one.recorded.event,
                Event::RunStarted(_) | Event::RunFinished(_) | Event::RecoveryEscalated(_)
            )
        };
        // In a run of many roles something happens all the time, and each view tells of all of them.
        if soon && run.pipeline.is_some() && !events.iter().any(matters) {
            return Ok(());
        }
        self.catch_up(run, redactor)
    }

    /// Whether something has happened that the views of the whole run do not show.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Writes the views of the whole run, if something has happened that they do not show.
    pub fn catch_up(&mut self, run: &RunFold, redactor: &Redactor) -> io::Result<()> {
        if !std::mem::take(&mut self.is_behind) {
            return Ok(());
        }
        self.shown = Some(run.view.updated);
        if let Some(pipeline) = &run.pipeline {
            let is_done = pipeline
                .finished()
                .is_some_and(|end| end.outcome.is_success());
            match is_done {
                true => self.remove("checkpoint.json")?,
                false => self.checkpoint(run.view.updated, &Clean { run, redactor })?,
            }
        }
        let mut state = redacted(&state::State::of(run), redactor)?;
        tidy_costs(&mut state);
        self.replace("state.json", &state)
    }

    fn follow(&self, recorded: &Recorded, clean: &Clean<'_>) -> io::Result<()> {
        match &recorded.event {
            Event::AttemptFailed(attempt) => self.used(recorded.at, &attempt.end),
            Event::AttemptSucceeded(attempt) => self.used(recorded.at, &attempt.end),
            Event::RecoveryEscalated(asked) => self.asked(recorded, asked, clean),
            Event::RecoveryResolved(resolved) => {
                self.counted(recorded, clean.run)?;
                match resolved.is_by_person() {
                    true => self.answered(resolved.session.as_ref()),
                    false => Ok(()),
                }
            }
            Event::RecoveryProposed(_)
            | Event::RecoveryRejected(_)
            | Event::RecoveryApproved(_)
            | Event::RecoveryExecuted(_)
            | Event::RecoveryFailed(_) => self.counted(recorded, clean.run),
            Event::SessionFinished(end) => {
                self.episode(Some(&end.session), &end.end(), recorded.at, clean)
            }
            Event::RunFinished(end) if clean.run.pipeline.is_none() => {
                self.episode(None, end, recorded.at, clean)?;
                match end.outcome.is_success() {
                    true => self.remove("checkpoint.json"),
                    false => self.checkpoint(recorded.at, clean),
                }
            }
            _ => Ok(()),
        }
    }

    fn episode(
        &self,
        session: Option<&SessionId>,
        end: &RunFinished,
        at: Timestamp,
        clean: &Clean<'_>,
    ) -> io::Result<()> {
        let Some(view) = clean.run.session(session) else {
            return Ok(());
        };
        let episode = view.episode(clean.run.view.id.as_str(), end, at);
        self.add_line("episodes.jsonl", &redacted(&episode, clean.redactor)?)
    }

    fn checkpoint(&self, at: Timestamp, clean: &Clean<'_>) -> io::Result<()> {
        let plan = clean.run.pipeline.as_ref().map(|pipeline| pipeline.plan());
        if plan.is_some_and(|plan| !plan.checkpoint) {
            return Ok(());
        }
        let saved = checkpoint::Checkpoint::of(clean.run, at, &|role, instances| {
            self.output_of(role, instances)
        });
        self.replace("checkpoint.json", &redacted(&saved, clean.redactor)?)
    }

    /// The newest output of a role: of all who play it, one after the other.
    fn output_of(&self, role: &str, instances: u32) -> String {
        let of = |instance| Part {
            role: role.to_owned(),
            iteration: 1,
            instance,
        };
        let path = |instance| role_of(&self.path, &of(instance), instances).join("output.md");
        let outputs = (1..=instances.max(1)).filter_map(|one| fs::read_to_string(path(one)).ok());
        outputs.collect::<Vec<_>>().join("\n\n")
    }

    fn used(&self, at: Timestamp, end: &AttemptEnd) -> io::Result<()> {
        if end.used.cost_usd.is_none() && end.used.tokens.is_none() {
            return Ok(());
        }
        let line = serde_json::json!({
            "timestamp": at, "session": end.session, "attempt": end.number, "model": end.model,
            "cost_usd": end.used.cost_usd, "tokens": end.used.tokens,
        });
        self.add_line("usage.jsonl", &line)
    }

    /// Adds to `usage.jsonl` what has come of repairs so far.
    fn counted(&self, recorded: &Recorded, run: &RunFold) -> io::Result<()> {
        let line = repairs::Line::of(recorded, &run.repairs);
        self.add_line("usage.jsonl", &line)
    }

    fn asked(
        &self,
        recorded: &Recorded,
        asked: &RecoveryEscalated,
        clean: &Clean<'_>,
    ) -> io::Result<()> {
        let escalation = state::Escalation::of(recorded, asked, clean.run);
        let escalation = redacted(&escalation, clean.redactor)?;
        let all = self.path.join("escalations");
        fs::create_dir_all(&all)?;
        replace(&all.join(format!("{}.json", asked.id)), &escalation)?;
        self.replace("escalation.json", &escalation)
    }

    /// Marks every question about a session as answered; about the run as a whole where none is named.
    fn answered(&self, session: Option<&SessionId>) -> io::Result<()> {
        let all = self.path.join("escalations");
        let mut open = None;
        for entry in fs::read_dir(all).into_iter().flatten() {
            let path = entry?.path();
            let mut question: serde_json::Value = serde_json::from_slice(&fs::read(&path)?)?;
            let about = question["session"].as_str();
            if session.is_none_or(|session| about == Some(session.as_str())) {
                question["status"] = "answered".into();
                replace(&path, &question)?;
            } else if question["status"] == "pending" {
                open = Some(question);
            }
        }
        match open {
            Some(question) => self.replace("escalation.json", &question),
            None => self.remove("escalation.json"),
        }
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
    run: &'a RunFold,
    redactor: &'a Redactor,
}

/// A value without secrets.
fn redacted(value: &impl Serialize, redactor: &Redactor) -> io::Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    redactor.redact_value(&mut value);
    Ok(value)
}

/// The number of the newest event in a file of events; 0 where there is none. Half a line at its end goes.
fn newest_in(path: &Path) -> io::Result<u64> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL);
    file.seek(io::SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let end = tail.iter().rposition(|byte| *byte == b'\n');
    let whole = end.map_or(0, |end| end + 1);
    if whole < tail.len() {
        file.set_len(start + whole as u64)?;
    }
    let mut lines = tail[..whole].rsplit(|byte| *byte == b'\n');
    let number = |line: &[u8]| serde_json::from_slice::<Numbered>(line).ok();
    Ok(lines.find_map(number).map_or(0, |one| one.seq))
}

/// An event, of which only the number matters.
#[derive(serde::Deserialize)]
struct Numbered {
    seq: u64,
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn replace(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    write_over(path, &text)
}

fn write_over(path: &Path, text: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(beside, path)
}

/// Gives a file that was just made a second name, instead of what had that name.
fn link_over(file: &Path, name: &Path) -> io::Result<()> {
    let beside = name.with_extension("new");
    // It is there only if somebody was killed before they renamed it.
    let _ = fs::remove_file(&beside);
    fs::hard_link(file, &beside)?;
    fs::rename(beside, name)
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
