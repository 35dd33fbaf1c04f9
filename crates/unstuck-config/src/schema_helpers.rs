//! JSON Schema parts that several sections share and that cannot be derived.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use unstuck_core::Kind;
use unstuck_core::decision::templates;

/// Returns the schema of a table keyed by kind.
pub(crate) fn kind_table<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    let kinds: serde_json::Map<_, _> = Kind::ALL
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
        ("template", json!({ "type": "string", "examples": ids, "description": "The policy that this one changes." })),
        ("id", json!({ "type": "string" })),
        ("name", json!({ "type": "string" })),
        ("description", json!({ "type": "string" })),
        ("enabled", json!({ "type": "boolean", "description": "Whether anything is done at all." })),
        ("retryableErrors", json!({ "type": "array", "items": { "type": "string" }, "description": "The kinds that are repeated unchanged; empty means all that are transient." })),
        ("autoEscalate", json!({ "type": "boolean", "description": "Whether the model may be changed without asking." })),
        ("escalateAfterRetries", json!({ "type": "integer", "minimum": 0, "description": "After how many retries the model is changed before anything else is tried." })),
        ("giveUpAfter", json!({ "type": ["string", "null"], "description": "How long a transient kind is repeated without progress, such as 30m; without it maxRetries counts." })),
        ("maxElapsed", json!({ "type": ["string", "null"], "description": "How long recovery may take, such as 6h." })),
        ("maxWait", json!({ "type": ["string", "null"], "description": "The longest stated wait that is waited for without asking, such as 6h." })),
        ("maxCost", json!({ "type": ["number", "null"], "minimum": 0, "description": "What a session may cost, in USD." })),
        ("confirmAbove", json!({ "type": ["number", "null"], "minimum": 0, "description": "What dearer models may cost more in a session, in USD, before a person is asked." })),
        ("kinds", json!({ "type": "object", "additionalProperties": one, "description": "What holds for single kinds." })),
        ("tools", json!({ "type": "object", "additionalProperties": one, "description": "What holds for single tools." })),
    ]);
    schema_of(table_in_both_spellings(&keys))
}

/// Returns the keys valid for a policy and for single kinds and tools.
fn override_keys() -> Vec<(&'static str, Value)> {
    let seconds = |what: &str| json!({ "type": "number", "minimum": 0, "description": what });
    vec![
        (
            "maxRetries",
            json!({ "type": "integer", "minimum": 0, "maximum": 1000, "description": "How many retries there are after the first try." }),
        ),
        (
            "maxAttempts",
            json!({ "type": "integer", "minimum": 1, "maximum": 1000, "description": "The same, with the first try." }),
        ),
        ("backoffBase", seconds("The first wait, in seconds.")),
        (
            "backoffMultiplier",
            seconds("What each wait is multiplied by."),
        ),
        ("maxBackoff", seconds("The longest wait, in seconds.")),
        (
            "curve",
            json!({ "enum": ["exponential", "linear", "fixed"], "description": "How waits grow." }),
        ),
        (
            "jitter",
            json!({ "enum": ["none", "full", "equal", "decorrelated"], "description": "How waits are spread." }),
        ),
        (
            "timeoutMultiplier",
            seconds("What the allowed time is multiplied by where a strategy lengthens it."),
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
