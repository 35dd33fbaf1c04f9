//! What something is expected to cost more.

use serde::Serialize;
use unstuck_core::decision::{CostEstimate, EstimatedAmount};
use utoipa::ToSchema;

use super::money::round_usd;

/// What something is expected to cost more, and how that was worked out.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostEstimateResponse {
    /// The model so far, where the model changes.
    pub from_model: Option<String>,
    /// The model from then on, where the model changes.
    pub to_model: Option<String>,
    /// How much, in USD; negative where something becomes cheaper, null where it cannot be told.
    pub usd: Option<f64>,
    /// How it was worked out, or why it cannot be told.
    pub formula: String,
    /// What is kept, in one sentence; empty where nothing is said.
    #[serde(rename = "keeps")]
    pub preserved: String,
}

impl CostEstimateResponse {
    /// An estimate of the core, and from which model to which.
    pub fn from_estimate(cost: &CostEstimate, models: Option<(&str, &str)>) -> Self {
        Self {
            from_model: models.map(|(from, _)| from.to_owned()),
            to_model: models.map(|(_, to)| to.to_owned()),
            usd: match cost.amount {
                EstimatedAmount::Known(usd) => Some(round_usd(usd)),
                EstimatedAmount::Unknown { .. } => None,
            },
            formula: cost.formula.clone(),
            preserved: String::new(),
        }
    }
}
