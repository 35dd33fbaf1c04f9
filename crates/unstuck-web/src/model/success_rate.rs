//! Learned success rates of strategies.

use serde::Serialize;
use unstuck_core::FailureKind;
use utoipa::ToSchema;

use super::openapi_schemas;

/// The learned success rate of a strategy for a kind of failure.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrategySuccessByKind {
    /// Kind of failure.
    #[schema(schema_with = openapi_schemas::kind)]
    pub kind: FailureKind,
    /// Strategy, or the level if the attempt was retried unchanged.
    pub strategy: String,
    /// Number of successes.
    pub succeeded: u32,
    /// Number of failures.
    pub failed: u32,
}
