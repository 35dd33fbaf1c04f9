//! The terminal that the person sits at: who may read from it, and giving it back as it was.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal};
use rustix::termios::{OptionalActions, Termios};

use crate::procs::{process_table, send_signal};

/// A terminal that is given away for a time and always taken back as it was.
#[derive(Debug)]
pub(super) struct UserTerminal {
    descriptor: OwnedFd,
    saved_settings: Termios,
    is_given: bool,
}

impl UserTerminal {
    /// Borrows the terminal, if we are in its foreground.
    pub(super) fn borrow_if_foreground(descriptor: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        if !is_in_foreground(descriptor) {
            return Ok(None);
        }
        Ok(Some(Self {
            descriptor: descriptor.try_clone_to_owned()?,
            saved_settings: rustix::termios::tcgetattr(descriptor)?,
            is_given: false,
        }))
    }

    /// Lets a group read from it; a background job has nothing to give.
    pub(super) fn give_to_group(&mut self, group: Pid) {
        if is_in_foreground(self.descriptor.as_fd()) {
            self.is_given =
                without_job_stop(|| rustix::termios::tcsetpgrp(&self.descriptor, group).is_ok());
        }
        // It may have tried to read before it was allowed to.
        send_signal::signal_group(group, Signal::CONT);
    }

    /// Takes it back, as it was.
    pub(super) fn reclaim(&mut self) {
        if !self.is_given {
            return;
        }
        self.is_given = false;
        without_job_stop(|| {
            // A terminal that has hung up needs nothing any more.
            let _ = rustix::termios::tcsetpgrp(&self.descriptor, rustix::process::getpgrp());
            let _ = rustix::termios::tcsetattr(
                &self.descriptor,
                OptionalActions::Now,
                &self.saved_settings,
            );
        });
    }

    /// Whether we are in its foreground.
    pub(super) fn is_in_own_foreground(&self) -> bool {
        is_in_foreground(self.descriptor.as_fd())
    }

    /// Whether a group stopped only because it wanted the terminal a moment before it got it.
    pub(super) fn stopped_before_handover(&self, group: u32, stop: i32) -> bool {
        let has_it =
            rustix::termios::tcgetpgrp(&self.descriptor).ok() == send_signal::to_pid(group);
        has_it && [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()].contains(&stop)
    }

    /// Whether the child has it.
    pub(super) fn is_given_to_child(&self) -> bool {
        self.is_given
    }

    /// Passes every key on as it is instead of acting on some.
    pub(super) fn make_raw(&mut self) {
        let mut raw = self.saved_settings.clone();
        raw.make_raw();
        let set = || rustix::termios::tcsetattr(&self.descriptor, OptionalActions::Now, &raw);
        self.is_given = without_job_stop(set).is_ok();
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        self.reclaim();
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
    let Some(own) = process_table::find_process(std::process::id()) else {
        return false;
    };
    let mut entry = own;
    while entry.group == own.group {
        match process_table::find_process(entry.parent) {
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
fn without_job_stop<T>(action: impl FnOnce() -> T) -> T {
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
