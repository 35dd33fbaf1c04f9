//! A call of an LLM API that did not simply work.

use serde::Serialize;
use unstuck_core::views::{ApiCallSummary, FailedApiAttempt};
use unstuck_core::{Kind, Timestamp};
use utoipa::ToSchema;

use super::money::round_usd;
use super::openapi_schemas;

/// A call of an LLM API that did not simply work.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiCall {
    /// Its id.
    pub id: String,
    /// The tries that failed.
    #[serde(rename = "tries")]
    pub api_attempts: Vec<ApiAttempt>,
    /// What came of it; null while it goes on, or if nobody saw its end.
    pub outcome: Option<String>,
    /// The HTTP status that the client got.
    pub status: Option<u16>,
    /// The model that answered, or was asked last.
    pub model: Option<String>,
    /// How often an upstream was asked.
    pub attempts: Option<u32>,
    /// How long it took in all, in milliseconds.
    pub duration_ms: Option<u64>,
    /// What it cost, in USD, where that is known.
    pub cost_usd: Option<f64>,
}

impl From<ApiCallSummary> for ApiCall {
    fn from(story: ApiCallSummary) -> Self {
        let end = story.finished.as_ref();
        Self {
            id: story.id,
            api_attempts: story
                .failed_attempts
                .into_iter()
                .map(ApiAttempt::from)
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

/// One try that failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiAttempt {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The number of the try, from 1.
    pub number: u32,
    /// Who was asked.
    pub upstream: String,
    /// The model that was asked.
    pub model: Option<String>,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What it was found to be.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: Kind,
    /// What happened, in one sentence.
    pub message: String,
    /// What was decided, in one sentence.
    pub reason: String,
    /// Who was asked instead.
    pub fallback: Option<String>,
    /// Who could have been asked instead and was not, each with why, in one sentence.
    #[serde(rename = "passedOver")]
    pub skipped_upstreams: Vec<String>,
}

impl From<FailedApiAttempt> for ApiAttempt {
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
