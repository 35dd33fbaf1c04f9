//! The terminal that the person sits at: who may read from it, and giving it back as it was.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal};
use rustix::termios::{OptionalActions, Termios};

use crate::host::{kill, table};

/// A terminal that is given away for a time and always taken back as it was.
#[derive(Debug)]
pub(super) struct Terminal {
    descriptor: OwnedFd,
    before: Termios,
    is_away: bool,
}

impl Terminal {
    /// Borrows the terminal, if we are in its foreground.
    pub(super) fn borrow(descriptor: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        if !is_in_foreground(descriptor) {
            return Ok(None);
        }
        Ok(Some(Self {
            descriptor: descriptor.try_clone_to_owned()?,
            before: rustix::termios::tcgetattr(descriptor)?,
            is_away: false,
        }))
    }

    /// Lets a group read from it; a background job has nothing to give.
    pub(super) fn give_to(&mut self, group: Pid) {
        if is_in_foreground(self.descriptor.as_fd()) {
            self.is_away =
                unstoppable(|| rustix::termios::tcsetpgrp(&self.descriptor, group).is_ok());
        }
        // It may have tried to read before it was allowed to.
        kill::group(group, Signal::CONT);
    }

    /// Takes it back, as it was.
    pub(super) fn take_back(&mut self) {
        if !self.is_away {
            return;
        }
        self.is_away = false;
        unstoppable(|| {
            // A terminal that has hung up needs nothing any more.
            let _ = rustix::termios::tcsetpgrp(&self.descriptor, rustix::process::getpgrp());
            let _ =
                rustix::termios::tcsetattr(&self.descriptor, OptionalActions::Now, &self.before);
        });
    }

    /// Whether we are in its foreground.
    pub(super) fn is_ours(&self) -> bool {
        is_in_foreground(self.descriptor.as_fd())
    }

    /// Whether a group stopped only because it wanted the terminal a moment before it got it.
    pub(super) fn was_asked_too_early(&self, group: u32, stop: i32) -> bool {
        let has_it = rustix::termios::tcgetpgrp(&self.descriptor).ok() == kill::pid(group);
        has_it && [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()].contains(&stop)
    }

    /// Whether the child has it.
    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Passes every key on as it is instead of acting on some.
    pub(super) fn make_raw(&mut self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        let set = || rustix::termios::tcsetattr(&self.descriptor, OptionalActions::Now, &raw);
        self.is_away = unstoppable(set).is_ok();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Stops this job as Ctrl-Z would; whether anybody is there to continue it.
pub(super) fn stop_own_job() -> bool {
    has_job_control() && rustix::process::kill_current_process_group(Signal::STOP).is_ok()
}

/// Whether the parent of this job is of the same session: a shell that can continue it.
///
/// Without one (a container whose first process we are) nothing would ever wake us up.
fn has_job_control() -> bool {
    let Some(own) = table::entry(std::process::id()) else {
        return false;
    };
    let mut entry = own;
    while entry.group == own.group {
        match table::entry(entry.parent) {
            Some(parent) => entry = parent,
            None => return false,
        }
    }
    entry.session == own.session
}

pub(super) fn is_in_foreground(terminal: BorrowedFd<'_>) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Does something to the terminal from the background, for which the system would stop us.
fn unstoppable<T>(action: impl FnOnce() -> T) -> T {
    let mut set = SigSet::empty();
    set.add(NixSignal::SIGTTOU);
    let before = SigSet::thread_get_mask();
    let _ = set.thread_block();
    let result = action();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    result
}
