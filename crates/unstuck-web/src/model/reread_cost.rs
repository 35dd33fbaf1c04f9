//! What it costs to wake a conversation.

use std::fmt;

use serde::Serialize;
use unstuck_core::decision::RereadCost;
use utoipa::ToSchema;

use super::money::round_usd;

/// The cost of reading a conversation again of which nothing is cached any more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RereadCostResponse {
    /// How long it is, in tokens.
    pub tokens: u64,
    /// What reading it costs, in USD; null where the price is unknown.
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
