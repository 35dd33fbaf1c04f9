//! An estimate of extra cost.

use serde::Serialize;
use unstuck_core::decision::{CostEstimate, PossiblyUnknownAmount};
use utoipa::ToSchema;

use super::money::round_usd;

/// An estimate of extra cost and how it was calculated.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtraCostEstimateResponse {
    /// Current model, if the model changes.
    pub from_model: Option<String>,
    /// New model, if the model changes.
    pub to_model: Option<String>,
    /// Extra cost in USD; negative if it gets cheaper, null if unknown.
    pub usd: Option<f64>,
    /// Formula, or the reason why the cost is unknown.
    pub formula: String,
    /// Preserved state, in one sentence; may be empty.
    pub preserved: String,
}

impl ExtraCostEstimateResponse {
    /// Converts a core estimate and the model switch it belongs to.
    pub fn from_estimate(cost: &CostEstimate, models: Option<(&str, &str)>) -> Self {
        Self {
            from_model: models.map(|(from, _)| from.to_owned()),
            to_model: models.map(|(_, to)| to.to_owned()),
            usd: match cost.amount {
                PossiblyUnknownAmount::Known(usd) => Some(round_usd(usd)),
                PossiblyUnknownAmount::Unknown { .. } => None,
            },
            formula: cost.formula.clone(),
            preserved: String::new(),
        }
    }
}
