//! `[gateway.upstreams]`: the upstreams of the gateway.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::StreamForwardingMode;

/// `[gateway.upstreams]`: upstreams by protocol. Each is an address, a table, or a list of them: the first is
/// preferred, the others are fallbacks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayUpstreams {
    /// Anthropic's API and compatible ones.
    #[schemars(schema_with = "addresses")]
    pub anthropic: Vec<GatewayUpstreamSection>,
    /// OpenAI's API and compatible ones; the address ends with its `/v1`.
    #[schemars(schema_with = "addresses")]
    pub openai: Vec<GatewayUpstreamSection>,
    /// Google's Gemini API and compatible ones.
    #[schemars(schema_with = "addresses")]
    pub gemini: Vec<GatewayUpstreamSection>,
}

impl GatewayUpstreams {
    /// Returns the lists by protocol name.
    pub fn lists(&self) -> [(&'static str, &[GatewayUpstreamSection]); 3] {
        [
            ("anthropic", &self.anthropic),
            ("openai", &self.openai),
            ("gemini", &self.gemini),
        ]
    }
}

/// An upstream of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a URL or a table with `url`"
)]
pub struct GatewayUpstreamSection {
    /// Name in messages; the protocol and its index by default.
    pub name: Option<String>,
    /// Base URL that replaces the one a client would use.
    #[schemars(regex(pattern = "^https?://"))]
    pub url: String,
    /// Environment variable with the API key to use instead of the client's.
    pub key_env: Option<String>,
    /// Model names: the client's name and the upstream's.
    pub models: BTreeMap<String, String>,
    /// Missing capabilities.
    #[serde(rename = "unsupported")]
    pub missing: Vec<MissingUpstreamFeature>,
    /// Context size in tokens, if it is smaller than the model's.
    pub context: Option<u64>,
    /// Streaming mode, if it differs from `[gateway] stream`.
    pub stream: Option<StreamForwardingMode>,
}

/// A capability an upstream may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingUpstreamFeature {
    /// Tool calls.
    Tools,
    /// Image input.
    Vision,
    /// Continuing a partial response.
    Prefill,
}

fn addresses(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<GatewayUpstreamSection>();
    let one = json!({ "anyOf": [{ "type": "string", "pattern": "^https?://" }, table] });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}
