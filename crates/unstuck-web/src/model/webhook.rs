//! Webhooks.

use serde::Serialize;
use utoipa::ToSchema;

/// A configured webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Id used in URLs.
    pub id: String,
    /// Event that triggers it: `escalation`, `resolved`, `recovered` or `run_finished`.
    pub event: String,
    /// Target without secrets.
    pub target: String,
    /// Message format.
    pub format: String,
}

/// The result of a webhook test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTestResult {
    /// True if the message was delivered.
    pub delivered: bool,
    /// Response, as text.
    pub response: String,
    /// Duration in milliseconds.
    pub took_ms: u64,
}
