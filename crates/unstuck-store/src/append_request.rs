//! Write requests, prepared by the caller: redacted and serialized once, outside the writer thread.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::{Event, RunId};

use crate::error::StoreError;
use crate::escalation::EscalationAnswerPrecondition;
use crate::lease::LeaseToken;
use crate::outbox::NewOutboxMessage;

/// A batch of events for one run, written atomically.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEventBatch {
    /// The run the events belong to.
    pub run: RunId,
    /// The time of the events.
    pub at: Timestamp,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The lease the writer must still hold; `None` for events of humans, which need no lease.
    pub lease: Option<LeaseToken>,
    /// The escalation the events answer; it must still be open.
    pub answer_guard: Option<EscalationAnswerPrecondition>,
    /// Outbox messages written in the same transaction.
    pub messages: Vec<NewOutboxMessage>,
}

impl RunEventBatch {
    /// Returns an append that needs no lease.
    pub fn new(run: RunId, at: Timestamp, events: impl IntoIterator<Item = Event>) -> Self {
        Self {
            run,
            at,
            events: events.into_iter().collect(),
            lease: None,
            answer_guard: None,
            messages: Vec::new(),
        }
    }

    /// Writes the events only while that escalation is open.
    #[must_use]
    pub fn with_answer_guard(self, answers: EscalationAnswerPrecondition) -> Self {
        Self {
            answer_guard: Some(answers),
            ..self
        }
    }

    /// Adds outbox messages about these events.
    #[must_use]
    pub fn with_messages(self, outbox: Vec<NewOutboxMessage>) -> Self {
        Self {
            messages: outbox,
            ..self
        }
    }

    /// Writes the events only while that lease is held.
    #[must_use]
    pub fn with_lease(self, token: LeaseToken) -> Self {
        Self {
            lease: Some(token),
            ..self
        }
    }
}

/// A function that removes secrets from payloads before they are written.
#[derive(Clone)]
pub struct EventPayloadRedactor(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl EventPayloadRedactor {
    /// Returns a redactor that applies this function to every payload.
    pub fn new(redact: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(redact))
    }

    /// Removes secrets from one value.
    pub(crate) fn apply(&self, value: &mut Value) {
        (self.0)(value);
    }
}

impl fmt::Debug for EventPayloadRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redact(..)")
    }
}

/// A batch of events whose payloads are ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedEventBatch {
    pub(crate) run: RunId,
    pub(crate) at: Timestamp,
    pub(crate) events: Vec<PreparedEvent>,
    pub(crate) lease: Option<LeaseToken>,
    pub(crate) answer_guard: Option<EscalationAnswerPrecondition>,
    pub(crate) messages: Vec<PreparedOutboxMessage>,
}

/// An outbox message whose payload is ready to be written.
#[derive(Debug)]
pub(crate) struct PreparedOutboxMessage {
    pub(crate) event: usize,
    pub(crate) event_name: String,
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) group: String,
    pub(crate) window: Duration,
}

impl PreparedOutboxMessage {
    fn new(outgoing: NewOutboxMessage, redact: Option<&EventPayloadRedactor>) -> Self {
        let mut body = outgoing.body;
        if let Some(EventPayloadRedactor(redact)) = redact {
            redact(&mut body);
        }
        Self {
            event: outgoing.event,
            event_name: outgoing.event_name,
            target: outgoing.target.to_string(),
            body: body.to_string(),
            group: outgoing.group,
            window: outgoing.window,
        }
    }
}

/// An event and its serialized form.
#[derive(Debug)]
pub(crate) struct PreparedEvent {
    pub(crate) event: Event,
    pub(crate) payload: String,
}

impl PreparedEventBatch {
    pub(crate) fn new(
        append: RunEventBatch,
        redact: Option<&EventPayloadRedactor>,
    ) -> Result<Self, StoreError> {
        let lines = append.events.into_iter();
        Ok(Self {
            run: append.run,
            at: append.at,
            events: lines
                .map(|event| PreparedEvent::new(&event, redact))
                .collect::<Result<_, _>>()?,
            lease: append.lease,
            answer_guard: append.answer_guard,
            messages: append
                .messages
                .into_iter()
                .map(|outgoing| PreparedOutboxMessage::new(outgoing, redact))
                .collect(),
        })
    }
}

impl PreparedEvent {
    /// Projections must see what a later reader reads, so the event is decoded again from its redacted form.
    fn new(event: &Event, redact: Option<&EventPayloadRedactor>) -> Result<Self, StoreError> {
        let mut value = Value::Object(event.to_value().map_err(StoreError::database)?);
        if let Some(EventPayloadRedactor(redact)) = redact {
            redact(&mut value);
        }
        let payload = value.to_string();
        let event = match value {
            Value::Object(fields) => Event::from_value(fields),
            _ => return Err(StoreError::database(NotAnObject)),
        };
        Ok(Self { event, payload })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the redacted event is not a JSON object")]
struct NotAnObject;
