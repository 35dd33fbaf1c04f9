//! The waits of a session or run: its own, and those of API calls held by the gateway.

use serde::{Deserialize, Serialize};

use crate::decision::{RereadCost, WaitPurpose};
use crate::diagnosis::{Diagnosis, RetryAfterSource};
use crate::event::{CallFailed, CallHeld, WaitStarted};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The maximum number of held calls that are tracked per session; the latest are kept.
const MAX_CALLS: usize = 64;

/// The waits of a session or run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WaitState {
    /// The source of the end of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RetryAfterSource>,
    /// True if regular retries have ended and only a probe is sent from time to time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "parked")]
    pub is_parked: bool,
    /// True if it ends as soon as the conversation, which another process uses, is free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "for_conversation")]
    pub is_for_conversation: bool,
    /// The API calls held by the gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<HeldApiCall>,
    /// The deadline at which the default answer resolves the open escalation, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_by: Option<Timestamp>,
    /// The time at which retries end if there is no progress, if retries are bounded by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_at: Option<Timestamp>,
    /// The cost of rereading the conversation after the wait, if significant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadCost>,
}

/// An API call that the gateway holds until it can be sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldApiCall {
    /// The id of the call.
    pub call: String,
    /// The time when it is sent again.
    pub until: Timestamp,
    /// The failure kind that it waits out, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// The source of the end of the wait.
    pub source: RetryAfterSource,
}

impl HeldApiCall {
    /// Returns the wait that follows from a failed API attempt; `None` if it is not sent again later.
    pub(super) fn from_failure(failed: &CallFailed, at: Timestamp) -> Option<Self> {
        let until = failed.decision.wait_until().filter(|until| *until > at)?;
        let (decision, diagnosis) = (&failed.decision, &failed.diagnosis);
        // A server-stated delay is used unchanged, unless it is a reset, which many calls wait for.
        let asked = diagnosis.retry_after.is_some() && diagnosis.retry_after == decision.delay();
        let stated_in = diagnosis.retry_after_source;
        let stated_in = stated_in.filter(|_| decision.is_stated_reset || asked);
        Some(Self {
            call: failed.call.clone(),
            until,
            kind: Some(diagnosis.kind),
            source: stated_in.unwrap_or(RetryAfterSource::Guess),
        })
    }
}

impl From<&CallHeld> for HeldApiCall {
    fn from(held: &CallHeld) -> Self {
        Self {
            call: held.call.clone(),
            until: held.until,
            kind: Some(held.kind),
            source: held.source,
        }
    }
}

impl WaitState {
    /// True if nothing is waited for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the held call that is sent next.
    pub fn next_call(&self) -> Option<&HeldApiCall> {
        self.calls.iter().min_by_key(|call| call.until)
    }

    /// Applies the failure of an attempt, which ends the calls of its process.
    pub(super) fn on_attempt_failed(&mut self, diagnosis: &Diagnosis) {
        *self = Self {
            source: diagnosis.retry_after_source,
            ..Self::default()
        };
    }

    /// Starts a wait of the session itself.
    pub(super) fn begin(&mut self, wait: &WaitStarted) {
        self.is_parked = wait.wait_purpose == WaitPurpose::Probe;
        self.is_for_conversation = wait.wait_purpose == WaitPurpose::Conversation;
        self.reread = wait.reread;
        self.give_up_at = wait.give_up_at;
        if self.is_for_conversation {
            self.source = None;
        } else if let Some(source) = wait.source {
            self.source = Some(source);
        } else if !wait.is_stated || self.source.is_none() {
            self.source = Some(RetryAfterSource::Guess);
        }
    }

    /// Adds a held call.
    pub(super) fn add_held_call(&mut self, held: HeldApiCall) {
        self.release_call(&held.call);
        if self.calls.len() == MAX_CALLS {
            self.calls.remove(0);
        }
        self.calls.push(held);
    }

    /// Removes a held call; returns true if it was held.
    pub(super) fn release_call(&mut self, call: &str) -> bool {
        let before = self.calls.len();
        self.calls.retain(|held| held.call != call);
        self.calls.len() < before
    }
}
