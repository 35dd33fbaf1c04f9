//! A lane of the gateway: one upstream, key and model, as all sessions share it.

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::admission::{self, AdmissionState};
use unstuck_core::decision::CircuitState;
use utoipa::ToSchema;

/// A lane, and how it stands.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lane {
    /// The upstream.
    pub upstream: String,
    /// The model; empty where none was named.
    pub model: String,
    /// Whether the upstream is taken to be up.
    pub breaker: BreakerStatus,
    /// How many calls are on their way.
    pub in_flight: u32,
    /// How many calls may go in a second, while that is limited because of an overload.
    #[serde(rename = "pacePerSecond")]
    pub rate_per_second: Option<f64>,
    /// What is left of the limit on requests.
    pub requests: Option<LimitWindow>,
    /// What is left of the limit on tokens of either sort.
    pub tokens: Option<LimitWindow>,
    /// What is left of the limit on tokens of prompts.
    pub input_tokens: Option<LimitWindow>,
    /// What is left of the limit on tokens of answers.
    pub output_tokens: Option<LimitWindow>,
    /// How much of the subscription is used.
    #[serde(rename = "plan")]
    pub subscription: Option<SubscriptionUsage>,
    /// Until when everybody waits, since the server said so.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cool_down_until: Option<Timestamp>,
    /// How many retries could go at once.
    pub retry_budget: f64,
    /// How long a call takes on average, in milliseconds.
    #[serde(rename = "usualTookMs")]
    pub mean_duration_ms: f64,
    /// What has happened so far.
    pub counts: LaneCounts,
}

impl Lane {
    /// The lane of an upstream and a model.
    pub fn from_state(upstream: String, model: String, state: AdmissionState) -> Self {
        let counts = state.counts;
        Self {
            upstream,
            model,
            breaker: state.breaker.into(),
            in_flight: state.in_flight,
            rate_per_second: state.pace_per_second,
            requests: state.requests.map(LimitWindow::from),
            tokens: state.tokens.map(LimitWindow::from),
            input_tokens: state.input_tokens.map(LimitWindow::from),
            output_tokens: state.output_tokens.map(LimitWindow::from),
            subscription: state.subscription.map(|plan| SubscriptionUsage {
                used_percent: plan.used_percent,
                reset: plan.reset,
                exhausted: plan.is_exhausted,
            }),
            cool_down_until: state.cool_down_until,
            retry_budget: state.retry_budget,
            mean_duration_ms: state.average_duration_ms,
            counts: LaneCounts {
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

/// Whether an upstream is taken to be up.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakerStatus {
    /// `closed` (all goes through), `open_list` (nothing does) or `half_open` (one probe is on its way).
    pub state: String,
    /// Failures in a row so far, while it is closed.
    pub failures: Option<u32>,
    /// When a probe may go through, or counts as lost.
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

/// What is left of one thing that a provider limits.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitWindow {
    /// How much there is when nothing of it is used, where that is stated.
    pub limit: Option<u64>,
    /// How much is left.
    pub remaining: u64,
    /// When all of it is back.
    #[schema(value_type = String, format = DateTime)]
    pub reset: Timestamp,
}

impl From<admission::LimitStatus> for LimitWindow {
    fn from(window: admission::LimitStatus) -> Self {
        Self {
            limit: window.limit,
            remaining: window.remaining,
            reset: window.reset,
        }
    }
}

/// How much of a subscription's allowance is used.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionUsage {
    /// The used share in percent.
    pub used_percent: f64,
    /// When it begins anew.
    #[schema(value_type = String, format = DateTime)]
    pub reset: Timestamp,
    /// Whether calls are refused until then.
    #[serde(rename = "spent")]
    pub exhausted: bool,
}

/// What has happened in a lane so far.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaneCounts {
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
