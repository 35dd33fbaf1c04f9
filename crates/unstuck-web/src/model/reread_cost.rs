//! The cost of resuming an uncached conversation.

use std::fmt;

use serde::Serialize;
use unstuck_core::decision::RereadCost;
use utoipa::ToSchema;

use super::money::round_usd;

/// The cost of rereading a conversation that is no longer cached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RereadCostResponse {
    /// Length of the conversation in tokens.
    pub tokens: u64,
    /// Cost of rereading it in USD; null if the price is unknown.
    pub usd: Option<f64>,
}

impl From<RereadCost> for RereadCostResponse {
    fn from(cost: RereadCost) -> Self {
        Self {
            tokens: cost.tokens,
            usd: cost.usd.map(round_usd),
        }
    }
}

impl fmt::Display for RereadCostResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, usd } = *self;
        RereadCost { tokens, usd }.fmt(f)
    }
}
