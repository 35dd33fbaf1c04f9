//! Stage 6: read models of runs and sessions, and analytics over many of them.

mod analytics;
mod api_call_summary;
mod event_with_state;
mod prompt_pattern;
mod run_projection;
mod run_summary;
mod run_timeline;
mod session_status;
mod session_summary;
mod usage_gaps;
mod wait_state;

pub use analytics::{
    AttemptGroupCount, DailyAttemptCount, FailureAnalytics, FailureMessageCount,
    NormalizedPromptFailureCount,
};
pub use api_call_summary::{ApiCallRecoverySummary, FailedApiAttempt};
pub use event_with_state::EventWithState;
pub use prompt_pattern::NormalizedPrompt;
pub use run_projection::RunProjection;
pub use run_summary::{RunStatus, RunSummary};
pub use run_timeline::{AttemptOutcome, AttemptView, RepairView, RunTimeline};
pub use session_status::{
    NextActionActor, NextActionAndTime, SessionNextAction, SessionStatusSummary,
};
pub use session_summary::SessionSummary;
pub use usage_gaps::UsageGap;
pub use wait_state::{HeldApiCall, WaitState};

use serde::{Deserialize, Serialize};

use crate::failure::RecoveryLevel;
use crate::time::Timestamp;

/// One line of `episodes.jsonl`: the attempts for one goal and their outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalEpisodeRecord {
    /// The id of the episode.
    pub episode_id: String,
    /// The time of the end.
    pub timestamp: Timestamp,
    /// The goal, run or role.
    pub goal_id: String,
    /// True if it succeeded.
    pub success: bool,
    /// The cost in USD.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The duration.
    #[serde(default)]
    pub duration_seconds: f64,
    /// The triggers of its escalations.
    #[serde(default)]
    pub checkpoints_triggered: Vec<String>,
    /// The error, if it did not succeed.
    #[serde(default)]
    pub error: Option<String>,
    /// Other notes.
    #[serde(default)]
    pub notes: Option<String>,
    /// The number of retries; 0 in older records without it.
    #[serde(default)]
    pub retry_count: u32,
    /// The highest recovery level reached; none in older records without it.
    #[serde(default)]
    pub recovery_level: Option<RecoveryLevel>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S0-16: records from before the two fields load with their defaults.
    #[test]
    fn older_records_load_without_retry_count_and_recovery_level() {
        let line = r#"{"episode_id":"e1","timestamp":"2026-11-15T21:30:00Z","goal_id":"g","success":true,
            "cost_usd":0.5,"duration_seconds":12.5,"checkpoints_triggered":[],"error":null,"notes":"fine"}"#;
        let episode: GoalEpisodeRecord = serde_json::from_str(line).unwrap();
        assert_eq!((episode.retry_count, episode.recovery_level), (0, None));
        assert_eq!(episode.notes.as_deref(), Some("fine"));
    }

    /// S0-16: the two fields are written with their agreed names and values.
    #[test]
    fn new_records_hold_the_count_and_the_level() {
        let line = r#"{"episode_id":"e1","timestamp":"2026-11-15T21:30:00Z","goal_id":"g","success":false,
            "retry_count":3,"recovery_level":"escalate"}"#;
        let episode: GoalEpisodeRecord = serde_json::from_str(line).unwrap();
        let json = serde_json::to_value(&episode).unwrap();
        assert_eq!(json["retry_count"], 3);
        assert_eq!(json["recovery_level"], "escalate");
        assert_eq!(json["error"], serde_json::Value::Null);
    }
}
