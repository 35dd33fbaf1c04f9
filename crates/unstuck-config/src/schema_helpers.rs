//! JSON Schema parts that several sections share and that cannot be derived.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use unstuck_core::FailureKind;
use unstuck_core::decision::templates;

/// Returns the schema of a table keyed by kind.
pub(crate) fn kind_table<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    let kinds: serde_json::Map<_, _> = FailureKind::ALL
        .iter()
        .map(|kind| (kind.name().to_owned(), one.clone().to_value()))
        .collect();
    // Aliases of a kind are accepted, but editors need not suggest them.
    json_schema!({ "type": "object", "properties": kinds, "additionalProperties": one })
}

/// Returns the schema of a policy: changes to the template that it names.
pub(crate) fn policy(_: &mut SchemaGenerator) -> Schema {
    let ids: Vec<_> = templates().iter().map(|one| one.id.as_str()).collect();
    let one = table_in_both_spellings(&override_keys());
    let mut keys = override_keys();
    keys.retain(|(key, _)| *key != "timeoutMultiplier");
    keys.extend([
        ("template", json!({ "type": "string", "examples": ids, "description": "The policy template to start from; the other keys change its values." })),
        ("id", json!({ "type": "string" })),
        ("name", json!({ "type": "string" })),
        ("description", json!({ "type": "string" })),
        ("enabled", json!({ "type": "boolean", "description": "If false, nothing is retried or repaired." })),
        ("retryableErrors", json!({ "type": "array", "items": { "type": "string" }, "description": "The kinds that are retried unchanged; all transient kinds where empty." })),
        ("autoEscalate", json!({ "type": "boolean", "description": "If true, the model can be switched without approval." })),
        ("escalateAfterRetries", json!({ "type": "integer", "minimum": 0, "description": "The number of retries after which a model switch is the preferred strategy." })),
        ("giveUpAfter", json!({ "type": ["string", "null"], "description": "The maximum time without progress for which a transient kind is retried, such as 30m; maxRetries applies where unset." })),
        ("maxElapsed", json!({ "type": ["string", "null"], "description": "The maximum duration of recovery, such as 6h." })),
        ("maxWait", json!({ "type": ["string", "null"], "description": "The longest stated wait that needs no approval, such as 6h." })),
        ("maxCost", json!({ "type": ["number", "null"], "minimum": 0, "description": "The maximum cost of a session, in USD." })),
        ("confirmAbove", json!({ "type": ["number", "null"], "minimum": 0, "description": "The maximum extra cost of more expensive models in a session without approval, in USD." })),
        ("kinds", json!({ "type": "object", "additionalProperties": one, "description": "Overrides for single kinds." })),
        ("tools", json!({ "type": "object", "additionalProperties": one, "description": "Overrides for single tools." })),
    ]);
    schema_of(table_in_both_spellings(&keys))
}

/// Returns the keys valid for a policy and for single kinds and tools.
fn override_keys() -> Vec<(&'static str, Value)> {
    let seconds = |what: &str| json!({ "type": "number", "minimum": 0, "description": what });
    vec![
        (
            "maxRetries",
            json!({ "type": "integer", "minimum": 0, "maximum": 1000, "description": "The maximum number of retries after the first attempt." }),
        ),
        (
            "maxAttempts",
            json!({ "type": "integer", "minimum": 1, "maximum": 1000, "description": "The maximum number of attempts, including the first." }),
        ),
        ("backoffBase", seconds("The first delay, in seconds.")),
        (
            "backoffMultiplier",
            seconds("The factor by which each delay grows."),
        ),
        ("maxBackoff", seconds("The maximum delay, in seconds.")),
        (
            "curve",
            json!({ "enum": ["exponential", "linear", "fixed"], "description": "The growth of delays." }),
        ),
        (
            "jitter",
            json!({ "enum": ["none", "full", "equal", "decorrelated"], "description": "The random variation of delays." }),
        ),
        (
            "timeoutMultiplier",
            seconds("The factor by which a strategy lengthens a timeout."),
        ),
    ]
}

/// Returns the schema of a table with these keys, each also in snake case.
fn table_in_both_spellings(keys: &[(&str, Value)]) -> Value {
    let mut properties = serde_json::Map::new();
    for (key, schema) in keys {
        properties.insert(snake(key), schema.clone());
        properties.insert((*key).to_owned(), schema.clone());
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn snake(key: &str) -> String {
    let mut text = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

fn schema_of(value: Value) -> Schema {
    Schema::try_from(value).unwrap_or_default()
}

/// Returns the schema of a policy or a policy name.
pub(crate) fn policy_or_name(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "string" }, policy(generator)] })
}

/// Returns the schema of a string or a table.
pub(crate) fn text_or_table<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [{ "type": "string" }, table] })
}

/// Adds an alias of a key.
pub(crate) fn add_alias(schema: &mut Schema, other: &str, key: &str) {
    let known = schema.pointer(&format!("/properties/{key}")).cloned();
    add_property(schema, other, known.unwrap_or(Value::Bool(true)));
}

/// Adds a property.
pub(crate) fn add_property(schema: &mut Schema, key: &str, value: Value) {
    let object = schema.ensure_object();
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(key.to_owned(), value);
    }
}
