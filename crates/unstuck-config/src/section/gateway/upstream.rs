//! `[gateway.upstreams]`: whom the gateway asks.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::StreamMode;

/// `[gateway.upstreams]`: whom the gateway asks, by protocol. Each is an address, a table, or a list of them: the first
/// is preferred, the others stand in for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayUpstreams {
    /// Anthropic's API, and what speaks the same.
    #[schemars(schema_with = "addresses")]
    pub anthropic: Vec<GatewayUpstream>,
    /// OpenAI's API, and what speaks the same; the address ends with its `/v1`.
    #[schemars(schema_with = "addresses")]
    pub openai: Vec<GatewayUpstream>,
    /// Google's Gemini API, and what speaks the same.
    #[schemars(schema_with = "addresses")]
    pub gemini: Vec<GatewayUpstream>,
}

impl GatewayUpstreams {
    /// The lists, by the names of their protocols.
    pub fn lists(&self) -> [(&'static str, &[GatewayUpstream]); 3] {
        [
            ("anthropic", &self.anthropic),
            ("openai", &self.openai),
            ("gemini", &self.gemini),
        ]
    }
}

/// One whom the gateway asks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "an address or a table with `url`"
)]
pub struct GatewayUpstream {
    /// What it is called in messages; the protocol and its number by default.
    pub name: Option<String>,
    /// What takes the place of the base URL that a client would be given.
    #[schemars(regex(pattern = "^https?://"))]
    pub url: String,
    /// The environment variable that holds the key which is used instead of the client's.
    pub key_env: Option<String>,
    /// What models are called there: the client's name and its own.
    pub models: BTreeMap<String, String>,
    /// What it cannot do.
    #[serde(rename = "unsupported")]
    pub missing: Vec<MissingCapability>,
    /// How many tokens fit into its context, where that is less than what the model has.
    pub context: Option<u64>,
    /// When what comes of its streams is passed on, where that differs from `[gateway] stream`.
    pub stream: Option<StreamMode>,
}

/// What an upstream cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingCapability {
    /// Call tools.
    Tools,
    /// See images.
    Vision,
    /// Go on with an answer that was begun for it.
    Prefill,
}

fn addresses(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<GatewayUpstream>();
    let one = json!({ "anyOf": [{ "type": "string", "pattern": "^https?://" }, table] });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}
