//! What is to be written, made ready for it: redacted and serialised once, by whoever asks and not by the writer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::{Event, RunId};

use crate::error::StoreError;
use crate::lease::LeaseToken;
use crate::outbox::Outgoing;
use crate::question::Answers;

/// Events to be written to one run, all or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The run that they belong to.
    pub run: RunId,
    /// When they happened.
    pub at: Timestamp,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The lease that the writer must still hold; none for words of people, which need no lease.
    pub guard: Option<LeaseToken>,
    /// The question that they answer, which must still wait.
    pub answers: Option<Answers>,
    /// Messages to be sent because of them, written with them.
    pub outbox: Vec<Outgoing>,
}

impl Append {
    /// Events to be written whoever drives the run.
    pub fn new(run: RunId, at: Timestamp, events: impl IntoIterator<Item = Event>) -> Self {
        Self {
            run,
            at,
            events: events.into_iter().collect(),
            guard: None,
            answers: None,
            outbox: Vec::new(),
        }
    }

    /// Writes them only while that question waits.
    #[must_use]
    pub fn answering(self, answers: Answers) -> Self {
        Self {
            answers: Some(answers),
            ..self
        }
    }

    /// Has these messages sent because of them.
    #[must_use]
    pub fn telling(self, outbox: Vec<Outgoing>) -> Self {
        Self { outbox, ..self }
    }

    /// Writes them only while that lease is held.
    #[must_use]
    pub fn guarded(self, token: LeaseToken) -> Self {
        Self {
            guard: Some(token),
            ..self
        }
    }
}

/// Takes secrets out of what is about to be written.
#[derive(Clone)]
pub struct Redact(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Redact {
    /// Changes every payload by that function before it is written.
    pub fn new(redact: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(redact))
    }

    /// Takes secrets out of one value.
    pub(crate) fn apply(&self, value: &mut Value) {
        (self.0)(value);
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redact(..)")
    }
}

/// An append whose payloads are ready to be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) run: RunId,
    pub(crate) at: Timestamp,
    pub(crate) events: Vec<Line>,
    pub(crate) guard: Option<LeaseToken>,
    pub(crate) answers: Option<Answers>,
    pub(crate) outbox: Vec<Message>,
}

/// A message whose texts are ready to be written.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) event: usize,
    pub(crate) occasion: String,
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) group: String,
    pub(crate) window: Duration,
}

impl Message {
    fn new(outgoing: Outgoing, redact: Option<&Redact>) -> Self {
        let mut body = outgoing.body;
        if let Some(Redact(redact)) = redact {
            redact(&mut body);
        }
        Self {
            event: outgoing.event,
            occasion: outgoing.occasion,
            target: outgoing.target.to_string(),
            body: body.to_string(),
            group: outgoing.group,
            window: outgoing.window,
        }
    }
}

/// An event and the text that stands for it on disk.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) event: Event,
    pub(crate) payload: String,
}

impl Prepared {
    pub(crate) fn new(append: Append, redact: Option<&Redact>) -> Result<Self, StoreError> {
        let lines = append.events.into_iter();
        Ok(Self {
            run: append.run,
            at: append.at,
            events: lines
                .map(|event| Line::new(&event, redact))
                .collect::<Result<_, _>>()?,
            guard: append.guard,
            answers: append.answers,
            outbox: append
                .outbox
                .into_iter()
                .map(|outgoing| Message::new(outgoing, redact))
                .collect(),
        })
    }
}

impl Line {
    /// What is folded must be what a later reader finds, so the event is read back from what is written.
    fn new(event: &Event, redact: Option<&Redact>) -> Result<Self, StoreError> {
        let mut value = Value::Object(event.to_value().map_err(StoreError::database)?);
        if let Some(Redact(redact)) = redact {
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
#[error("the redaction of an event left no object")]
struct NotAnObject;
