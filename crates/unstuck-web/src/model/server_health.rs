//! Health, readiness and version of the server.

use serde::Serialize;
use unstuck_core::Timestamp;
use utoipa::ToSchema;

/// Liveness of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LivenessResponse {
    /// Always `ok`.
    pub status: String,
    /// Server time.
    #[schema(value_type = String, format = DateTime)]
    pub now: Timestamp,
    /// Start time of the server.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
}

/// Readiness of the server: its database can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessResponse {
    /// Always `ready`.
    pub status: String,
}

/// Name and version of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramVersionResponse {
    /// Always `unstuck`.
    pub name: String,
    /// Program version.
    pub version: String,
    /// Version of the event format it writes.
    pub events: u32,
}
