//! Those who are told when something happens.

use serde::Serialize;
use utoipa::ToSchema;

/// An address that is told when something happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its id in addresses.
    pub id: String,
    /// What it is told about: `escalation`, `resolved`, `recovered` or `run_finished`.
    #[serde(rename = "occasion")]
    pub event: String,
    /// Where to, without what is secret about it.
    pub target: String,
    /// How the message is written.
    pub format: String,
}

/// What came back when a webhook was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTestResult {
    /// Whether the message has arrived.
    #[serde(rename = "arrived")]
    pub delivered: bool,
    /// What came back, in words.
    #[serde(rename = "said")]
    pub response: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}
