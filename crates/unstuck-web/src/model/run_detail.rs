//! A run with all that is in it.

use serde::Serialize;
use utoipa::ToSchema;

use super::api_call::ApiCall;
use super::model_switch::ModelSwitchResponse;
use super::run::{Run, Spending};
use super::session::SessionResponse;

/// A run with all that is in it but its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunDetail {
    /// The run at a glance.
    #[serde(flatten)]
    pub run: Run,
    /// The folder that it works in.
    pub cwd: String,
    /// The configuration file that its roles come from.
    pub config_path: Option<String>,
    /// Its sessions, in the order in which they began.
    pub sessions: Vec<SessionResponse>,
    /// The calls of LLM APIs that did not simply work and belong to no attempt.
    pub calls: Vec<ApiCall>,
    /// The changes of the model that belong to no attempt.
    pub model_changes: Vec<ModelSwitchResponse>,
    /// What its calls used, as the gateway counted it; null if it has made none.
    pub spent: Option<Spending>,
}
