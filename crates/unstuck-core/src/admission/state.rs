//! The state of an admission controller, for display.

use serde::Serialize;

use super::response_rate_limits::{RemainingQuota, SubscriptionUsage};
use crate::decision::CircuitState;
use crate::time::Timestamp;

/// A snapshot of an admission controller.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionControllerState {
    /// The state of the circuit breaker.
    pub breaker: CircuitState,
    /// The number of calls in flight.
    pub in_flight: u32,
    /// The calls per second, while limited because of an overload.
    pub pace_per_second: Option<f64>,
    /// The remaining requests.
    pub requests: Option<RemainingQuota>,
    /// The remaining tokens of both kinds.
    pub tokens: Option<RemainingQuota>,
    /// The remaining input tokens.
    pub input_tokens: Option<RemainingQuota>,
    /// The remaining output tokens.
    pub output_tokens: Option<RemainingQuota>,
    /// The usage of the subscription.
    #[serde(rename = "plan")]
    pub subscription: Option<SubscriptionUsage>,
    /// The end of a cool-down stated by the server.
    pub cool_down_until: Option<Timestamp>,
    /// The number of retries available at once.
    pub retry_budget: f64,
    /// The average duration of a call, in milliseconds.
    #[serde(rename = "usualTookMs")]
    pub average_duration_ms: f64,
    /// The counts so far.
    pub counts: ApiAdmissionTotals,
}

/// The counts of an admission controller so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiAdmissionTotals {
    /// Calls that were sent.
    pub admitted: u64,
    /// Retries; included in `admitted`.
    pub retries: u64,
    /// Calls that succeeded.
    pub answered: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that failed at a rate limit; included in `failed`.
    pub rate_limited: u64,
    /// Calls whose client disconnected.
    pub abandoned: u64,
    /// The tokens of successful calls.
    pub tokens: u64,
}
