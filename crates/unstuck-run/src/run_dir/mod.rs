//! The files of a run: in the state directory, out of the agents' reach, with copies in the project.
//!
//! The files in the state directory are authoritative. `.unstuck/runs/<run>/` in the project has copies for humans and
//! other programs: they are written if possible, and never read back. A file is replaced by a rename, so that readers
//! never see half of it.

mod attempt_log;
mod checkpoint_export;
mod copies_in_project;
mod repair_counts;
mod status_files;

pub use attempt_log::{AttemptFiles, AttemptStreamLog, MAX_LOG_BYTES};

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use unstuck_core::event::{
    AttemptEnd, EscalationOpened, Event, RoleInstance, RunFinished, SessionId,
};
use unstuck_core::money::normalize_costs;
use unstuck_core::redact::Redactor;
use unstuck_core::views::{EventWithState, RunProjection};
use unstuck_core::{EventRecord, RunId, Timestamp};
use unstuck_files::{DirHandle, EntryKind, FileError, read_named};

use self::copies_in_project::RunRecordCopies;

/// Smallest interval between updates of the views of a run with many roles, except for important events.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(150);

/// Size of the end of an event file that is read; no event is longer.
const TAIL_BYTES: u64 = 1 << 20;

/// The directory of unstuck in a project.
pub const PROJECT_DIR: &str = ".unstuck";

/// Largest file of a run, including whole outputs.
const MAX_FILE_BYTES: u64 = MAX_LOG_BYTES + (1 << 20);

/// The file of all events.
const EVENTS_FILE: &str = "events.jsonl";

/// Returns the directory in the project with the copies of a run's files.
pub fn project_copy_dir(project: &Path, run: &RunId) -> PathBuf {
    project.join(PROJECT_DIR).join("runs").join(run.as_str())
}

/// Returns the directory in the state directory with a run's files.
pub fn run_files_dir(state: &Path, run: &RunId) -> PathBuf {
    state.join(path_in_state(run))
}

fn path_in_state(run: &RunId) -> PathBuf {
    Path::new("runs").join(run.as_str())
}

/// Opens a file of a run in the state directory for appending.
pub fn open_log(state: &Path, run: &RunId, name: &str) -> io::Result<File> {
    Ok(open_run_files(state, run)?.append(Path::new(name))?)
}

/// Opens the directory in the state directory with a run's files.
pub(crate) fn open_run_files(state: &Path, run: &RunId) -> io::Result<DirHandle> {
    Ok(DirHandle::open_private(state)?.create_dirs(&path_in_state(run))?)
}

/// Copies the files of a run to another state directory.
pub fn copy_run_files(from: &Path, to: &Path, run: &RunId) -> io::Result<()> {
    let from = DirHandle::open(from)?.open_dir(&path_in_state(run))?;
    let to = DirHandle::open_private(to)?.create_dirs(&path_in_state(run))?;
    copy_all(&from, &to)
}

fn copy_all(from: &DirHandle, to: &DirHandle) -> io::Result<()> {
    for entry in from.entries(Path::new("."))? {
        let name = Path::new(&entry.name);
        match entry.kind {
            EntryKind::Directory => copy_all(&from.open_dir(name)?, &to.create_dirs(name)?)?,
            EntryKind::File => {
                io::copy(&mut from.open_file(name)?, &mut to.create(name)?)?;
            }
            EntryKind::Symlink | EntryKind::Other => {}
        }
    }
    Ok(())
}

/// Deletes the files of a run from the state directory.
pub fn delete_run_files(state: &Path, run: &RunId) -> io::Result<()> {
    match DirHandle::open(state) {
        Ok(state) => Ok(state.remove_tree(&path_in_state(run))?),
        Err(error) if error.is_missing() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a file of a run in the state directory.
pub fn read_run_file(path: &Path) -> io::Result<Vec<u8>> {
    Ok(read_named(path, MAX_FILE_BYTES)?)
}

/// Returns the directory of an attempt in that of its run; `instances` is the number of instances of its role.
pub fn attempt_dir(
    run: &Path,
    part: Option<&RoleInstance>,
    instances: u32,
    number: u32,
) -> PathBuf {
    let folder = part.map_or_else(
        || run.to_owned(),
        |part| iteration_dir(run, part, instances),
    );
    folder.join(format!("attempt-{number}"))
}

/// Returns the directory of a role's newest files in that of its run: `tester`, or `tester.1` and `tester.2` for
/// several instances.
pub fn role_dir(run: &Path, part: &RoleInstance, instances: u32) -> PathBuf {
    let roles = run.join("roles");
    // Role ids have no dots.
    let numbered = roles.join(format!("{}.{}", part.role, part.instance));
    if part.instance > 1 {
        return numbered;
    }
    let alone = roles.join(&part.role);
    let (usual, other) = if instances > 1 {
        (numbered, alone)
    } else {
        (alone, numbered)
    };
    // The number of instances may have changed since the directory was created.
    if !usual.exists() && other.exists() {
        other
    } else {
        usual
    }
}

/// Returns the directory of a role's iteration in that of its run.
pub fn iteration_dir(run: &Path, part: &RoleInstance, instances: u32) -> PathBuf {
    role_dir(run, part, instances).join(format!("iteration-{}", part.iteration))
}

/// The files of one run.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    own: DirHandle,
    copies: RefCell<RunRecordCopies>,
    events: File,
    /// Number of the newest event that they show.
    newest: u64,
    /// Timestamp of the last update of the run's views.
    last_refresh: Option<Timestamp>,
    /// True if there are events since then.
    is_behind: bool,
}

impl RunDir {
    /// Opens the directory; creates it if necessary.
    pub fn open(state: &Path, project: &Path, run: &RunId) -> io::Result<Self> {
        let path = run_files_dir(state, run);
        let own = DirHandle::open_private(state)?.create_dirs(&path_in_state(run))?;
        let events = own.append(Path::new(EVENTS_FILE))?;
        let newest = newest_event_seq(&own, &events)?;
        let copies = RunRecordCopies::open(project, run);
        Ok(Self {
            path,
            own,
            copies: RefCell::new(copies),
            events,
            newest,
            last_refresh: None,
            is_behind: false,
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the error of the copies in the project, the first time.
    pub fn take_copy_failure(&self) -> Option<FileError> {
        self.copies.borrow_mut().take_failure()
    }

    /// Opens the files of an attempt; creates the directory if necessary.
    pub fn open_attempt_files(
        &self,
        part: Option<&RoleInstance>,
        instances: u32,
        number: u32,
    ) -> io::Result<AttemptFiles> {
        let below = self.relative_path(&attempt_dir(&self.path, part, instances, number));
        let mut copies = self.copies.borrow_mut();
        Ok(AttemptFiles {
            own: self.own.create_dirs(&below)?,
            copy: copies.write(|copies| copies.create_dirs(&below)),
        })
    }

    /// Opens the directory in the project for an agent's proposals of an attempt, and returns its path; creates it if
    /// necessary.
    pub fn open_proposal_dir(
        &self,
        part: Option<&RoleInstance>,
        instances: u32,
        number: u32,
    ) -> Option<(DirHandle, PathBuf)> {
        let below = self.relative_path(&attempt_dir(&self.path, part, instances, number));
        self.copies.borrow().open_subdir(&below)
    }

    /// Returns a path relative to the directory of the run.
    fn relative_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.path).unwrap_or(path).to_owned()
    }

    /// Writes a text to the directory of a role's newest files and to that of its iteration.
    pub fn write_role_file(
        &self,
        part: &RoleInstance,
        instances: u32,
        name: &str,
        text: &str,
    ) -> io::Result<()> {
        let iteration = self.relative_path(&iteration_dir(&self.path, part, instances));
        let (kept, newest) = (
            iteration.join(name),
            self.relative_path(&role_dir(&self.path, part, instances))
                .join(name),
        );
        let keep = |folder: &DirHandle| {
            folder.create_dirs(&iteration)?;
            folder.replace(&kept, text.as_bytes())?;
            // Creating a file is the most expensive step; a hard link is cheap, if the file system supports it.
            let linked = folder.link(&kept, &newest);
            linked.or_else(|_| folder.replace(&newest, text.as_bytes()))
        };
        keep(&self.own)?;
        self.copies.borrow_mut().write(keep);
        Ok(())
    }

    /// Writes events and everything derived from them.
    pub fn record_events(
        &mut self,
        events: &[EventWithState],
        run: &RunProjection,
        redactor: &Redactor,
    ) -> io::Result<()> {
        // A killed process may already have shown some of the events that it wrote.
        let known = events.partition_point(|one| one.record.seq <= self.newest);
        let events = &events[known..];
        let mut lines = Vec::new();
        for one in events {
            serde_json::to_writer(&mut lines, one)?;
            lines.push(b'\n');
            self.newest = one.record.seq;
        }
        self.events.write_all(&lines)?;
        let whole = || self.own.read(Path::new(EVENTS_FILE), MAX_FILE_BYTES);
        if !lines.is_empty() {
            self.copies.get_mut().append(EVENTS_FILE, &lines, whole);
        }
        for one in events {
            self.record_event(&one.record, &RedactedRunView { run, redactor })?;
        }
        self.is_behind = true;
        let now = run.summary.updated;
        let soon = self
            .last_refresh
            .is_some_and(|shown| now.since(shown) < MIN_REFRESH_INTERVAL);
        let matters = |one: &EventWithState| {
            matches!(
                one.record.event,
                Event::RunStarted(_) | Event::RunFinished(_) | Event::EscalationOpened(_)
            )
        };
        // A run of many roles has frequent events, and each view covers all of them.
        if soon && run.pipeline.is_some() && !events.iter().any(matters) {
            return Ok(());
        }
        self.refresh_views(run, redactor)
    }

    /// Returns true if there are events that the run's views do not show.
    pub fn has_stale_views(&self) -> bool {
        self.is_behind
    }

    /// Writes the run's views if they are stale.
    pub fn refresh_views(&mut self, run: &RunProjection, redactor: &Redactor) -> io::Result<()> {
        if !std::mem::take(&mut self.is_behind) {
            return Ok(());
        }
        self.last_refresh = Some(run.summary.updated);
        if let Some(pipeline) = &run.pipeline {
            let is_done = pipeline
                .run_finished()
                .is_some_and(|end| end.outcome.is_success());
            if is_done {
                self.remove("checkpoint.json")?
            } else {
                self.write_checkpoint(run.summary.updated, &RedactedRunView { run, redactor })?
            }
        }
        let mut state = redacted(&status_files::RunStateFile::from_run(run), redactor)?;
        normalize_costs(&mut state);
        self.replace(Path::new("state.json"), &state)
    }

    fn record_event(&self, recorded: &EventRecord, clean: &RedactedRunView<'_>) -> io::Result<()> {
        match &recorded.event {
            Event::AttemptFailed(attempt) => self.append_usage(recorded.at, &attempt.end),
            Event::AttemptSucceeded(attempt) => self.append_usage(recorded.at, &attempt.end),
            Event::EscalationOpened(asked) => self.write_escalation(recorded, asked, clean),
            Event::EscalationResolved(resolved) => {
                self.append_repair_usage(recorded, clean.run)?;
                if resolved.is_by_human() {
                    self.mark_escalation_answered(resolved.session.as_ref())
                } else {
                    Ok(())
                }
            }
            Event::RepairProposed(_)
            | Event::RepairRejected(_)
            | Event::RepairApproved(_)
            | Event::RepairExecuted(_)
            | Event::RepairFailed(_) => self.append_repair_usage(recorded, clean.run),
            Event::SessionFinished(end) => self.write_episode(
                Some(&end.session),
                &end.to_run_finished(),
                recorded.at,
                clean,
            ),
            Event::RunFinished(end) if clean.run.pipeline.is_none() => {
                self.write_episode(None, end, recorded.at, clean)?;
                if end.outcome.is_success() {
                    self.remove("checkpoint.json")
                } else {
                    self.write_checkpoint(recorded.at, clean)
                }
            }
            _ => Ok(()),
        }
    }

    fn write_episode(
        &self,
        session: Option<&SessionId>,
        end: &RunFinished,
        at: Timestamp,
        clean: &RedactedRunView<'_>,
    ) -> io::Result<()> {
        let Some(view) = clean.run.session(session) else {
            return Ok(());
        };
        let episode = view.to_episode(clean.run.summary.id.as_str(), end, at);
        self.add_line("episodes.jsonl", &redacted(&episode, clean.redactor)?)
    }

    fn write_checkpoint(&self, at: Timestamp, clean: &RedactedRunView<'_>) -> io::Result<()> {
        let plan = clean.run.pipeline.as_ref().map(|pipeline| pipeline.plan());
        if plan.is_some_and(|plan| !plan.checkpoint) {
            return Ok(());
        }
        let saved =
            checkpoint_export::CheckpointFile::from_run(clean.run, at, &|role, instances| {
                self.latest_role_output(role, instances)
            });
        self.replace(
            Path::new("checkpoint.json"),
            &redacted(&saved, clean.redactor)?,
        )
    }

    /// Returns the newest output of a role: those of all instances, one after the other.
    fn latest_role_output(&self, role: &str, instances: u32) -> String {
        let of = |instance| RoleInstance {
            role: role.to_owned(),
            iteration: 1,
            instance,
        };
        let path = |instance| {
            let role = role_dir(&self.path, &of(instance), instances);
            self.relative_path(&role).join("output.md")
        };
        let outputs = (1..=instances.max(1))
            .filter_map(|one| self.own.read_text(&path(one), MAX_FILE_BYTES).ok());
        outputs.collect::<Vec<_>>().join("\n\n")
    }

    fn append_usage(&self, at: Timestamp, end: &AttemptEnd) -> io::Result<()> {
        if end.usage.cost_usd.is_none() && end.usage.tokens.is_none() {
            return Ok(());
        }
        let line = serde_json::json!({
            "timestamp": at, "session": end.session, "attempt": end.number, "model": end.model,
            "cost_usd": end.usage.cost_usd, "tokens": end.usage.tokens,
        });
        self.add_line("usage.jsonl", &line)
    }

    /// Appends the results of repairs so far to `usage.jsonl`.
    fn append_repair_usage(&self, recorded: &EventRecord, run: &RunProjection) -> io::Result<()> {
        let line = repair_counts::RepairCountsLine::from_event(recorded, &run.repairs);
        self.add_line("usage.jsonl", &line)
    }

    fn write_escalation(
        &self,
        recorded: &EventRecord,
        asked: &EscalationOpened,
        clean: &RedactedRunView<'_>,
    ) -> io::Result<()> {
        let escalation = status_files::EscalationFile::from_event(recorded, asked, clean.run);
        let escalation = redacted(&escalation, clean.redactor)?;
        let all = Path::new("escalations");
        self.own.create_dirs(all)?;
        let mut copies = self.copies.borrow_mut();
        copies.write(|copies| copies.create_dirs(all));
        drop(copies);
        self.replace(&all.join(format!("{}.json", asked.id)), &escalation)?;
        self.replace(Path::new("escalation.json"), &escalation)
    }

    /// Marks every escalation of a session as answered; without a session, those of the whole run.
    fn mark_escalation_answered(&self, session: Option<&SessionId>) -> io::Result<()> {
        let all = Path::new("escalations");
        let mut open = None;
        for entry in self.own.entries(all).unwrap_or_default() {
            if entry.kind != EntryKind::File {
                continue;
            }
            let path = all.join(&entry.name);
            let mut question: serde_json::Value =
                serde_json::from_slice(&self.own.read(&path, MAX_FILE_BYTES)?)?;
            let about = question["session"].as_str();
            if session.is_none_or(|session| about == Some(session.as_str())) {
                question["status"] = "answered".into();
                self.replace(&path, &question)?;
            } else if question["status"] == "pending" {
                open = Some(question);
            }
        }
        match open {
            Some(question) => self.replace(Path::new("escalation.json"), &question),
            None => self.remove("escalation.json"),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let name = Path::new(name);
        self.own.remove_file(name)?;
        let mut copies = self.copies.borrow_mut();
        copies.write(|copies| copies.remove_file(name));
        Ok(())
    }

    fn add_line(&self, name: &'static str, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.own.append(Path::new(name))?.write_all(&line)?;
        let whole = || self.own.read(Path::new(name), MAX_FILE_BYTES);
        self.copies.borrow_mut().append(name, &line, whole);
        Ok(())
    }

    fn replace(&self, name: &Path, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        self.own.replace(name, &text)?;
        let mut copies = self.copies.borrow_mut();
        copies.write(|copies| copies.replace(name, &text));
        Ok(())
    }
}

/// The view of a run and the redactor for its files.
struct RedactedRunView<'a> {
    run: &'a RunProjection,
    redactor: &'a Redactor,
}

/// Serializes a value without secrets.
fn redacted(value: &impl Serialize, redactor: &Redactor) -> io::Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    redactor.redact_value(&mut value);
    Ok(value)
}

/// Returns the number of the newest event in the event file, or 0; removes an incomplete line at its end.
fn newest_event_seq(own: &DirHandle, events: &File) -> io::Result<u64> {
    let length = events.metadata()?.len();
    if length == 0 {
        return Ok(0);
    }
    let (tail, _) = own.read_tail(Path::new(EVENTS_FILE), TAIL_BYTES)?;
    let end = tail.iter().rposition(|byte| *byte == b'\n');
    let whole = end.map_or(0, |end| end + 1);
    if whole < tail.len() {
        events.set_len(length - (tail.len() - whole) as u64)?;
    }
    let mut lines = tail[..whole].rsplit(|byte| *byte == b'\n');
    let number = |line: &[u8]| serde_json::from_slice::<SeqOnlyEvent>(line).ok();
    Ok(lines.find_map(number).map_or(0, |one| one.seq))
}

/// An event of which only the number is read.
#[derive(serde::Deserialize)]
struct SeqOnlyEvent {
    seq: u64,
}
