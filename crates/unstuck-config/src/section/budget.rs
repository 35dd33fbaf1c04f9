//! `[budget]`: what may be spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;

/// `[budget]`: what may be spent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct BudgetSection {
    /// In one run.
    pub per_run: BudgetAllowance,
    /// In the last 24 hours, by all runs that the store knows.
    pub per_day: BudgetAllowance,
}

/// What may be spent; no limit where left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table like { usd = 5.0 }")]
pub struct BudgetAllowance {
    /// Money, in USD.
    #[serde(deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub usd: Option<f64>,
    /// Tokens, sent and written.
    pub tokens: Option<u64>,
}

impl BudgetAllowance {
    /// Whether there is any limit.
    pub fn is_limited(&self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }
}
