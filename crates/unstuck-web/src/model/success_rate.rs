//! What was learned: how often each strategy helped against each kind.

use serde::Serialize;
use unstuck_core::Kind;
use utoipa::ToSchema;

use super::openapi_schemas;

/// How often a strategy helped against a kind of failure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrategySuccessRate {
    /// The kind of failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: Kind,
    /// The strategy, or the level where the same was tried again.
    pub strategy: String,
    /// How often it helped.
    pub worked: u32,
    /// How often it did not.
    pub failed: u32,
}
