//! A run with its sessions, calls and usage.

use serde::Serialize;
use utoipa::ToSchema;

use super::api_call::FailedOrRecoveredCallResponse;
use super::model_switch::ModelSwitchEntry;
use super::run::{RunSummaryResponse, UsageTotals};
use super::session::SessionResponse;

/// A run with everything except its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunDetail {
    /// Summary of the run.
    #[serde(flatten)]
    pub run: RunSummaryResponse,
    /// Working directory.
    pub cwd: String,
    /// Configuration file that defines its roles.
    pub config_path: Option<String>,
    /// Sessions, in order of their start.
    pub sessions: Vec<SessionResponse>,
    /// LLM API calls that needed recovery or failed and belong to no attempt.
    pub calls: Vec<FailedOrRecoveredCallResponse>,
    /// Model switches that belong to no attempt.
    pub model_changes: Vec<ModelSwitchEntry>,
    /// Usage of its calls as measured by the gateway; null if there were none.
    pub spent: Option<UsageTotals>,
}
