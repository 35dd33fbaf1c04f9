//! A model switch of a session.

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::decision::{ModelSwitch, ModelSwitchReason};
use utoipa::ToSchema;

use super::money::round_usd;

/// A model switch of a session.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelSwitchEntry {
    /// Previous model.
    pub from_model: String,
    /// New model.
    pub to_model: String,
    /// Reason: `manual`, `auto_after_retries` or `context_limit`.
    pub reason: String,
    /// Time of the switch.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// Expected extra cost in USD; null if a price is unknown.
    pub cost_estimate: Option<f64>,
}

impl From<ModelSwitch> for ModelSwitchEntry {
    fn from(change: ModelSwitch) -> Self {
        let reason = match change.reason {
            ModelSwitchReason::Manual => "manual",
            ModelSwitchReason::AutoAfterRetries => "auto_after_retries",
            ModelSwitchReason::ContextLimit => "context_limit",
        };
        Self {
            from_model: change.from_model,
            to_model: change.to_model,
            reason: reason.to_owned(),
            timestamp: change.timestamp,
            cost_estimate: change.cost_estimate.map(round_usd),
        }
    }
}
