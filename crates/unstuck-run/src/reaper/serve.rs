//! The loop of the reaper: it sleeps until a child ends, the supervisor says something, or a grace is over.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};

use crate::host::kill;

use super::cgroup::Cgroup;
use super::child::{Child, Membership, Next};
use super::signals::Wakes;
use super::socket::Socket;
use super::wire::{Leadership, Order, Raw, Report, Request};
use super::{start, sweep};

/// The grace when the supervisor is gone: whoever killed it wants the machine back.
const ORPHAN_GRACE: Duration = Duration::from_millis(300);
/// How long a child runs before it is gathered in a cgroup.
const SETTLED: Duration = Duration::from_secs(1);
/// How long a process may resist the kill: it hangs in the kernel or belongs to another user.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// How often the kill is repeated meanwhile.
const KILL_PACE: Duration = Duration::from_millis(20);

/// The reaper at work.
pub(super) struct Reaper {
    socket: Socket,
    wakes: Wakes,
    child: Option<Child>,
    is_orphan: bool,
    cgroup: Option<Cgroup>,
    /// When the child has run for so long that it is worth a cgroup.
    settles: Option<Instant>,
}

impl Reaper {
    /// A reaper without a child.
    pub(super) fn new(socket: Socket, wakes: Wakes) -> Self {
        Self {
            socket,
            wakes,
            child: None,
            is_orphan: false,
            cgroup: None,
            settles: None,
        }
    }

    /// Serves until the supervisor is gone and nothing is left.
    pub(super) fn serve(&mut self) {
        let mut until = None;
        while self.child.is_some() || !self.is_orphan {
            let has_request = self.wait(until);
            // First the children: one that ended by itself has done so before the supervisor went away.
            let any_below = self.reap();
            if has_request && !self.is_orphan {
                self.listen();
            }
            until = self.advance(any_below);
            until = until.into_iter().chain(self.settle()).min();
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
    }

    /// Gathers a child that has run for a while in a cgroup, and tells when that is due.
    fn settle(&mut self) -> Option<Instant> {
        let due = self.settles.filter(|_| self.child.is_some())?;
        if now() < due {
            return Some(due);
        }
        self.settles = None;
        if self.cgroup.is_none() {
            self.cgroup = Cgroup::make();
        }
        let path = Raw::from(self.cgroup.as_ref()?.path());
        // Told first: if this process is killed meanwhile, the supervisor ends what was moved.
        self.tell(&Report::Gathered { cgroup: path });
        let cgroup = self.cgroup.as_ref()?;
        cgroup.take(&sweep::below());
        // Once more for what was started meanwhile.
        cgroup.take(&sweep::below());
        None
    }

    /// Sleeps until something happens; whether the supervisor said something.
    fn wait(&self, until: Option<Instant>) -> bool {
        let wait = until.map(|until| timespec(until.saturating_duration_since(now())));
        let mut events = [
            PollFd::new(self.wakes.stream(), PollFlags::IN),
            PollFd::new(self.socket.stream(), PollFlags::IN),
        ];
        // An orphan must not look at its closed socket: it would wake up at once, for ever.
        let watched = if self.is_orphan { 1 } else { 2 };
        // Interrupted by a signal: as good as a wake-up.
        let _ = rustix::event::poll(&mut events[..watched], wait.as_ref());
        !events[1].revents().is_empty()
    }

    /// Takes in the ends of all children; whether any are left.
    fn reap(&mut self) -> bool {
        self.wakes.clear();
        loop {
            let waited = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED);
            // Before the end that it may have brought about: the whole group has it before any member can end.
            self.hear_interrupt();
            match waited {
                Ok(Some((pid, status))) => {
                    let Some(child) = self.child.as_mut().filter(|child| child.pid() == pid) else {
                        continue;
                    };
                    match status.stopping_signal() {
                        None => child.ended(status),
                        Some(signal) if !child.is_ending() => {
                            self.tell(&Report::Stopped { signal });
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

    fn hear_interrupt(&mut self) {
        if self.wakes.take_interrupt()
            && let Some(child) = &mut self.child
        {
            child.interrupted();
            self.tell(&Report::Interrupted);
        }
    }

    fn listen(&mut self) {
        match self.socket.receive() {
            Ok(Some((Request::Start(order), streams))) => self.start(order, streams),
            Ok(Some((Request::Signal(signal), _))) => {
                if let (Some(child), Some(signal)) = (&self.child, Signal::from_named_raw(signal)) {
                    child.signal(signal);
                }
            }
            Ok(Some((Request::End { grace_ms }, _))) => self.end(Duration::from_millis(grace_ms)),
            Ok(None) | Err(_) => {
                self.is_orphan = true;
                self.end(ORPHAN_GRACE);
            }
        }
    }

    fn start(&mut self, order: Order, streams: Vec<OwnedFd>) {
        let started = start::start(&order, streams);
        match started.map(|pid| (pid, kill::pid(pid))) {
            Ok((number, Some(pid))) => {
                let exit_record = order.exit_record.map(PathBuf::from);
                let membership = match order.leadership {
                    Leadership::Joined => Membership::Member,
                    Leadership::Given | Leadership::Taken => Membership::Apart,
                };
                self.child = Some(Child::new(pid, membership, exit_record));
                self.settles = Some(now() + SETTLED);
                self.tell(&Report::Started { pid: number });
            }
            Ok((number, None)) => self.tell(&Report::Started { pid: number }),
            Err(status) => self.tell(&Report::Refused(status)),
        }
    }

    fn end(&mut self, grace: Duration) {
        if let Some(child) = &mut self.child {
            child.end(now(), grace);
        }
    }

    /// Takes the child a step further and tells until when to sleep.
    fn advance(&mut self, any_below: bool) -> Option<Instant> {
        let child = self.child.as_mut()?;
        // Where this asks `ps`, the end of that is the next wake-up: it looks again until they have gone.
        if !any_below && child.has_left_nobody() {
            self.finish(0);
            return None;
        }
        match child.next(now()) {
            Next::Wait => None,
            Next::WaitUntil(at) => Some(at),
            Next::Kill => {
                let survivors = self.kill();
                self.finish(survivors);
                None
            }
        }
    }

    /// Kills until nothing is left; how many could not be killed.
    fn kill(&mut self) -> u32 {
        let give_up = now() + KILL_PATIENCE;
        loop {
            let Some(child) = &mut self.child else {
                return 0;
            };
            let found = sweep::kill_all(|| child.below());
            child.killed(found);
            self.wait_for_child(KILL_PACE);
            let any_below = self.reap();
            let Some(child) = &self.child else {
                return 0;
            };
            if !any_below && child.has_left_nobody() {
                return 0;
            }
            if now() >= give_up {
                return u32::try_from(child.below().len()).unwrap_or(u32::MAX);
            }
        }
    }

    fn wait_for_child(&self, longest: Duration) {
        let mut events = [PollFd::new(self.wakes.stream(), PollFlags::IN)];
        let _ = rustix::event::poll(&mut events, Some(&timespec(longest)));
    }

    fn finish(&mut self, survivors: u32) {
        if let Some(child) = self.child.take() {
            let (status, left) = child.outcome();
            self.tell(&Report::Ended {
                status,
                left,
                survivors,
            });
        }
    }

    /// If the supervisor is gone, the next look at the socket will say so.
    fn tell(&mut self, report: &Report) {
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
        reason = "the reaper is a process of its own and only measures graces"
    )]
    Instant::now()
}
