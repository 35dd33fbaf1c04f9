//! The outbox: messages written together with the events they report and kept until they are delivered.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::RunId;

/// The time for which a claim on messages is exclusive; a delivery attempt must be shorter.
pub const OUTBOX_CLAIM_TTL: Duration = Duration::from_secs(60);

/// A new outbox message: a notification to be sent because of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOutboxMessage {
    /// The index of the reported event in [`RunEventBatch::events`](crate::RunEventBatch::events).
    pub event: usize,
    /// The name of the notified event, such as `escalation`.
    pub event_name: String,
    /// The target, without secrets.
    pub target: Value,
    /// The message body.
    pub body: Value,
    /// The group; pending messages of one group to one target are sent as one.
    pub group: String,
    /// The quiet period after a message of this group to this target; further messages are collected meanwhile.
    pub window: Duration,
}

/// A message in the outbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutboxMessage {
    /// The message id, stable across attempts: run, event number, index of the message.
    pub id: String,
    /// The run.
    pub run: RunId,
    /// The name of the notified event.
    pub event_name: String,
    /// The target.
    pub target: Value,
    /// The body.
    pub body: Value,
    /// The group.
    pub group: String,
    /// The creation time.
    pub created: Timestamp,
    /// The time of the next attempt, while pending.
    pub due: Timestamp,
    /// The number of failed attempts.
    pub attempts: u32,
    /// The last error.
    pub last_error: Option<String>,
    /// The delivery state.
    pub state: DeliveryState,
}

/// The delivery state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Pending.
    Waiting,
    /// Delivered.
    Delivered,
    /// Failed permanently.
    GivenUp,
}

/// A filter for outbox messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboxFilter {
    /// The accepted states; empty means any.
    pub state: Vec<DeliveryState>,
    /// The run.
    pub run: Option<RunId>,
    /// The maximum number of results, newest first.
    pub limit: Option<usize>,
}

/// The result of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The messages were delivered.
    Delivered,
    /// The delivery failed.
    Failed {
        /// The error.
        error: String,
        /// The time of the next attempt; `None` gives up.
        next: Option<Timestamp>,
    },
}

/// An outbox operation for the writer.
#[derive(Debug)]
pub(crate) enum OutboxChange {
    /// Claims up to this many groups of messages that are due.
    Claim {
        now: Timestamp,
        due_by: Timestamp,
        groups: usize,
    },
    RecordDelivery {
        ids: Vec<String>,
        result: DeliveryResult,
        now: Timestamp,
    },
}
