//! One event of the log.

use serde::Serialize;
use serde_json::{Map, Value};
use unstuck_core::event::EventRecord;
use unstuck_core::views::SessionStatus;
use unstuck_core::{Kind, Timestamp};
use utoipa::ToSchema;

use super::openapi_schemas;

/// One event of the log, as it is told on the stream.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventResponse {
    /// Its number among the events of all runs; later ones have higher ones.
    pub id: u64,
    /// Its run.
    pub run: String,
    /// Its number in that run, from 1.
    pub seq: u64,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What happened: `attempt_failed` for instance.
    pub event: String,
    /// The session that it belongs to, where it belongs to one.
    pub session: Option<String>,
    /// The kind of failure that it is about, where it is about one.
    #[schema(schema_with = openapi_schemas::kind_or_null)]
    pub kind: Option<Kind>,
    /// The state of its session after it, in five fields; of its run where it belongs to no session.
    #[schema(schema_with = openapi_schemas::session_status_or_null)]
    pub state: Option<SessionStatus>,
    /// All that it says, in the names of the log.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

impl EventResponse {
    /// An event under its number, and the state after it.
    pub fn from_record(id: u64, recorded: &EventRecord, state: Option<SessionStatus>) -> Self {
        // An event that cannot be written was never in the log.
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
