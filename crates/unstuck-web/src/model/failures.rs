//! Failure statistics and the list of failures.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::{FailureKind, Timestamp, views};
use unstuck_store::FailureRow;
use utoipa::ToSchema;

use super::openapi_schemas;

/// Failures by kind, model, project, prompt, message and day.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureAnalytics {
    /// Number of failed attempts.
    pub total_failures: u64,
    /// Number of attempts.
    pub total_attempts: u64,
    /// Failed attempts by kind of failure.
    pub by_error_type: BTreeMap<String, u64>,
    /// Failed attempts by model, if known.
    pub by_model: BTreeMap<String, u64>,
    /// Failed attempts by root directory of the project.
    pub by_project: BTreeMap<String, u64>,
    /// Prompts that failed, the most frequent first.
    pub by_prompt_pattern: Vec<PromptPatternCount>,
    /// Failure messages, the most frequent first.
    pub top_error_messages: Vec<FailureMessageCount>,
    /// Share of failed attempts from 0 to 1, by day (UTC).
    pub failure_rate_by_day: BTreeMap<String, f64>,
    /// Attempts and failures by day (UTC).
    pub by_day: BTreeMap<String, DailyAttemptCount>,
}

impl From<views::FailureAnalytics> for FailureAnalytics {
    fn from(analytics: views::FailureAnalytics) -> Self {
        let patterns = analytics.by_prompt_pattern.into_iter();
        let messages = analytics.top_error_messages.into_iter();
        let days = analytics.by_day.into_iter();
        Self {
            total_failures: analytics.total_failures,
            total_attempts: analytics.total_attempts,
            by_error_type: analytics.by_error_type,
            by_model: analytics.by_model,
            by_project: analytics.by_project,
            by_prompt_pattern: patterns.map(PromptPatternCount::from).collect(),
            top_error_messages: messages.map(FailureMessageCount::from).collect(),
            failure_rate_by_day: analytics.failure_rate_by_day,
            by_day: days.map(|(day, count)| (day, count.into())).collect(),
        }
    }
}

/// A prompt and its number of failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptPatternCount {
    /// Role in a pipeline.
    pub role: Option<String>,
    /// Prompt with variable parts masked.
    pub template: String,
    /// Number of failures.
    pub count: u64,
}

impl From<views::NormalizedPromptFailureCount> for PromptPatternCount {
    fn from(counted: views::NormalizedPromptFailureCount) -> Self {
        Self {
            role: counted.pattern.role,
            template: counted.pattern.template,
            count: counted.count,
        }
    }
}

/// A failure message and its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureMessageCount {
    /// Message with variable parts masked.
    pub message: String,
    /// Number of occurrences.
    pub count: u64,
    /// Kind of failure.
    pub error_type: String,
    /// Fingerprint that identifies the same failure.
    pub fingerprint: String,
    /// Time of the last occurrence.
    #[schema(value_type = String, format = DateTime)]
    pub last_seen: Timestamp,
}

impl From<views::FailureMessageCount> for FailureMessageCount {
    fn from(counted: views::FailureMessageCount) -> Self {
        Self {
            message: counted.message,
            count: counted.count,
            error_type: counted.error_type,
            fingerprint: counted.fingerprint,
            last_seen: counted.last_seen,
        }
    }
}

/// Attempts and failures of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DailyAttemptCount {
    /// Number of failed attempts.
    pub failures: u64,
    /// Number of attempts.
    pub attempts: u64,
}

impl From<views::DailyAttemptCount> for DailyAttemptCount {
    fn from(counted: views::DailyAttemptCount) -> Self {
        Self {
            failures: counted.failures,
            attempts: counted.attempts,
        }
    }
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureListItem {
    /// Time of the failure.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Id of the run.
    pub run: String,
    /// Id of the session.
    pub session: String,
    /// Number of the attempt in its session; for a call, the number of API attempts.
    pub attempt: u32,
    /// LLM API call, if a call of an unsupervised session failed.
    pub call: Option<String>,
    /// Root directory of the project; empty if there is none.
    pub project: String,
    /// Model, if known.
    pub model: Option<String>,
    /// Diagnosed kind of failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: FailureKind,
    /// Fingerprint that identifies the same failure.
    pub fingerprint: String,
    /// Message with variable parts masked.
    pub message: String,
}

impl From<FailureRow> for FailureListItem {
    fn from(line: FailureRow) -> Self {
        Self {
            at: line.at,
            run: line.run.as_str().to_owned(),
            session: line.session.as_str().to_owned(),
            attempt: line.attempt,
            call: line.call,
            project: line.project,
            model: line.model,
            kind: line.kind,
            fingerprint: line.fingerprint,
            message: line.message,
        }
    }
}
