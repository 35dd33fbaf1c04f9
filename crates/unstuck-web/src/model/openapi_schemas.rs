//! OpenAPI schemas of core types.

use serde_json::Value;
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::EscalationKind;
use unstuck_core::views::{NextActionActor, RunStatus, SessionNextAction};
use unstuck_core::{FailureKind, RecoveryLevel};
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, SchemaType, Type};

/// Returns the schema of a string enum with these values.
fn string_enum<'a>(all: impl IntoIterator<Item = &'a str>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(all))
}

/// Returns the schema of a nullable string enum with these values.
fn nullable_string_enum<'a>(all: impl IntoIterator<Item = &'a str>) -> ObjectBuilder {
    let all = all.into_iter().map(Value::from).chain([Value::Null]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(all))
}

fn kinds() -> impl Iterator<Item = &'static str> {
    FailureKind::ALL.iter().map(|kind| kind.name())
}

const LEVELS: [RecoveryLevel; 4] = [
    RecoveryLevel::Same,
    RecoveryLevel::Alternative,
    RecoveryLevel::Clarify,
    RecoveryLevel::Escalate,
];

pub(super) fn status() -> Object {
    string_enum(RunStatus::ALL.map(RunStatus::name)).build()
}

/// Returns the schema of a session status: five fields.
pub(super) fn session_status() -> Object {
    session_status_builder().build()
}

/// Returns the schema of a nullable session status.
pub(super) fn session_status_or_null() -> Object {
    session_status_builder()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .build()
}

fn session_status_builder() -> ObjectBuilder {
    let next = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(
            "Next actor, action and time; null if nothing is left to do.",
        ))
        .property(
            "actor",
            string_enum(NextActionActor::ALL.map(NextActionActor::name)),
        )
        .property(
            "action",
            string_enum(SessionNextAction::ALL.map(SessionNextAction::name)),
        )
        .property("at", timestamp_or_null())
        .required("actor")
        .required("action")
        .required("at");
    let reason = "Kind of failure that caused the state; null if there was none.";
    let source = "Source of the end of the wait; null if there is no wait.";
    ObjectBuilder::new()
        .description(Some("The state of a session or run in five fields."))
        .property("state", string_enum(RunStatus::ALL.map(RunStatus::name)))
        .property(
            "reason",
            nullable_string_enum(kinds()).description(Some(reason)),
        )
        .property("until", timestamp_or_null())
        .property(
            "source",
            nullable_string_enum(RetryAfterSource::ALL.map(RetryAfterSource::name))
                .description(Some(source)),
        )
        .property("next", next)
        .required("state")
        .required("reason")
        .required("until")
        .required("source")
        .required("next")
}

fn timestamp_or_null() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

pub(super) fn kind() -> Object {
    string_enum(kinds()).build()
}

pub(super) fn kind_or_null() -> Object {
    nullable_string_enum(kinds()).build()
}

pub(super) fn level() -> Object {
    string_enum(LEVELS.map(RecoveryLevel::name)).build()
}

pub(super) fn level_or_null() -> Object {
    nullable_string_enum(LEVELS.map(RecoveryLevel::name)).build()
}

pub(super) fn escalation_kind() -> Object {
    string_enum(EscalationKind::ALL.map(EscalationKind::name)).build()
}
