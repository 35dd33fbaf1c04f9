//! Messages that wait to be sent: written with the events that they tell of, kept until they have arrived.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::RunId;

/// How long one process has the messages that it took alone; a try to send them must not take longer.
pub const OUTBOX_CLAIM_TTL: Duration = Duration::from_secs(60);

/// A message that is to be sent because of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// The event that it tells of, by its place in [`Append::events`](crate::Append::events).
    pub event: usize,
    /// The occasion, such as `escalation`.
    pub occasion: String,
    /// Where to, without secrets.
    pub target: Value,
    /// What is told.
    pub body: Value,
    /// Messages of one group to one target are sent as one, where several wait.
    pub group: String,
    /// How long there is quiet after a message of this group to this target; the next ones are collected meanwhile.
    pub window: Duration,
}

/// A message in the outbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutboxMessage {
    /// Its id, the same at each try: the run, the number of the event, and which of its messages.
    pub id: String,
    /// The run that it is about.
    pub run: RunId,
    /// The occasion.
    pub occasion: String,
    /// Where to.
    pub target: Value,
    /// What is told.
    pub body: Value,
    /// Its group.
    pub group: String,
    /// When it was written.
    pub created: Timestamp,
    /// When it is tried next, while it waits.
    pub due: Timestamp,
    /// How often it was tried in vain.
    pub attempts: u32,
    /// What went wrong the last time.
    pub last_error: Option<String>,
    /// Where it stands.
    pub state: DeliveryState,
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is still to be sent.
    Waiting,
    /// It has arrived.
    Delivered,
    /// It will not be tried again.
    GivenUp,
}

/// Which messages are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboxFilter {
    /// Those that stand so; all if none is named.
    pub state: Vec<DeliveryState>,
    /// The messages about this run.
    pub run: Option<RunId>,
    /// So many at most, the newest first.
    pub limit: Option<usize>,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryResult {
    /// They have arrived.
    Delivered,
    /// They have not, and are tried again at that moment; given up if there is none.
    Failed {
        /// What went wrong.
        error: String,
        /// When they are tried again.
        next: Option<Timestamp>,
    },
}

/// A change of the outbox, as the writer gets it.
#[derive(Debug)]
pub(crate) enum OutboxChange {
    /// Takes what is due by a moment, so many groups at most.
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
