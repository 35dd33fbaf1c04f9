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

use crate::host::{ProcessId, Status, kill};

use super::strays::Strays;
use super::sweep;

/// How long what a child left behind may take to end by itself.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);
/// No grace is longer, whatever was asked for.
const LONGEST_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// A child and how far it is with ending.
pub(super) struct Child {
    pid: Pid,
    membership: Membership,
    exit_record: Option<PathBuf>,
    status: Option<Status>,
    kill_at: Option<Instant>,
    asked: bool,
    left: HashSet<ProcessId>,
    strays: Strays,
}

/// Whether the reaper is in the group of its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Membership {
    /// It is, so that an interrupt at the terminal reaches it too.
    Member,
    /// It leads a group of its own.
    Apart,
}

/// What there is to do about a child.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing until something happens.
    Wait,
    /// Nothing until then.
    WaitUntil(Instant),
    /// Its time is over.
    Kill,
}

impl Child {
    /// A child that was just started; the reaper joins its group if it is to be a member.
    pub(super) fn new(pid: Pid, membership: Membership, exit_record: Option<PathBuf>) -> Self {
        let child = Self {
            pid,
            membership,
            exit_record,
            status: None,
            kill_at: None,
            asked: false,
            left: HashSet::new(),
            strays: Strays::of(pid),
        };
        child.join();
        child
    }

    /// If the child has ended already there is nobody left to interrupt.
    fn join(&self) {
        if self.membership == Membership::Member {
            let _ = rustix::process::setpgid(None, Some(self.pid));
        }
    }

    /// A group of one's own is always to be had.
    fn leave(&self) {
        if self.membership == Membership::Member {
            let _ = rustix::process::setpgid(None, None);
        }
    }

    /// Passes a signal on to its group, which the reaper leaves meanwhile: it may be one that nobody survives.
    pub(super) fn signal(&self, signal: Signal) {
        self.leave();
        kill::group(self.pid, signal);
        self.join();
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
    pub(super) fn below(&self) -> Vec<ProcessId> {
        let mut below = sweep::below();
        below.extend(self.strays.alive());
        below
    }

    /// Whether it is gone for good: nothing of it was taken away from the reaper and lives on.
    pub(super) fn has_left_nobody(&self) -> bool {
        self.has_ended() && self.strays.alive().is_empty()
    }

    /// Whether it was told to end.
    pub(super) fn is_ending(&self) -> bool {
        self.kill_at.is_some()
    }

    /// Takes note of an interrupt: what comes of it is not an end by itself any more.
    pub(super) fn interrupted(&mut self) {
        self.exit_record = None;
    }

    /// Takes note of how it ended; what ended by itself is written down before anybody hears of it.
    pub(super) fn ended(&mut self, status: WaitStatus) {
        let status = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, Some(signal)) => Status::Signaled(signal),
            (None, None) => return,
        };
        if let Some(path) = self.exit_record.as_deref().filter(|_| !self.is_ending()) {
            // Without the record only a supervisor that crashed right now knows less.
            let _ = write_record(path, &status);
        }
        self.status = Some(status);
    }

    /// Asks it to end and kills it after the grace. A second call can only shorten the time.
    pub(super) fn end(&mut self, now: Instant, grace: Duration) {
        let until = now + grace.min(LONGEST_GRACE);
        self.kill_at = Some(self.kill_at.map_or(until, |at| at.min(until)));
        if self.status.is_none() && !self.asked && !grace.is_zero() {
            self.asked = true;
            self.strays.remember(sweep::below);
            // Neither does anything to a reaper that is a member.
            kill::group(self.pid, Signal::TERM);
            kill::group(self.pid, Signal::CONT);
        }
    }

    /// What to do, when there are still processes below.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if self.status.is_some() && self.left.is_empty() {
            let left = self.below();
            sweep::ask(&left);
            self.left.extend(left);
            let until = now + LEFTOVER_GRACE;
            self.kill_at = Some(self.kill_at.map_or(until, |at| at.min(until)));
        }
        match self.kill_at {
            None => Next::Wait,
            Some(at) if at <= now => Next::Kill,
            Some(at) => Next::WaitUntil(at),
        }
    }

    /// Takes note of processes that were killed.
    pub(super) fn killed(&mut self, processes: HashSet<ProcessId>) {
        let own = self.pid.as_raw_nonzero().get().unsigned_abs();
        self.left
            .extend(processes.into_iter().filter(|process| process.pid != own));
    }

    /// How it ended and how many processes it left behind.
    pub(super) fn outcome(self) -> (Status, u32) {
        self.leave();
        let killed = Status::Signaled(Signal::KILL.as_raw());
        let left = u32::try_from(self.left.len()).unwrap_or(u32::MAX);
        (self.status.unwrap_or(killed), left)
    }
}

/// Nobody ever sees half a record.
fn write_record(path: &Path, status: &Status) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    fs::write(&temporary, serde_json::to_vec(status)?)?;
    fs::rename(&temporary, path)
}
