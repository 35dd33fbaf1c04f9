//! `[budget]`: spending limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;

/// `[budget]`: spending limits.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct BudgetSection {
    /// Limit for one run.
    pub per_run: BudgetLimitSection,
    /// Limit for one day (UTC), over all runs in the store.
    pub per_day: BudgetLimitSection,
}

/// A spending limit; unlimited if unset.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table like { usd = 5.0 }")]
pub struct BudgetLimitSection {
    /// Cost in USD.
    #[serde(deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub usd: Option<f64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
}

impl BudgetLimitSection {
    /// Returns whether any limit is set.
    pub fn is_limited(&self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }
}
