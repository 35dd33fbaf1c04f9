//! How values of the core are described in the OpenAPI document.

use serde_json::Value;
use unstuck_core::diagnosis::WaitSource;
use unstuck_core::episode::{Actor, NextAction, Status};
use unstuck_core::event::EscalationKind;
use unstuck_core::{Kind, Level};
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, SchemaType, Type};

/// One of these names.
fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(all))
}

/// One of these names, or null.
fn names_or_null<'a>(all: impl IntoIterator<Item = &'a str>) -> ObjectBuilder {
    let all = all.into_iter().map(Value::from).chain([Value::Null]);
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(all))
}

fn kinds() -> impl Iterator<Item = &'static str> {
    Kind::ALL.iter().map(|kind| kind.name())
}

const LEVELS: [Level; 4] = [
    Level::Same,
    Level::Alternative,
    Level::Clarify,
    Level::Escalate,
];

pub(super) fn status() -> Object {
    names(Status::ALL.map(Status::name)).build()
}

/// The five fields of a session's state.
pub(super) fn session_status() -> Object {
    five_fields().build()
}

/// The five fields of a session's state, or null.
pub(super) fn session_status_or_null() -> Object {
    five_fields()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .build()
}

fn five_fields() -> ObjectBuilder {
    let next = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(
            "Who acts next and when; null if nothing is left to do.",
        ))
        .property("who", names(Actor::ALL.map(Actor::name)))
        .property("action", names(NextAction::ALL.map(NextAction::name)))
        .property("at", moment_or_null())
        .required("who")
        .required("action")
        .required("at");
    let reason = "The kind of failure that led to it; null if no failure did.";
    let source = "Where the end of the wait is known from, while there is one.";
    ObjectBuilder::new()
        .description(Some("The state of a session or run in five fields."))
        .property("state", names(Status::ALL.map(Status::name)))
        .property("reason", names_or_null(kinds()).description(Some(reason)))
        .property("until", moment_or_null())
        .property(
            "source",
            names_or_null(WaitSource::ALL.map(WaitSource::name)).description(Some(source)),
        )
        .property("next", next)
        .required("state")
        .required("reason")
        .required("until")
        .required("source")
        .required("next")
}

fn moment_or_null() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

pub(super) fn kind() -> Object {
    names(kinds()).build()
}

pub(super) fn kind_or_null() -> Object {
    names_or_null(kinds()).build()
}

pub(super) fn level() -> Object {
    names(LEVELS.map(Level::name)).build()
}

pub(super) fn level_or_null() -> Object {
    names_or_null(LEVELS.map(Level::name)).build()
}

pub(super) fn question() -> Object {
    names(EscalationKind::ALL.map(EscalationKind::name)).build()
}
