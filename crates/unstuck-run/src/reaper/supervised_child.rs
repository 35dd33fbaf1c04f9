//! The child that the reaper currently supervises.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus};

use crate::os_processes::{ChildExitStatus, ProcessId, send_signal};

use super::kill_tree;
use super::stray_processes::StrayProcesses;

/// Grace period for leftover processes of a child.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);
/// Upper limit of any grace period.
const MAX_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// A child and the state of its termination.
pub(super) struct SupervisedChild {
    pid: Pid,
    membership: ReaperGroupMembership,
    exit_record: Option<PathBuf>,
    status: Option<ChildExitStatus>,
    kill_at: Option<Instant>,
    is_end_requested: bool,
    leftovers: HashSet<ProcessId>,
    strays: StrayProcesses,
}

/// The membership of the reaper in a process group: the child's or its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaperGroupMembership {
    /// The child's group, so that an interrupt at the terminal reaches the reaper too.
    Member,
    /// A group of its own.
    OwnGroup,
}

/// The next action for a child.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChildAction {
    /// Wait for an event.
    Wait,
    /// Wait for an event or until this time.
    WaitUntil(Instant),
    /// Kill it: its time is over.
    Kill,
}

impl SupervisedChild {
    /// Returns a child that was just started; the reaper joins its group if it is to be a member.
    pub(super) fn new(
        pid: Pid,
        membership: ReaperGroupMembership,
        exit_record: Option<PathBuf>,
    ) -> Self {
        let child = Self {
            pid,
            membership,
            exit_record,
            status: None,
            kill_at: None,
            is_end_requested: false,
            leftovers: HashSet::new(),
            strays: StrayProcesses::new(pid),
        };
        child.join_group();
        child
    }

    /// Joins the child's group. It fails if the child has ended already, which needs no interrupt.
    fn join_group(&self) {
        if self.membership == ReaperGroupMembership::Member {
            let _ = rustix::process::setpgid(None, Some(self.pid));
        }
    }

    /// Moves the reaper to a group of its own, which is always possible.
    fn leave_group(&self) {
        if self.membership == ReaperGroupMembership::Member {
            let _ = rustix::process::setpgid(None, None);
        }
    }

    /// Sends a signal to its group, which the reaper leaves meanwhile: the signal may be deadly.
    pub(super) fn signal(&self, signal: Signal) {
        self.leave_group();
        send_signal::signal_group(self.pid, signal);
        self.join_group();
    }

    /// Returns its process id.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns true if the child itself has ended, even if it left processes behind.
    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    /// Returns all its living processes, including itself.
    pub(super) fn live_processes(&self) -> Vec<ProcessId> {
        let mut below = kill_tree::live_descendants();
        below.extend(self.strays.alive());
        below
    }

    /// Returns true if no stray process of it is alive.
    pub(super) fn has_no_survivors(&self) -> bool {
        self.has_ended() && self.strays.alive().is_empty()
    }

    /// Returns true if it was asked to end.
    pub(super) fn is_ending(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Records an interrupt: an end after it is not an end by itself.
    pub(super) fn note_interrupt(&mut self) {
        self.exit_record = None;
    }

    /// Records its exit; an end by itself is written to disk before it is reported.
    pub(super) fn note_exit(&mut self, status: WaitStatus) {
        let status = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ChildExitStatus::Exited(code),
            (None, Some(signal)) => ChildExitStatus::Signaled(signal),
            (None, None) => return,
        };
        if let Some(path) = self.exit_record.as_deref().filter(|_| !self.is_ending()) {
            // Without the record, only a supervisor that crashes right now knows less.
            let _ = write_record(path, &status);
        }
        self.status = Some(status);
    }

    /// Asks it to end and kills it after the grace period. A second call can only shorten the time.
    pub(super) fn request_end(&mut self, now: Instant, grace: Duration) {
        let until = now + grace.min(MAX_GRACE);
        self.kill_at = Some(self.kill_at.map_or(until, |at| at.min(until)));
        if self.status.is_none() && !self.is_end_requested && !grace.is_zero() {
            self.is_end_requested = true;
            self.strays.record_descendants(kill_tree::live_descendants);
            // Neither signal affects a reaper that is a member.
            send_signal::signal_group(self.pid, Signal::TERM);
            send_signal::signal_group(self.pid, Signal::CONT);
        }
    }

    /// Returns the next action while descendants are left.
    pub(super) fn next_action(&mut self, now: Instant) -> ChildAction {
        if self.status.is_some() && self.leftovers.is_empty() {
            let left = self.live_processes();
            kill_tree::request_end(&left);
            self.leftovers.extend(left);
            let until = now + LEFTOVER_GRACE;
            self.kill_at = Some(self.kill_at.map_or(until, |at| at.min(until)));
        }
        match self.kill_at {
            None => ChildAction::Wait,
            Some(at) if at <= now => ChildAction::Kill,
            Some(at) => ChildAction::WaitUntil(at),
        }
    }

    /// Records processes that were killed.
    pub(super) fn note_killed(&mut self, processes: HashSet<ProcessId>) {
        let own = self.pid.as_raw_nonzero().get().unsigned_abs();
        self.leftovers
            .extend(processes.into_iter().filter(|process| process.pid != own));
    }

    /// Returns its status and the number of leftover processes.
    pub(super) fn into_outcome(self) -> (ChildExitStatus, u32) {
        self.leave_group();
        let killed = ChildExitStatus::Signaled(Signal::KILL.as_raw());
        let left = u32::try_from(self.leftovers.len()).unwrap_or(u32::MAX);
        (self.status.unwrap_or(killed), left)
    }
}

/// Writes the exit record atomically.
fn write_record(path: &Path, status: &ChildExitStatus) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    fs::write(&temporary, serde_json::to_vec(status)?)?;
    fs::rename(&temporary, path)
}
