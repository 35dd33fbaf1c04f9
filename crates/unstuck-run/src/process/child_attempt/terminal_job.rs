//! A child at the user's terminal: it owns the terminal, can be suspended with Ctrl-Z and continued, and has the reaper
//! in its process group.

use rustix::process::Signal;
use tokio::signal::unix::SignalKind;
use tokio::time::Instant;

use crate::os_processes::{ChildExitStatus, process_table, send_signal};
use crate::process::error::{ProcessError, ProcessIoContext};
use crate::process::reaper_handle::ReaperState;
use crate::process::user_terminal;

use super::{ChildAttempt, ChildEndReport};

impl ChildAttempt<'_> {
    /// Returns true if the child reads from the user's terminal itself.
    pub(super) fn holds_terminal(&self) -> bool {
        self.streams.terminal.is_some() && self.streams.pty.is_none()
    }

    /// Lets the child read from the terminal, unless it has one of its own.
    pub(super) fn grant_terminal(&mut self, child: u32) {
        let terminal = self.streams.terminal.as_mut();
        if let (Some(terminal), None, Some(group)) =
            (terminal, &self.streams.pty, send_signal::to_pid(child))
        {
            terminal.give_to_group(group);
        }
    }

    /// Suspends this job together with a child that the user suspended, and continues with it.
    pub(super) async fn suspend(&mut self, signal: i32) -> Result<(), ProcessError> {
        let (Some(terminal), None) = (self.streams.terminal.as_mut(), &self.streams.pty) else {
            return Ok(());
        };
        let ReaperState::Busy { child: Some(child) } = self.reaper.state else {
            return Ok(());
        };
        if terminal.stopped_before_handover(child, signal) {
            self.grant_terminal(child);
            return Ok(());
        }
        let was_away = terminal.is_lent_to_child();
        terminal.reclaim();
        if was_away || !terminal.is_in_own_foreground() {
            let continued = SignalKind::from_raw(Signal::CONT.as_raw());
            let mut continued =
                tokio::signal::unix::signal(continued).context("watch for SIGCONT")?;
            let stopped_at = Instant::now();
            if user_terminal::stop_own_job() {
                continued.recv().await;
            }
            self.deadlines.exclude_pause(stopped_at.elapsed());
        }
        self.grant_terminal(child);
        Ok(())
    }

    /// Continues a reaper that was stopped together with its group: it has yet to report that.
    pub(super) fn wake_reaper(&self) {
        let is_stopped = |entry: process_table::ProcessEntry| entry.state == b'T';
        if process_table::find_process(self.reaper.id.pid).is_some_and(is_stopped) {
            send_signal::signal_process(self.reaper.id, Signal::CONT);
        }
    }

    /// Returns the end of a child that may have taken the reaper along, by a SIGKILL to their common group.
    pub(super) async fn end_after_reaper_death(
        &mut self,
        error: ProcessError,
    ) -> Result<ChildEndReport, ProcessError> {
        if !(self.holds_terminal() && matches!(error, ProcessError::ReaperDied)) {
            return Err(error);
        }
        let _ = self.reaper.clean_up_dead_reaper().await;
        let killed = ChildExitStatus::Signaled(Signal::KILL.as_raw());
        Ok(ChildEndReport::without_child(killed))
    }
}
