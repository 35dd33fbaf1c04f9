//! The files of a run: in the state folder, out of the agents' reach, and copies of them in the project.
//!
//! Those in the state folder count. `.unstuck/runs/<run>/` in the project holds copies for people and other programs: they are
//! written as far as that is possible, and never read back. A file that replaces another is written beside it and renamed,
//! so that nobody ever reads half of one.

mod attempt_log;
mod checkpoint;
mod project_copies;
mod repair_usage;
mod status_files;

pub use attempt_log::{AttemptFiles, AttemptLog, MAX_LOG_BYTES};

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

use self::project_copies::ProjectCopies;

/// How far apart the views of a run of many roles are written, unless something of weight happens.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(150);

/// So much of the end of a file of events is looked at; no event is longer.
const TAIL_BYTES: u64 = 1 << 20;

/// The folder of unstuck in a project.
pub const PROJECT_DIR: &str = ".unstuck";

/// No file of a run is longer, whole outputs included.
const MAX_FILE_BYTES: u64 = MAX_LOG_BYTES + (1 << 20);

/// The file of all events.
const EVENTS_FILE: &str = "events.jsonl";

/// Where the copies of a run's files are, in its project.
pub fn project_copy_dir(project: &Path, run: &RunId) -> PathBuf {
    project.join(PROJECT_DIR).join("runs").join(run.as_str())
}

/// Where the files of a run are, in the state folder.
pub fn run_files_dir(state: &Path, run: &RunId) -> PathBuf {
    state.join(path_in_state(run))
}

fn path_in_state(run: &RunId) -> PathBuf {
    Path::new("runs").join(run.as_str())
}

/// Opens a file of a run in the state folder to append to it.
pub fn open_log(state: &Path, run: &RunId, name: &str) -> io::Result<File> {
    let folder = DirHandle::open_private(state)?.create_dirs(&path_in_state(run))?;
    Ok(folder.append(Path::new(name))?)
}

/// Copies the files of a run to another state folder.
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

/// Removes the files of a run from the state folder.
pub fn delete_run_files(state: &Path, run: &RunId) -> io::Result<()> {
    match DirHandle::open(state) {
        Ok(state) => Ok(state.remove_tree(&path_in_state(run))?),
        Err(error) if error.is_missing() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a file of a run in the state folder.
pub fn read_run_file(path: &Path) -> io::Result<Vec<u8>> {
    Ok(read_named(path, MAX_FILE_BYTES)?)
}

/// Where the files of an attempt are, in the folder of its run; `instances` play its role.
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

/// Where the newest files of a role are, in the folder of its run: `tester`, or `tester.1` and `tester.2` where several play it.
pub fn role_dir(run: &Path, part: &RoleInstance, instances: u32) -> PathBuf {
    let roles = run.join("roles");
    // No role's own id has a dot.
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
    // How many play it may have changed since it was made.
    if !usual.exists() && other.exists() {
        other
    } else {
        usual
    }
}

/// Where the files of a role in one iteration are, in the folder of its run.
pub fn iteration_dir(run: &Path, part: &RoleInstance, instances: u32) -> PathBuf {
    role_dir(run, part, instances).join(format!("iteration-{}", part.iteration))
}

/// The files of one run.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    own: DirHandle,
    copies: RefCell<ProjectCopies>,
    events: File,
    /// The number of the newest event that they show.
    newest: u64,
    /// When the views of the whole run were last written.
    last_refresh: Option<Timestamp>,
    /// Whether something has happened since that they do not show.
    is_behind: bool,
}

impl RunDir {
    /// Makes the folder, or opens it where it is there already.
    pub fn open(state: &Path, project: &Path, run: &RunId) -> io::Result<Self> {
        let path = run_files_dir(state, run);
        let own = DirHandle::open_private(state)?.create_dirs(&path_in_state(run))?;
        let events = own.append(Path::new(EVENTS_FILE))?;
        let newest = newest_event_seq(&own, &events)?;
        let copies = ProjectCopies::open(project, run);
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes why the copies in the project could not be written, the first time.
    pub fn take_copy_failure(&self) -> Option<FileError> {
        self.copies.borrow_mut().take_failure()
    }

    /// The files of an attempt, in a folder that is made if it is not there.
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

    /// The folder in the project that an agent puts its proposal of an attempt into, made if it is not there, and its path.
    pub fn open_proposal_dir(
        &self,
        part: Option<&RoleInstance>,
        instances: u32,
        number: u32,
    ) -> Option<(DirHandle, PathBuf)> {
        let below = self.relative_path(&attempt_dir(&self.path, part, instances, number));
        self.copies.borrow().open_subdir(&below)
    }

    /// The way from the folder of the run to a path in it.
    fn relative_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.path).unwrap_or(path).to_owned()
    }

    /// Puts a text into the folder of a role, where the newest iteration is, and into that of its iteration.
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
            // Making a file is what costs most here; a second name for it is cheap, where the file system has it.
            let linked = folder.link(&kept, &newest);
            linked.or_else(|_| folder.replace(&newest, text.as_bytes()))
        };
        keep(&self.own)?;
        self.copies.borrow_mut().write(keep);
        Ok(())
    }

    /// Writes down what has happened, and what follows from it.
    pub fn record_events(
        &mut self,
        events: &[EventWithState],
        run: &RunProjection,
        redactor: &Redactor,
    ) -> io::Result<()> {
        // Whoever was killed has shown some of what it wrote.
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
        // In a run of many roles something happens all the time, and each view tells of all of them.
        if soon && run.pipeline.is_some() && !events.iter().any(matters) {
            return Ok(());
        }
        self.refresh_views(run, redactor)
    }

    /// Whether something has happened that the views of the whole run do not show.
    pub fn has_stale_views(&self) -> bool {
        self.is_behind
    }

    /// Writes the views of the whole run, if something has happened that they do not show.
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
                if resolved.is_by_person() {
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
        let saved = checkpoint::CheckpointFile::from_run(clean.run, at, &|role, instances| {
            self.latest_role_output(role, instances)
        });
        self.replace(
            Path::new("checkpoint.json"),
            &redacted(&saved, clean.redactor)?,
        )
    }

    /// The newest output of a role: of all who play it, one after the other.
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

    /// Adds to `usage.jsonl` what has come of repairs so far.
    fn append_repair_usage(&self, recorded: &EventRecord, run: &RunProjection) -> io::Result<()> {
        let line = repair_usage::RepairUsageLine::from_event(recorded, &run.repairs);
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

    /// Marks every question about a session as answered; about the run as a whole where none is named.
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

/// What files are made from, and what takes the secrets out of it.
struct RedactedRunView<'a> {
    run: &'a RunProjection,
    redactor: &'a Redactor,
}

/// A value without secrets.
fn redacted(value: &impl Serialize, redactor: &Redactor) -> io::Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    redactor.redact_value(&mut value);
    Ok(value)
}

/// The number of the newest event in the file of events; 0 where there is none. Half a line at its end goes.
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

/// An event, of which only the number matters.
#[derive(serde::Deserialize)]
struct SeqOnlyEvent {
    seq: u64,
}
