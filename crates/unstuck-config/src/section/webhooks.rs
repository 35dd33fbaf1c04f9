//! `[webhooks]`: who is told what.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// `[webhooks]`: addresses that are told when something happens, each a text or a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Webhooks {
    /// A person is asked something.
    #[schemars(schema_with = "addresses")]
    pub on_escalation: Vec<Webhook>,
    /// A question was answered.
    #[schemars(schema_with = "addresses")]
    pub on_resolved: Vec<Webhook>,
    /// A failure was recovered from.
    #[schemars(schema_with = "addresses")]
    pub on_recovered: Vec<Webhook>,
    /// A run ended.
    #[schemars(schema_with = "addresses")]
    pub on_run_finished: Vec<Webhook>,
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an address or a table with `url`")]
pub struct Webhook {
    /// Where to.
    #[schemars(regex(pattern = "^https?://"))]
    pub url: String,
    /// How the message is written; JSON by default.
    #[serde(default)]
    pub format: WebhookFormat,
    /// The environment variable that holds the secret by which messages are signed.
    pub secret_env: Option<String>,
}

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// The event as JSON.
    #[default]
    Json,
    /// A message for Slack.
    Slack,
    /// A message for Discord.
    Discord,
    /// Plain text.
    Text,
}

fn addresses(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Webhook>();
    let one = json!({ "anyOf": [{ "type": "string", "pattern": "^https?://" }, table] });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}
