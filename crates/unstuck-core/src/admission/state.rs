//! How a lane is, for people who look at it.

use serde::Serialize;

use super::provider_limits::{LimitStatus, SubscriptionUsage};
use crate::decision::CircuitState;
use crate::time::Timestamp;

/// How a lane is at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionState {
    /// Whether the upstream is taken to be up.
    pub breaker: CircuitState,
    /// How many calls are on their way.
    pub in_flight: u32,
    /// How many calls may go in a second, while that is limited because of an overload.
    pub pace_per_second: Option<f64>,
    /// What is left of the limit on requests.
    pub requests: Option<LimitStatus>,
    /// What is left of the limit on tokens of either sort.
    pub tokens: Option<LimitStatus>,
    /// What is left of the limit on tokens of prompts.
    pub input_tokens: Option<LimitStatus>,
    /// What is left of the limit on tokens of answers.
    pub output_tokens: Option<LimitStatus>,
    /// How much of the subscription is used.
    #[serde(rename = "plan")]
    pub subscription: Option<SubscriptionUsage>,
    /// Until when everybody waits, since the server said so.
    pub cool_down_until: Option<Timestamp>,
    /// How many retries could go at once.
    pub retry_budget: f64,
    /// How long a call takes on average, in milliseconds.
    #[serde(rename = "usualTookMs")]
    pub average_duration_ms: f64,
    /// What has happened so far.
    pub counts: AdmissionCounts,
}

/// What has happened in a lane so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCounts {
    /// Calls that were sent.
    pub admitted: u64,
    /// Calls that were sent again, among them.
    pub retries: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that failed at a rate limit, among them.
    pub rate_limited: u64,
    /// Calls whose client went away.
    pub abandoned: u64,
    /// The tokens of the calls that were answered.
    pub tokens: u64,
}
