//! The Enter key of the user's terminal, observed while a child has the terminal.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::termios::LocalModes;

use super::super::user_terminal;

/// The Enter key of the user's terminal.
///
/// The child may read the terminal at any time, so nothing is read from it here: a line that the child wants is gone
/// before, and an empty line that stays unread was typed for us.
#[derive(Debug)]
pub(crate) struct EnterKey(OwnedFd);

impl EnterKey {
    pub(super) fn of_terminal(terminal: BorrowedFd<'_>) -> Option<Self> {
        terminal.try_clone_to_owned().ok().map(Self)
    }

    /// Returns true if Enter was pressed alone since the last call, and the child has not read it.
    pub(crate) fn has_been_pressed(&self) -> bool {
        let terminal = self.0.as_fd();
        // Without line editing, the child reads every key.
        let is_by_line = rustix::termios::tcgetattr(terminal)
            .is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
        if !is_by_line || user_terminal::is_with_parent(terminal) {
            return false;
        }
        let unread = rustix::io::ioctl_fionread(terminal).unwrap_or(0);
        unread == 1 && user_terminal::discard_input(terminal)
    }
}
