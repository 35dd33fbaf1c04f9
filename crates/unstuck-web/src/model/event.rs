//! An event of the log.

use serde::Serialize;
use serde_json::{Map, Value};
use unstuck_core::event::EventRecord;
use unstuck_core::views::SessionStatus;
use unstuck_core::{Kind, Timestamp};
use utoipa::ToSchema;

use super::openapi_schemas;

/// An event of the log, as sent on the stream.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventResponse {
    /// Id among the events of all runs; later events have higher ids.
    pub id: u64,
    /// Id of the run.
    pub run: String,
    /// Sequence number in the run, from 1.
    pub seq: u64,
    /// Time of the event.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Event name, for example `attempt_failed`.
    pub event: String,
    /// Session it belongs to, if any.
    pub session: Option<String>,
    /// Kind of failure, if it is about one.
    #[schema(schema_with = openapi_schemas::kind_or_null)]
    pub kind: Option<Kind>,
    /// Resulting state of its session in five fields, or of its run if it belongs to no session.
    #[schema(schema_with = openapi_schemas::session_status_or_null)]
    pub state: Option<SessionStatus>,
    /// Event data, with the field names of the log.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

impl EventResponse {
    /// Converts an event record with its id and the resulting state.
    pub fn from_record(id: u64, recorded: &EventRecord, state: Option<SessionStatus>) -> Self {
        // An event that cannot be serialized was never in the log.
        let mut data = recorded.event.to_value().unwrap_or_default();
        data.shift_remove("event");
        Self {
            id,
            run: recorded.run.as_str().to_owned(),
            seq: recorded.seq,
            at: recorded.at,
            event: recorded.event.name().to_owned(),
            session: recorded
                .event
                .session()
                .map(|session| session.as_str().to_owned()),
            kind: recorded.event.kind(),
            state,
            data,
        }
    }
}
