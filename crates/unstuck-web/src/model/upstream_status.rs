//! The state of an upstream as seen by the gateway, per key and model: circuit breaker, limits and call counters.

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::admission::{self, AdmissionControllerState};
use unstuck_core::decision::CircuitState;
use utoipa::ToSchema;

/// The state of an upstream for one key and model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamStatus {
    /// Upstream.
    pub upstream: String,
    /// Model; empty if none was named.
    pub model: String,
    /// Circuit breaker state.
    pub breaker: BreakerStatus,
    /// Number of calls in flight.
    pub in_flight: u32,
    /// Allowed calls per second, while limited because of an overload.
    pub rate_per_second: Option<f64>,
    /// Remaining request limit.
    pub requests: Option<RemainingQuotaResponse>,
    /// Remaining limit on all tokens.
    pub tokens: Option<RemainingQuotaResponse>,
    /// Remaining limit on input tokens.
    pub input_tokens: Option<RemainingQuotaResponse>,
    /// Remaining limit on output tokens.
    pub output_tokens: Option<RemainingQuotaResponse>,
    /// Used share of the subscription.
    pub subscription: Option<SubscriptionUsage>,
    /// End of a cool-down that the server requested.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cool_down_until: Option<Timestamp>,
    /// Remaining retry budget, in calls.
    pub retry_budget: f64,
    /// Mean duration of a call, in milliseconds.
    pub mean_duration_ms: f64,
    /// Counters since the start.
    pub counts: UpstreamCallCounts,
}

impl UpstreamStatus {
    /// Creates the lane of an upstream and a model from its admission state.
    pub fn from_state(upstream: String, model: String, state: AdmissionControllerState) -> Self {
        let counts = state.counts;
        Self {
            upstream,
            model,
            breaker: state.breaker.into(),
            in_flight: state.in_flight,
            rate_per_second: state.pace_per_second,
            requests: state.requests.map(RemainingQuotaResponse::from),
            tokens: state.tokens.map(RemainingQuotaResponse::from),
            input_tokens: state.input_tokens.map(RemainingQuotaResponse::from),
            output_tokens: state.output_tokens.map(RemainingQuotaResponse::from),
            subscription: state.subscription.map(|plan| SubscriptionUsage {
                used_percent: plan.used_percent,
                reset: plan.reset,
                exhausted: plan.is_exhausted,
            }),
            cool_down_until: state.cool_down_until,
            retry_budget: state.retry_budget,
            mean_duration_ms: state.average_duration_ms,
            counts: UpstreamCallCounts {
                admitted: counts.admitted,
                retries: counts.retries,
                answered: counts.answered,
                failed: counts.failed,
                rate_limited: counts.rate_limited,
                abandoned: counts.abandoned,
                tokens: counts.tokens,
            },
        }
    }
}

/// The state of a circuit breaker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakerStatus {
    /// `closed` (all calls pass), `open` (no call passes) or `half_open` (one probe is in flight).
    pub state: String,
    /// Consecutive failures, while closed.
    pub failures: Option<u32>,
    /// Time when a probe may pass or is considered lost.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
}

impl From<CircuitState> for BreakerStatus {
    fn from(state: CircuitState) -> Self {
        let (name, failures, until) = match state {
            CircuitState::Closed { failures } => ("closed", Some(failures), None),
            CircuitState::Open { until, .. } => ("open", None, Some(until)),
            CircuitState::HalfOpen { until, .. } => ("half_open", None, Some(until)),
        };
        Self {
            state: name.to_owned(),
            failures,
            until,
        }
    }
}

/// The remaining quota of one provider limit.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemainingQuotaResponse {
    /// Full quota, if stated.
    pub limit: Option<u64>,
    /// Remaining quota.
    pub remaining: u64,
    /// Time when the full quota is available again.
    #[schema(value_type = String, format = DateTime)]
    pub reset: Timestamp,
}

impl From<admission::RemainingQuota> for RemainingQuotaResponse {
    fn from(window: admission::RemainingQuota) -> Self {
        Self {
            limit: window.limit,
            remaining: window.remaining,
            reset: window.reset,
        }
    }
}

/// The used share of a subscription's quota.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionUsage {
    /// Used share in percent.
    pub used_percent: f64,
    /// Time of the next reset.
    #[schema(value_type = String, format = DateTime)]
    pub reset: Timestamp,
    /// True if calls are refused until then.
    pub exhausted: bool,
}

/// Counters of the calls to an upstream.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamCallCounts {
    /// Calls sent.
    pub admitted: u64,
    /// Retries among them.
    pub retries: u64,
    /// Successful calls.
    pub answered: u64,
    /// Failed calls.
    pub failed: u64,
    /// Calls that failed at a rate limit.
    pub rate_limited: u64,
    /// Calls whose client disconnected.
    pub abandoned: u64,
    /// Tokens of the successful calls.
    pub tokens: u64,
}
