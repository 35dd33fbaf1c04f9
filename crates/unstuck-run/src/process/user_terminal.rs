//! The user's terminal: hands it to the child and restores it afterwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal};
use rustix::termios::{OptionalActions, QueueSelector, Termios};

use crate::os_processes::{process_table, send_signal};

/// A terminal that is handed over temporarily and always restored.
#[derive(Debug)]
pub(super) struct UserTerminal {
    descriptor: OwnedFd,
    saved_settings: Termios,
    is_given: bool,
}

impl UserTerminal {
    /// Borrows the terminal if we are in its foreground.
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

    /// Lets a group read from it; does nothing for a background job.
    pub(super) fn give_to_group(&mut self, group: Pid) {
        if is_in_foreground(self.descriptor.as_fd()) {
            self.is_given =
                without_job_stop(|| rustix::termios::tcsetpgrp(&self.descriptor, group).is_ok());
        }
        // It may have tried to read before it was allowed to.
        send_signal::signal_group(group, Signal::CONT);
    }

    /// Takes the terminal back and restores its settings.
    pub(super) fn reclaim(&mut self) {
        if !self.is_given {
            return;
        }
        self.is_given = false;
        without_job_stop(|| {
            // A terminal that has hung up needs no more changes.
            let _ = rustix::termios::tcsetpgrp(&self.descriptor, rustix::process::getpgrp());
            let _ = rustix::termios::tcsetattr(
                &self.descriptor,
                OptionalActions::Now,
                &self.saved_settings,
            );
        });
    }

    /// Returns true if we are in its foreground.
    pub(super) fn is_in_own_foreground(&self) -> bool {
        is_in_foreground(self.descriptor.as_fd())
    }

    /// Returns true if a group stopped only because it tried to use the terminal just before it got it.
    pub(super) fn stopped_before_handover(&self, group: u32, stop: i32) -> bool {
        let has_it =
            rustix::termios::tcgetpgrp(&self.descriptor).ok() == send_signal::to_pid(group);
        has_it && [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()].contains(&stop)
    }

    /// Returns true if the child has the terminal.
    pub(super) fn is_lent_to_child(&self) -> bool {
        self.is_given
    }

    /// Sets raw mode, in which every key is passed to the program.
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

/// Stops this job as Ctrl-Z would; returns true if a shell can continue it.
pub(super) fn stop_own_job() -> bool {
    has_job_control() && rustix::process::kill_current_process_group(Signal::STOP).is_ok()
}

/// Returns true if the parent of this job is in the same session: a shell that can continue it.
///
/// Without a shell (as the first process of a container) nothing would ever continue us.
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

/// Returns true if a shell has the terminal: we are in the background.
pub(super) fn is_with_parent(terminal: BorrowedFd<'_>) -> bool {
    let Ok(group) = rustix::termios::tcgetpgrp(terminal) else {
        return true;
    };
    let shell = rustix::process::getppid().and_then(|pid| rustix::process::getpgid(Some(pid)).ok());
    group != rustix::process::getpgrp() && shell == Some(group)
}

/// Discards what was typed and not read yet; returns false if that is not possible.
pub(super) fn discard_input(terminal: BorrowedFd<'_>) -> bool {
    without_job_stop(|| rustix::termios::tcflush(terminal, QueueSelector::IFlush).is_ok())
}

/// Changes the terminal from the background, for which the system would normally stop us.
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
