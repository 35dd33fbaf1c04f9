//! A child at the person's terminal: it holds the terminal, stops with Ctrl-Z and goes on, and has the reaper in its
//! group.

use rustix::process::Signal;
use tokio::signal::unix::SignalKind;
use tokio::time::Instant;

use crate::host::{Status, kill, table};
use crate::process::error::{ProcessError, While};
use crate::process::reaper_handle::State;
use crate::process::terminal;

use super::{Attempt, End};

impl Attempt<'_> {
    /// Whether the child reads from the person's terminal itself.
    pub(super) fn holds_terminal(&self) -> bool {
        self.streams.terminal.is_some() && self.streams.pty.is_none()
    }

    /// Lets the child read from the terminal, unless it has one of its own.
    pub(super) fn hand_over(&mut self, child: u32) {
        let terminal = self.streams.terminal.as_mut();
        if let (Some(terminal), None, Some(group)) = (terminal, &self.streams.pty, kill::pid(child))
        {
            terminal.give_to(group);
        }
    }

    /// Stops with a child that the person stopped, and goes on with it.
    pub(super) async fn suspend(&mut self, signal: i32) -> Result<(), ProcessError> {
        let (Some(terminal), None) = (self.streams.terminal.as_mut(), &self.streams.pty) else {
            return Ok(());
        };
        let State::Busy { child: Some(child) } = self.reaper.state else {
            return Ok(());
        };
        if terminal.was_asked_too_early(child, signal) {
            self.hand_over(child);
            return Ok(());
        }
        let was_away = terminal.is_away();
        terminal.take_back();
        if was_away || !terminal.is_ours() {
            let continued = SignalKind::from_raw(Signal::CONT.as_raw());
            let mut continued =
                tokio::signal::unix::signal(continued).to("watch for the continuation")?;
            let stopped_at = Instant::now();
            if terminal::stop_own_job() {
                continued.recv().await;
            }
            self.deadlines.forgive(stopped_at.elapsed());
        }
        self.hand_over(child);
        Ok(())
    }

    /// Wakes a reaper that was stopped together with the group that it is in: it has yet to tell of that.
    pub(super) fn wake_reaper(&self) {
        let is_stopped = |entry: table::Entry| entry.state == b'T';
        if table::entry(self.reaper.id.pid).is_some_and(is_stopped) {
            kill::one(self.reaper.id, Signal::CONT);
        }
    }

    /// Tells the end of a child that took the reaper along, if it may have: by a SIGKILL to the group of both.
    pub(super) async fn died_together(&mut self, error: ProcessError) -> Result<End, ProcessError> {
        if !(self.holds_terminal() && matches!(error, ProcessError::ReaperDied)) {
            return Err(error);
        }
        let _ = self.reaper.bury().await;
        let killed = Status::Signaled(Signal::KILL.as_raw());
        Ok(End::without_child(killed))
    }
}
