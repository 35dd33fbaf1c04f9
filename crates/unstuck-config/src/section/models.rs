//! `[models]`: user-defined models, prices and ladders.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::number;

/// `[models]`: user-defined models, prices and ladders, which extend or replace the built-in ones.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ModelsSection {
    /// Models to add or change, by id.
    pub model: Vec<ModelEntry>,
    /// Ladders to add or replace, by id: models from the cheapest to the most capable.
    #[schemars(schema_with = "ladders")]
    pub ladder: Vec<unstuck_core::decision::ModelLadder>,
}

/// `[[models.model]]`: one model; unset values of a known model are kept.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ModelEntry {
    /// Model id in the provider's API.
    pub id: String,
    /// Provider.
    pub provider: Option<String>,
    /// Model family, across versions.
    pub family: Option<String>,
    /// Context window in tokens.
    pub context: Option<u64>,
    /// Maximum output in tokens.
    pub max_output: Option<u64>,
    /// Price.
    pub price: Option<ModelPrice>,
    /// Aliases.
    pub aliases: Option<Vec<String>>,
}

/// The price of a model, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table like { input = 1.0, output = 5.0 }"
)]
pub struct ModelPrice {
    /// Price of input tokens.
    #[serde(deserialize_with = "number::price")]
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Price of output tokens.
    #[serde(deserialize_with = "number::price")]
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Price of cached input tokens.
    #[serde(default, deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub cached: Option<f64>,
    /// Date of the price.
    #[serde(default)]
    pub as_of: String,
}

fn ladders(_: &mut SchemaGenerator) -> Schema {
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
