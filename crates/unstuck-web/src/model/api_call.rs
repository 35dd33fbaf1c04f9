//! An LLM API call that needed recovery or failed.

use serde::Serialize;
use unstuck_core::views::{ApiCallRecoverySummary, FailedApiAttempt};
use unstuck_core::{FailureKind, Timestamp};
use utoipa::ToSchema;

use super::money::round_usd;
use super::openapi_schemas;

/// An LLM API call that needed recovery or failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedOrRecoveredCallResponse {
    /// Id of the call.
    pub id: String,
    /// The failed API attempts.
    pub api_attempts: Vec<FailedApiAttemptResponse>,
    /// Outcome; null while the call is running or if its end was not observed.
    pub outcome: Option<String>,
    /// HTTP status that the client got.
    pub status: Option<u16>,
    /// Model that answered, or the last one requested.
    pub model: Option<String>,
    /// Number of API attempts.
    pub attempts: Option<u32>,
    /// Total duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// Cost in USD, if known.
    pub cost_usd: Option<f64>,
}

impl From<ApiCallRecoverySummary> for FailedOrRecoveredCallResponse {
    fn from(story: ApiCallRecoverySummary) -> Self {
        let end = story.finished.as_ref();
        Self {
            id: story.id,
            api_attempts: story
                .failed_attempts
                .into_iter()
                .map(FailedApiAttemptResponse::from)
                .collect(),
            outcome: end.map(|end| end.outcome.name().to_owned()),
            status: end.map(|end| end.status),
            model: end.and_then(|end| end.model.clone()),
            attempts: end.map(|end| end.attempts),
            duration_ms: end.map(|end| end.duration_ms),
            cost_usd: end.and_then(|end| end.cost_usd).map(round_usd),
        }
    }
}

/// A failed API attempt.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedApiAttemptResponse {
    /// Time of the failure.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Number of the API attempt, from 1.
    pub number: u32,
    /// Upstream that was called.
    pub upstream: String,
    /// Requested model.
    pub model: Option<String>,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Diagnosed kind of failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: FailureKind,
    /// Description of the failure, in one sentence.
    pub message: String,
    /// Reason for the decision, in one sentence.
    pub reason: String,
    /// Upstream that was tried next instead.
    pub fallback: Option<String>,
    /// Upstreams that were skipped, each with the reason in one sentence.
    pub skipped_upstreams: Vec<String>,
}

impl From<FailedApiAttempt> for FailedApiAttemptResponse {
    fn from(failed: FailedApiAttempt) -> Self {
        Self {
            at: failed.at,
            number: failed.number,
            upstream: failed.upstream,
            model: failed.model,
            status: failed.status,
            kind: failed.kind,
            message: failed.message,
            reason: failed.reason,
            fallback: failed.fallback,
            skipped_upstreams: failed
                .skipped_upstreams
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }
}
