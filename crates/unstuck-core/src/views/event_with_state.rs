//! Events paired with the state of their session, for consumers that follow the log.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::run_projection::RunProjection;
use super::session_status::SessionStatusSummary;
use crate::event::{Event, EventRecord};

/// An event with the state of its session after it, or of its run if it belongs to no session.
#[derive(Debug, Clone, PartialEq)]
pub struct EventWithState {
    /// The event.
    pub record: EventRecord,
    /// The state after the event.
    pub state: SessionStatusSummary,
}

impl Serialize for EventWithState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let failed = |error: serde_json::Error| serde::ser::Error::custom(error);
        let mut line = serde_json::to_value(&self.record).map_err(failed)?;
        if let Value::Object(fields) = &mut line {
            let state = serde_json::to_value(&self.state).map_err(failed)?;
            fields.insert("state".to_owned(), state);
        }
        line.serialize(serializer)
    }
}

impl RunProjection {
    /// Returns the state of an event's session or run in this projection, with a live supervisor: one wrote the event.
    pub fn event_status(&self, event: &Event) -> SessionStatusSummary {
        let session = event.session().and_then(|id| self.session(Some(id)));
        match session {
            Some(session) => SessionStatusSummary::for_session(session, false),
            None => SessionStatusSummary::for_run(&self.summary, true),
        }
    }

    /// Applies the next event and returns it with the state after it.
    pub fn apply_with_state(&mut self, recorded: EventRecord) -> EventWithState {
        self.apply(&recorded);
        self.with_state(recorded)
    }

    /// Folds all events and returns each with the state after it; `None` if the starting event is missing.
    pub fn from_events_with_states(events: &[EventRecord]) -> Option<(Self, Vec<EventWithState>)> {
        let (first, rest) = events.split_first()?;
        let mut fold = Self::from_first_event(first)?;
        let mut with_states = vec![fold.with_state(first.clone())];
        for recorded in rest {
            with_states.push(fold.apply_with_state(recorded.clone()));
        }
        Some((fold, with_states))
    }

    /// Returns an event with the current state of its session or run.
    pub fn with_state(&self, recorded: EventRecord) -> EventWithState {
        EventWithState {
            state: self.event_status(&recorded.event),
            record: recorded,
        }
    }
}
