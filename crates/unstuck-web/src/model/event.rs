//! An event of the log.

use serde::Serialize;
use serde_json::{Map, Value};
use unstuck_core::event::{Event, EventRecord};
use unstuck_core::views::SessionStatusSummary;
use unstuck_core::{FailureKind, Timestamp};
use utoipa::ToSchema;

use super::openapi_schemas;
use crate::camel_case;

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
    pub kind: Option<FailureKind>,
    /// Resulting state of its session in five fields, or of its run if it belongs to no session.
    #[schema(schema_with = openapi_schemas::session_status_or_null)]
    pub state: Option<SessionStatusSummary>,
    /// Event data. Fields are named as in the log, but in camelCase.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

impl EventResponse {
    /// Converts an event record with its id and the resulting state.
    pub fn from_record(
        id: u64,
        recorded: &EventRecord,
        state: Option<SessionStatusSummary>,
    ) -> Self {
        let mut data = fields_of(&recorded.event);
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

/// Returns the fields of an event with names in camelCase. The fields of an event of a newer version are unchanged.
fn fields_of(event: &Event) -> Map<String, Value> {
    if let Event::Unknown(unknown) = event {
        return unknown.fields.clone();
    }
    match camel_case::to_value(event) {
        Ok(Value::Object(fields)) => fields,
        // An event that cannot be serialized was never in the log.
        _ => Map::new(),
    }
}
