//! The child that the reaper watches over at present.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus};

use crate::procs::{ChildStatus, ProcessId, send_signal};

use super::kill_tree;
use super::stray_processes::StrayProcesses;

/// How long what a child left behind may take to end by itself.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);
/// No grace is longer, whatever was asked for.
const MAX_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// A child and how far it is with ending.
pub(super) struct SupervisedChild {
    pid: Pid,
    membership: GroupMembership,
    exit_record: Option<PathBuf>,
    status: Option<ChildStatus>,
    kill_at: Option<Instant>,
    is_end_requested: bool,
    leftovers: HashSet<ProcessId>,
    strays: StrayProcesses,
}

/// Whether the reaper is in the group of its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupMembership {
    /// It is, so that an interrupt at the terminal reaches it too.
    Member,
    /// It leads a group of its own.
    OwnGroup,
}

/// What there is to do about a child.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChildAction {
    /// Nothing until something happens.
    Wait,
    /// Nothing until then.
    WaitUntil(Instant),
    /// Its time is over.
    Kill,
}

impl SupervisedChild {
    /// A child that was just started; the reaper joins its group if it is to be a member.
    pub(super) fn new(pid: Pid, membership: GroupMembership, exit_record: Option<PathBuf>) -> Self {
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

    /// If the child has ended already there is nobody left to interrupt.
    fn join_group(&self) {
        if self.membership == GroupMembership::Member {
            let _ = rustix::process::setpgid(None, Some(self.pid));
        }
    }

    /// A group of one's own is always to be had.
    fn leave_group(&self) {
        if self.membership == GroupMembership::Member {
            let _ = rustix::process::setpgid(None, None);
        }
    }

    /// Passes a signal on to its group, which the reaper leaves meanwhile: it may be one that nobody survives.
    pub(super) fn signal(&self, signal: Signal) {
        self.leave_group();
        send_signal::signal_group(self.pid, signal);
        self.join_group();
    }

    /// Its number.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the child itself is gone, whatever it left behind.
    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    /// Every living process of it, itself included.
    pub(super) fn live_processes(&self) -> Vec<ProcessId> {
        let mut below = kill_tree::live_descendants();
        below.extend(self.strays.alive());
        below
    }

    /// Whether it is gone for good: nothing of it was taken away from the reaper and lives on.
    pub(super) fn has_no_survivors(&self) -> bool {
        self.has_ended() && self.strays.alive().is_empty()
    }

    /// Whether it was told to end.
    pub(super) fn is_ending(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Takes note of an interrupt: what comes of it is not an end by itself any more.
    pub(super) fn note_interrupt(&mut self) {
        self.exit_record = None;
    }

    /// Takes note of how it ended; what ended by itself is written down before anybody hears of it.
    pub(super) fn note_exit(&mut self, status: WaitStatus) {
        let status = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ChildStatus::Exited(code),
            (None, Some(signal)) => ChildStatus::Signaled(signal),
            (None, None) => return,
        };
        if let Some(path) = self.exit_record.as_deref().filter(|_| !self.is_ending()) {
            // Without the record only a supervisor that crashed right now knows less.
            let _ = write_record(path, &status);
        }
        self.status = Some(status);
    }

    /// Asks it to end and kills it after the grace. A second call can only shorten the time.
    pub(super) fn request_end(&mut self, now: Instant, grace: Duration) {
        let until = now + grace.min(MAX_GRACE);
        self.kill_at = Some(self.kill_at.map_or(until, |at| at.min(until)));
        if self.status.is_none() && !self.is_end_requested && !grace.is_zero() {
            self.is_end_requested = true;
            self.strays.record_descendants(kill_tree::live_descendants);
            // Neither does anything to a reaper that is a member.
            send_signal::signal_group(self.pid, Signal::TERM);
            send_signal::signal_group(self.pid, Signal::CONT);
        }
    }

    /// What to do, when there are still processes below.
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

    /// Takes note of processes that were killed.
    pub(super) fn note_killed(&mut self, processes: HashSet<ProcessId>) {
        let own = self.pid.as_raw_nonzero().get().unsigned_abs();
        self.leftovers
            .extend(processes.into_iter().filter(|process| process.pid != own));
    }

    /// How it ended and how many processes it left behind.
    pub(super) fn into_outcome(self) -> (ChildStatus, u32) {
        self.leave_group();
        let killed = ChildStatus::Signaled(Signal::KILL.as_raw());
        let left = u32::try_from(self.leftovers.len()).unwrap_or(u32::MAX);
        (self.status.unwrap_or(killed), left)
    }
}

/// Nobody ever sees half a record.
fn write_record(path: &Path, status: &ChildStatus) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    fs::write(&temporary, serde_json::to_vec(status)?)?;
    fs::rename(&temporary, path)
}
