//! What failures say together, and one by one.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::{Kind, Timestamp, views};
use unstuck_store::FailureRow;
use utoipa::ToSchema;

use super::openapi_schemas;

/// Failures by kind, model, project, prompt, message and day.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureAnalytics {
    /// How many tries failed.
    pub total_failures: u64,
    /// How many tries there were.
    pub total_attempts: u64,
    /// How many failed, by the kind of failure.
    pub by_error_type: BTreeMap<String, u64>,
    /// How many failed, by model, as far as it is known.
    pub by_model: BTreeMap<String, u64>,
    /// How many failed, by the root folder of the project.
    pub by_project: BTreeMap<String, u64>,
    /// The prompts that failed most, the most frequent first.
    pub by_prompt_pattern: Vec<PromptPatternCount>,
    /// What was said most, the most frequent first.
    pub top_error_messages: Vec<FailureMessageCount>,
    /// The share of tries that failed, from 0 to 1, by day (UTC).
    pub failure_rate_by_day: BTreeMap<String, f64>,
    /// The same as numbers.
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

/// A prompt and how often it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptPatternCount {
    /// The role in a pipeline.
    pub role: Option<String>,
    /// The prompt, with what varies masked.
    pub template: String,
    /// How often it failed.
    pub count: u64,
}

impl From<views::PromptPatternCount> for PromptPatternCount {
    fn from(counted: views::PromptPatternCount) -> Self {
        Self {
            role: counted.pattern.role,
            template: counted.pattern.template,
            count: counted.count,
        }
    }
}

/// What was said when something failed, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureMessageCount {
    /// What was said, with what varies masked.
    pub message: String,
    /// How often it came.
    pub count: u64,
    /// The kind of the failure.
    pub error_type: String,
    /// Recognises the same failure again.
    pub fingerprint: String,
    /// When it came last.
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

/// What was tried on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DailyAttemptCount {
    /// How many tries failed.
    pub failures: u64,
    /// How many tries there were.
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

/// One failure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureListItem {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The run.
    pub run: String,
    /// The session.
    pub session: String,
    /// The number of the attempt in its session; of a call, how often an upstream was asked.
    pub attempt: u32,
    /// The call of an LLM API, where one failed of a session that nobody drives.
    pub call: Option<String>,
    /// The root folder of the project; empty where there is none.
    pub project: String,
    /// The model, as far as it is known.
    pub model: Option<String>,
    /// What it was found to be.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: Kind,
    /// Recognises the same failure again.
    pub fingerprint: String,
    /// What was said, with what varies masked.
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
