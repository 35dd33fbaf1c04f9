//! Receivers of what happens while a session or pipeline runs.

use std::time::Duration;

use unstuck_core::decision::{CallWait, WaitPurpose};
use unstuck_core::event::RoleInstance;
use unstuck_core::views::RunProjection;
use unstuck_core::{EventRecord, FailureKind, SessionId, SessionState, Timestamp};

/// One of the two output streams of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputChannel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The wait of a session: until its next attempt, or until the gateway sends a held API call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionWait {
    /// The remaining time.
    pub left: Duration,
    /// The end of the wait.
    pub until: Timestamp,
    /// The failure that it waits out, if known.
    pub kind: Option<FailureKind>,
    /// The purpose of the wait.
    pub wait_purpose: WaitPurpose,
    /// The time at which retries end if there is no progress, if retries are bounded by time.
    pub give_up_at: Option<Timestamp>,
    /// True if an API call of a running attempt is held.
    pub is_held_call: bool,
}

impl SessionWait {
    /// Describes the wait of a session for its next attempt.
    pub(super) fn for_attempt(recovery: &SessionState, until: Timestamp, now: Timestamp) -> Self {
        Self {
            left: until.since(now),
            until,
            kind: recovery.last_failure().map(|failed| failed.diagnosis.kind),
            wait_purpose: recovery.wait_purpose(),
            give_up_at: recovery.give_up_at(),
            is_held_call: false,
        }
    }

    /// Describes the wait of a session for its conversation, which another process uses.
    pub(super) fn for_conversation(until: Timestamp, now: Timestamp) -> Self {
        Self {
            left: until.since(now),
            until,
            kind: None,
            wait_purpose: WaitPurpose::Conversation,
            give_up_at: Some(until),
            is_held_call: false,
        }
    }

    /// Describes the wait of a held API call.
    pub(super) fn of_held_call(call: &CallWait, now: Timestamp) -> Self {
        Self {
            left: call.until.since(now),
            until: call.until,
            kind: Some(call.kind),
            wait_purpose: call.wait_purpose,
            give_up_at: call.give_up_at,
            is_held_call: true,
        }
    }
}

/// Receives what happens while a session runs.
pub trait SessionReporter {
    /// Forwards output of a child at once and unchanged.
    fn output(&mut self, channel: OutputChannel, bytes: &[u8]);

    /// Reports events that are on disk already.
    fn on_events(&mut self, events: &[EventRecord], recovery: &SessionState);

    /// Reports the elapsed time of an attempt; about five times a second if [`is_live`](Self::is_live).
    fn on_running(&mut self, _elapsed: Duration, _recovery: &SessionState) {}

    /// Reports the remaining time of a wait; at least once a second if [`is_live`](Self::is_live).
    fn on_waiting(&mut self, _wait: &SessionWait, _recovery: &SessionState) {}

    /// Reports every few minutes that the session still waits, if the display is not live.
    fn on_still_waiting(&mut self, _wait: &SessionWait, _recovery: &SessionState) {}

    /// Reports the held API call of a running attempt, or that none is held; about five times a second.
    fn on_held_call(&mut self, _wait: Option<&SessionWait>, _recovery: &SessionState) {}

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
pub trait PipelineReporter: Send {
    /// Receives output of a role instance at once and unchanged.
    fn output(&mut self, _part: &RoleInstance, _channel: OutputChannel, _bytes: &[u8]) {}

    /// Reports events and the resulting state of the run; they are on disk already.
    fn on_events(&mut self, events: &[EventRecord], run: &RunProjection);

    /// Reports every few minutes that a role still waits; the session is the one that waits.
    fn on_still_waiting(&mut self, _role: &str, _wait: &SessionWait, _recovery: &SessionState) {}

    /// Reports the held API call of a running session, or that none is held; about five times a second.
    fn on_held_call(&mut self, _session: &SessionId, _wait: Option<&SessionWait>) {}

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
