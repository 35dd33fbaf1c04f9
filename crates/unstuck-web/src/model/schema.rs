//! How values of the core are described in the OpenAPI document.

use serde_json::Value;
use unstuck_core::episode::Status;
use unstuck_core::event::EscalationKind;
use unstuck_core::{Kind, Level};
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

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
