//! `[models]`: models, prices and ladders of one's own.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::number;

/// `[models]`: models, prices and ladders of one's own, added to the known ones or in their place.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Models {
    /// Models that are added or changed, by their id.
    pub model: Vec<ModelSection>,
    /// Ladders that are added or replaced, by their id: the models from the cheapest to the most capable.
    #[schemars(schema_with = "ladders")]
    pub ladder: Vec<unstuck_core::decision::ModelLadder>,
}

/// `[[models.model]]`: one model; what is left out of a known one stays.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ModelSection {
    /// The id by which the provider's API knows it.
    pub id: String,
    /// Who offers it.
    pub provider: Option<String>,
    /// The line it belongs to, across versions.
    pub family: Option<String>,
    /// How many tokens its context window holds.
    pub context: Option<u64>,
    /// How many tokens it can write at most.
    pub max_output: Option<u64>,
    /// What it costs.
    pub price: Option<ModelPrice>,
    /// Other names for it.
    pub aliases: Option<Vec<String>>,
}

/// What a model costs, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table like { input = 1.0, output = 5.0 }"
)]
pub struct ModelPrice {
    /// For what is sent.
    #[serde(deserialize_with = "number::price")]
    #[schemars(range(min = 0))]
    pub input: f64,
    /// For what is written.
    #[serde(deserialize_with = "number::price")]
    #[schemars(range(min = 0))]
    pub output: f64,
    /// For what is sent again and was kept.
    #[serde(default, deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub cached: Option<f64>,
    /// The day on which the price was looked up.
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
