//! The event loop of the reaper: it sleeps until a child ends, a request arrives, or a grace period is over.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};

use crate::os_processes::send_signal;

use super::cgroup::Cgroup;
use super::reaper_signals::ReaperSignals;
use super::supervised_child::{ChildAction, ReaperGroupMembership, SupervisedChild};
use super::supervisor_socket::SupervisorSocket;
use super::wire::{ChildStartRequest, OsText, ProcessGroupSetup, ReaperReport, ReaperRequest};
use super::{kill_tree, spawn_child};

/// Grace period after the supervisor is gone.
const ORPHAN_GRACE: Duration = Duration::from_millis(300);
/// Time after which a child is moved to a cgroup.
const CGROUP_DELAY: Duration = Duration::from_secs(1);
/// Longest time for which a kill is repeated: the process hangs in the kernel or belongs to another user.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the kill is repeated.
const KILL_INTERVAL: Duration = Duration::from_millis(20);

/// The state of the event loop.
pub(super) struct ReaperLoop {
    socket: SupervisorSocket,
    signals: ReaperSignals,
    child: Option<SupervisedChild>,
    is_orphan: bool,
    cgroup: Option<Cgroup>,
    /// The time at which the child is moved to a cgroup.
    cgroup_due: Option<Instant>,
}

impl ReaperLoop {
    /// Returns the event loop without a child.
    pub(super) fn new(socket: SupervisorSocket, signals: ReaperSignals) -> Self {
        Self {
            socket,
            signals,
            child: None,
            is_orphan: false,
            cgroup: None,
            cgroup_due: None,
        }
    }

    /// Runs until the supervisor is gone and no process is left.
    pub(super) fn run(&mut self) {
        let mut until = None;
        while self.child.is_some() || !self.is_orphan {
            let has_request = self.wait_for_event(until);
            // Children first: one that ended by itself did so before the supervisor went away.
            let any_below = self.reap_children();
            if has_request && !self.is_orphan {
                self.handle_requests();
            }
            until = self.advance_child(any_below);
            until = until.into_iter().chain(self.move_to_cgroup_if_due()).min();
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
    }

    /// Moves a child that has run for a while to a cgroup; returns the time at which that is due.
    fn move_to_cgroup_if_due(&mut self) -> Option<Instant> {
        let due = self.cgroup_due.filter(|_| self.child.is_some())?;
        if now() < due {
            return Some(due);
        }
        self.cgroup_due = None;
        if self.cgroup.is_none() {
            self.cgroup = Cgroup::create();
        }
        let path = OsText::from(self.cgroup.as_ref()?.path());
        // Reported first: if this process is killed meanwhile, the supervisor ends the moved processes.
        self.send_report(&ReaperReport::MovedToCgroup { cgroup: path });
        let cgroup = self.cgroup.as_ref()?;
        cgroup.add_processes(&kill_tree::live_descendants());
        // Again for processes that were started meanwhile.
        cgroup.add_processes(&kill_tree::live_descendants());
        None
    }

    /// Sleeps until an event; returns true if a request can be read.
    fn wait_for_event(&self, until: Option<Instant>) -> bool {
        let wait = until.map(|until| timespec(until.saturating_duration_since(now())));
        let mut events = [
            PollFd::new(self.signals.stream(), PollFlags::IN),
            PollFd::new(self.socket.stream(), PollFlags::IN),
        ];
        // An orphan must not poll its closed socket: it would wake up at once, forever.
        let watched = if self.is_orphan { 1 } else { 2 };
        // An interrupted call counts as a wake-up.
        let _ = rustix::event::poll(&mut events[..watched], wait.as_ref());
        !events[1].revents().is_empty()
    }

    /// Reaps all children that have ended; returns true if any are left.
    fn reap_children(&mut self) -> bool {
        self.signals.drain();
        loop {
            let waited = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED);
            // Before the end that it may have caused: the whole group receives the interrupt before any member can end.
            self.handle_interrupt();
            match waited {
                Ok(Some((pid, status))) => {
                    let Some(child) = self.child.as_mut().filter(|child| child.pid() == pid) else {
                        continue;
                    };
                    match status.stopping_signal() {
                        None => child.note_exit(status),
                        Some(signal) if !child.is_ending() => {
                            self.send_report(&ReaperReport::Stopped { signal });
                        }
                        Some(_) => {}
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn handle_interrupt(&mut self) {
        if self.signals.take_interrupt()
            && let Some(child) = &mut self.child
        {
            child.note_interrupt();
            self.send_report(&ReaperReport::Interrupted);
        }
    }

    fn handle_requests(&mut self) {
        match self.socket.receive() {
            Ok(Some((ReaperRequest::Start(order), streams))) => self.start_child(order, streams),
            Ok(Some((ReaperRequest::Signal(signal), _))) => {
                if let (Some(child), Some(signal)) = (&self.child, Signal::from_named_raw(signal)) {
                    child.signal(signal);
                }
            }
            Ok(Some((ReaperRequest::End { grace_ms }, _))) => {
                self.end_child(Duration::from_millis(grace_ms))
            }
            Ok(None) | Err(_) => {
                self.is_orphan = true;
                self.end_child(ORPHAN_GRACE);
            }
        }
    }

    fn start_child(&mut self, order: ChildStartRequest, streams: Vec<OwnedFd>) {
        let started = spawn_child::spawn_child(&order, streams);
        match started.map(|pid| (pid, send_signal::to_pid(pid))) {
            Ok((number, Some(pid))) => {
                let exit_record = order.exit_record.map(PathBuf::from);
                let membership = match order.leadership {
                    ProcessGroupSetup::ReaperJoining => ReaperGroupMembership::Member,
                    ProcessGroupSetup::Reaper | ProcessGroupSetup::Child => {
                        ReaperGroupMembership::OwnGroup
                    }
                };
                self.child = Some(SupervisedChild::new(pid, membership, exit_record));
                self.cgroup_due = Some(now() + CGROUP_DELAY);
                self.send_report(&ReaperReport::Started { pid: number });
            }
            Ok((number, None)) => self.send_report(&ReaperReport::Started { pid: number }),
            Err(status) => self.send_report(&ReaperReport::SpawnFailed(status)),
        }
    }

    fn end_child(&mut self, grace: Duration) {
        if let Some(child) = &mut self.child {
            child.request_end(now(), grace);
        }
    }

    /// Performs the next action for the child; returns the time until which to sleep.
    fn advance_child(&mut self, any_below: bool) -> Option<Instant> {
        let child = self.child.as_mut()?;
        // If this runs `ps`, the end of that is the next wake-up: it checks again until they are gone.
        if !any_below && child.has_no_survivors() {
            self.report_end(0);
            return None;
        }
        match child.next_action(now()) {
            ChildAction::Wait => None,
            ChildAction::WaitUntil(at) => Some(at),
            ChildAction::Kill => {
                let survivors = self.kill_all();
                self.report_end(survivors);
                None
            }
        }
    }

    /// Kills until no process is left; returns the number of survivors.
    fn kill_all(&mut self) -> u32 {
        let give_up = now() + KILL_TIMEOUT;
        loop {
            let Some(child) = &mut self.child else {
                return 0;
            };
            let found = kill_tree::kill_all(|| child.live_processes());
            child.note_killed(found);
            self.wait_for_child(KILL_INTERVAL);
            let any_below = self.reap_children();
            let Some(child) = &self.child else {
                return 0;
            };
            if !any_below && child.has_no_survivors() {
                return 0;
            }
            if now() >= give_up {
                return u32::try_from(child.live_processes().len()).unwrap_or(u32::MAX);
            }
        }
    }

    fn wait_for_child(&self, longest: Duration) {
        let mut events = [PollFd::new(self.signals.stream(), PollFlags::IN)];
        let _ = rustix::event::poll(&mut events, Some(&timespec(longest)));
    }

    fn report_end(&mut self, survivors: u32) {
        if let Some(child) = self.child.take() {
            let (status, left) = child.into_outcome();
            self.send_report(&ReaperReport::Ended {
                status,
                left,
                survivors,
            });
        }
    }

    /// Sends a report; if the supervisor is gone, the next read of the socket detects it.
    fn send_report(&mut self, report: &ReaperReport) {
        let _ = self.socket.send(report);
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the reaper is a separate process and measures only grace periods"
    )]
    Instant::now()
}
