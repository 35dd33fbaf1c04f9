//! Who is told what happens while a run is driven.

use std::time::Duration;

use unstuck_core::event::RoleInstance;
use unstuck_core::views::RunProjection;
use unstuck_core::{EventRecord, SessionState, Timestamp};

/// One of the two streams of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputChannel {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// Is told what happens while a run is driven.
pub trait SessionReporter {
    /// Passes on what a child wrote, at once and as it is.
    fn output(&mut self, channel: OutputChannel, bytes: &[u8]);

    /// Tells what happened; it is on disk by now.
    fn on_events(&mut self, events: &[EventRecord], recovery: &SessionState);

    /// Tells that an attempt has been going on for so long; about five times a second if [`live`](Self::live).
    fn on_running(&mut self, _elapsed: Duration, _recovery: &SessionState) {}

    /// Tells that a call of the agent waits for its next try until then; about five times a second if [`live`](Self::live).
    fn on_call_waiting(&mut self, elapsed: Duration, _until: Timestamp, recovery: &SessionState) {
        self.on_running(elapsed, recovery);
    }

    /// Tells how long there is still to wait; once a second if [`live`](Self::live).
    fn on_waiting(&mut self, _left: Duration, _until: Timestamp, _recovery: &SessionState) {}

    /// Tells every few minutes that it still waits, where nobody looks at what changes by itself.
    fn on_still_waiting(&mut self, _left: Duration, _until: Timestamp, _recovery: &SessionState) {}

    /// Whether anybody looks at what changes by itself.
    fn is_live(&self) -> bool {
        false
    }

    /// Whether anybody still reads the child's output; when nobody does, the run is stopped.
    fn is_open(&self) -> bool {
        true
    }

    /// Why some of the child's output is lost, if it is: then the run is not a success.
    fn lost_output(&self) -> Option<String> {
        None
    }

    /// Tells of something that was done and is in no event.
    fn note(&mut self, _message: &str) {}

    /// Tells of something that is not as it should be, but does not stop the run.
    fn warn(&mut self, message: &str);
}

/// Is told what happens while a pipeline is driven, whose parts run side by side.
pub trait RunReporter: Send {
    /// Takes what a part wrote, at once and as it is.
    fn output(&mut self, _part: &RoleInstance, _channel: OutputChannel, _bytes: &[u8]) {}

    /// Tells what happened, and where the run stands now; it is on disk by now.
    fn on_events(&mut self, events: &[EventRecord], run: &RunProjection);

    /// Tells every few minutes that a role still waits; its wait is that of this session.
    fn on_still_waiting(
        &mut self,
        _role: &str,
        _left: Duration,
        _until: Timestamp,
        _recovery: &SessionState,
    ) {
    }

    /// Tells where the run stands at this moment; about five times a second if [`live`](Self::live).
    fn tick(&mut self, _run: &RunProjection, _now: Timestamp) {}

    /// Whether anybody looks at what changes by itself.
    fn is_live(&self) -> bool {
        false
    }

    /// Tells of something that was done and is in no event.
    fn note(&mut self, _message: &str) {}

    /// Tells of something that is not as it should be, but does not stop the run.
    fn warn(&mut self, message: &str);
}
