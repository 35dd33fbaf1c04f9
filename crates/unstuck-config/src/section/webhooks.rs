//! `[webhooks]`: notification targets.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::duration;

/// `[webhooks]`: addresses to notify about events, each a string or a table.
///
/// Targets of the user's and the project's file are combined: a project cannot silence any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct WebhooksSection {
    /// Human input is needed.
    #[schemars(schema_with = "addresses")]
    pub on_escalation: Vec<Webhook>,
    /// A request was answered.
    #[schemars(schema_with = "addresses")]
    pub on_resolved: Vec<Webhook>,
    /// A run recovered from a failure.
    #[schemars(schema_with = "addresses")]
    pub on_recovered: Vec<Webhook>,
    /// A run finished.
    #[schemars(schema_with = "addresses")]
    pub on_run_finished: Vec<Webhook>,
    /// If true, addresses in private networks and on this machine are allowed; false by default. Only allowed in the
    /// user's own configuration.
    pub allow_private: bool,
    /// Command line to run for each of the four events, with the message as JSON on its standard input. Only allowed in
    /// the user's own configuration.
    pub notify_command: Option<String>,
    /// If true, requests and finished runs show desktop notifications; false by default. Only allowed in the user's own
    /// configuration.
    pub desktop: bool,
}

impl WebhooksSection {
    /// The keys that are not lists of addresses.
    pub(crate) const SINGLE: [&str; 3] = ["allow_private", "notify_command", "desktop"];

    /// Returns the lists of addresses, by key.
    pub fn lists(&self) -> [(&'static str, &[Webhook]); 4] {
        [
            ("on_escalation", &self.on_escalation),
            ("on_resolved", &self.on_resolved),
            ("on_recovered", &self.on_recovered),
            ("on_run_finished", &self.on_run_finished),
        ]
    }
}

/// A notification target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a URL or a table with `url`"
)]
pub struct Webhook {
    /// Address.
    #[schemars(regex(pattern = "^https?://"))]
    pub url: Option<String>,
    /// Environment variable with the address, if the address itself is secret. Like the other variables it is only
    /// allowed in the user's own configuration.
    pub url_env: Option<String>,
    /// Message format; JSON by default.
    pub format: WebhookFormat,
    /// Message text for the format `template`, with variables such as `{{ title }}`.
    pub template: Option<String>,
    /// Content type of a template; `text/plain; charset=utf-8` by default.
    pub content_type: Option<String>,
    /// Environment variable with the signing secret.
    pub secret_env: Option<String>,
    /// Environment variable with a token, sent as `Authorization: Bearer …`.
    pub token_env: Option<String>,
    /// Timeout of one delivery attempt; 10 seconds by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Duration,
    /// Time during which further messages about the same subject are collected into one; 10 minutes by default, `"0s"`
    /// sends each.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub digest: Duration,
}

impl Default for Webhook {
    fn default() -> Self {
        Self {
            url: None,
            url_env: None,
            format: WebhookFormat::Json,
            template: None,
            content_type: None,
            secret_env: None,
            token_env: None,
            timeout: Duration::from_secs(10),
            digest: Duration::from_secs(600),
        }
    }
}

/// The message format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// The message as JSON.
    #[default]
    Json,
    /// A message for Slack and compatible services.
    Slack,
    /// A message for Discord.
    Discord,
    /// A message for ntfy.
    Ntfy,
    /// Plain text.
    Text,
    /// The text of `template`.
    Template,
}

fn addresses(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Webhook>();
    let one = json!({ "anyOf": [{ "type": "string", "pattern": "^https?://" }, table] });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}
