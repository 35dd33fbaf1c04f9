//! Receivers of what happens while a session or pipeline runs.

use std::time::Duration;

use unstuck_core::event::RoleInstance;
use unstuck_core::views::RunProjection;
use unstuck_core::{EventRecord, SessionState, Timestamp};

/// One of the two output streams of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputChannel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives what happens while a session runs.
pub trait SessionReporter {
    /// Forwards output of a child at once and unchanged.
    fn output(&mut self, channel: OutputChannel, bytes: &[u8]);

    /// Reports events that are on disk already.
    fn on_events(&mut self, events: &[EventRecord], recovery: &SessionState);

    /// Reports the elapsed time of an attempt; about five times a second if [`is_live`](Self::is_live).
    fn on_running(&mut self, _elapsed: Duration, _recovery: &SessionState) {}

    /// Reports that an API call waits for its next attempt; about five times a second if [`is_live`](Self::is_live).
    fn on_call_waiting(&mut self, elapsed: Duration, _until: Timestamp, recovery: &SessionState) {
        self.on_running(elapsed, recovery);
    }

    /// Reports the remaining time of a wait; once a second if [`is_live`](Self::is_live).
    fn on_waiting(&mut self, _left: Duration, _until: Timestamp, _recovery: &SessionState) {}

    /// Reports every few minutes that the session still waits, if the display is not live.
    fn on_still_waiting(&mut self, _left: Duration, _until: Timestamp, _recovery: &SessionState) {}

    /// Returns true if the display is live.
    fn is_live(&self) -> bool {
        false
    }

    /// Returns true if the child's output still has a reader; without one, the run is stopped.
    fn is_open(&self) -> bool {
        true
    }

    /// Returns the reason why output of the child was lost, if it was: then the run is not a success.
    fn lost_output(&self) -> Option<String> {
        None
    }

    /// Reports an action that is in no event.
    fn note(&mut self, _message: &str) {}

    /// Reports a problem that does not stop the run.
    fn warn(&mut self, message: &str);
}

/// Receives what happens while a pipeline runs, whose role instances run in parallel.
pub trait RunReporter: Send {
    /// Receives output of a role instance at once and unchanged.
    fn output(&mut self, _part: &RoleInstance, _channel: OutputChannel, _bytes: &[u8]) {}

    /// Reports events and the resulting state of the run; they are on disk already.
    fn on_events(&mut self, events: &[EventRecord], run: &RunProjection);

    /// Reports every few minutes that a role still waits; the session is the one that waits.
    fn on_still_waiting(
        &mut self,
        _role: &str,
        _left: Duration,
        _until: Timestamp,
        _recovery: &SessionState,
    ) {
    }

    /// Reports the current state of the run; about five times a second if [`is_live`](Self::is_live).
    fn tick(&mut self, _run: &RunProjection, _now: Timestamp) {}

    /// Returns true if the display is live.
    fn is_live(&self) -> bool {
        false
    }

    /// Reports an action that is in no event.
    fn note(&mut self, _message: &str) {}

    /// Reports a problem that does not stop the run.
    fn warn(&mut self, message: &str);
}
