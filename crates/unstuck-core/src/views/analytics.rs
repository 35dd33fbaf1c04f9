//! Failure analytics aggregated over many attempts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::prompt_pattern::NormalizedPrompt;
use crate::time::Timestamp;

/// A group of attempts with the same analytics key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptGroupCount<'a> {
    /// The time when they ended, used by UTC day.
    pub at: Timestamp,
    /// The project root; empty if there is none.
    pub project: &'a str,
    /// The model; empty if unknown.
    pub model: &'a str,
    /// The failure kind; none if they did not fail.
    pub kind: Option<&'a str>,
    /// The number of attempts.
    pub count: u64,
}

/// A failure message with its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureMessageCount {
    /// The message, with variable parts masked.
    pub message: String,
    /// The number of occurrences.
    pub count: u64,
    /// The failure kind.
    pub error_type: String,
    /// The fingerprint of the failure.
    pub fingerprint: String,
    /// The time of the last occurrence.
    pub last_seen: Timestamp,
}

/// A prompt pattern with its failure count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NormalizedPromptFailureCount {
    /// The pattern.
    #[serde(flatten)]
    pub pattern: NormalizedPrompt,
    /// The number of failures.
    pub count: u64,
}

/// The attempt counts of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DailyAttemptCount {
    /// The number of failed attempts.
    pub failures: u64,
    /// The number of attempts.
    pub attempts: u64,
}

/// Failure counts by kind, model, project, prompt, message and day.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureAnalytics {
    /// The number of failed attempts.
    pub total_failures: u64,
    /// The number of attempts.
    pub total_attempts: u64,
    /// Failures by kind.
    pub by_error_type: BTreeMap<String, u64>,
    /// Failures by model, if known.
    pub by_model: BTreeMap<String, u64>,
    /// Failures by project root.
    pub by_project: BTreeMap<String, u64>,
    /// The prompts that failed most, most frequent first.
    pub by_prompt_pattern: Vec<NormalizedPromptFailureCount>,
    /// The most frequent messages, most frequent first.
    pub top_error_messages: Vec<FailureMessageCount>,
    /// The share of failed attempts, from 0 to 1, by day (UTC).
    pub failure_rate_by_day: BTreeMap<String, f64>,
    /// The same as counts.
    pub by_day: BTreeMap<String, DailyAttemptCount>,
}

impl FailureAnalytics {
    /// Adds attempts, successful or not: the daily rate needs both.
    pub fn record(&mut self, tried: &AttemptGroupCount<'_>) {
        // The day of an RFC 3339 timestamp is its first ten characters.
        let mut day = tried.at.to_string();
        day.truncate(10);
        let on_day = self.by_day.entry(day.clone()).or_default();
        on_day.attempts += tried.count;
        self.total_attempts += tried.count;
        if let Some(kind) = tried.kind {
            on_day.failures += tried.count;
            self.total_failures += tried.count;
            *self.by_error_type.entry(kind.to_owned()).or_default() += tried.count;
            for (by, name) in [
                (&mut self.by_model, tried.model),
                (&mut self.by_project, tried.project),
            ] {
                if !name.is_empty() {
                    *by.entry(name.to_owned()).or_default() += tried.count;
                }
            }
        }
        let rate = on_day.failures as f64 / on_day.attempts.max(1) as f64;
        self.failure_rate_by_day.insert(day, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(day: i64, kind: Option<&str>, count: u64) -> AttemptGroupCount<'_> {
        AttemptGroupCount {
            at: Timestamp::from_seconds(1_794_777_000 + day * 86_400),
            project: "/home/me/shop",
            model: "claude-sonnet-5-5",
            kind,
            count,
        }
    }

    /// S4-22: the analytics and their field names.
    #[test]
    fn failures_are_counted_by_kind_model_message_and_day() {
        let mut analytics = FailureAnalytics {
            top_error_messages: vec![FailureMessageCount {
                message: "slow down".into(),
                count: 2,
                error_type: "rate_limit".into(),
                fingerprint: "rate_limit:1".into(),
                last_seen: Timestamp::from_seconds(1_794_777_000),
            }],
            by_prompt_pattern: vec![NormalizedPromptFailureCount {
                pattern: NormalizedPrompt {
                    role: Some("builder".into()),
                    template: "Build <path>".into(),
                },
                count: 3,
            }],
            ..FailureAnalytics::default()
        };
        for tries in [
            tried(0, Some("rate_limit"), 2),
            tried(0, Some("timeout"), 1),
            tried(0, None, 1),
            tried(1, None, 1),
        ] {
            analytics.record(&tries);
        }
        assert_eq!(
            serde_json::to_value(&analytics).unwrap(),
            serde_json::json!({
                "totalFailures": 3,
                "totalAttempts": 5,
                "byErrorType": {"rate_limit": 2, "timeout": 1},
                "byModel": {"claude-sonnet-5-5": 3},
                "byProject": {"/home/me/shop": 3},
                "byPromptPattern": [{"role": "builder", "template": "Build <path>", "count": 3}],
                "topErrorMessages": [{
                    "message": "slow down", "count": 2, "errorType": "rate_limit",
                    "fingerprint": "rate_limit:1", "lastSeen": "2026-11-15T21:10:00Z"
                }],
                "failureRateByDay": {"2026-11-15": 0.75, "2026-11-16": 0.0},
                "byDay": {
                    "2026-11-15": {"failures": 3, "attempts": 4},
                    "2026-11-16": {"failures": 0, "attempts": 1}
                }
            })
        );
    }
}
