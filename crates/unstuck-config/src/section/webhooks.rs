//! `[webhooks]`: who is told what.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::duration;

/// `[webhooks]`: addresses that are told when something happens, each a text or a table.
///
/// Those of the user's and of the project's file count together: a project silences nobody.
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
    /// Whether addresses in private networks and on this machine may be told; false by default. Only the user's own
    /// configuration can say so.
    pub allow_private: bool,
    /// A command line that is run at each of the four occasions, with the message as JSON on its standard input.
    /// Only the user's own configuration can say so.
    pub notify_command: Option<String>,
    /// Whether questions and ends are shown on the desktop; false by default. Only the user's own configuration can
    /// say so.
    pub desktop: bool,
}

impl Webhooks {
    /// The keys that are no lists of addresses.
    pub(crate) const SINGLE: [&str; 3] = ["allow_private", "notify_command", "desktop"];

    /// The lists of addresses, by their keys.
    pub fn lists(&self) -> [(&'static str, &[Webhook]); 4] {
        [
            ("on_escalation", &self.on_escalation),
            ("on_resolved", &self.on_resolved),
            ("on_recovered", &self.on_recovered),
            ("on_run_finished", &self.on_run_finished),
        ]
    }
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "an address or a table with `url`"
)]
pub struct Webhook {
    /// Where to.
    #[schemars(regex(pattern = "^https?://"))]
    pub url: Option<String>,
    /// The environment variable that holds the address, where the address itself is secret. Like the other variables it
    /// counts only in the user's own configuration.
    pub url_env: Option<String>,
    /// How the message is written; JSON by default.
    pub format: WebhookFormat,
    /// The text of the message for the format `template`, with placeholders such as `{{ title }}`.
    pub template: Option<String>,
    /// What the text of a template is; `text/plain; charset=utf-8` by default.
    pub content_type: Option<String>,
    /// The environment variable that holds the secret by which messages are signed.
    pub secret_env: Option<String>,
    /// The environment variable that holds a token, which is sent as `Authorization: Bearer …`.
    pub token_env: Option<String>,
    /// How long one try may take; 10 seconds by default.
    #[serde(deserialize_with = "duration::read")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Duration,
    /// How long further messages about the same are collected into one; 10 minutes by default, `"0s"` sends each.
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

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// The message as JSON.
    #[default]
    Json,
    /// A message for Slack, and what understands the same.
    Slack,
    /// A message for Discord.
    Discord,
    /// A message for ntfy.
    Ntfy,
    /// Plain text.
    Text,
    /// What `template` says.
    Template,
}

fn addresses(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<Webhook>();
    let one = json!({ "anyOf": [{ "type": "string", "pattern": "^https?://" }, table] });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}
