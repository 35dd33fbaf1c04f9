//! How the server itself is.

use serde::Serialize;
use unstuck_core::Timestamp;
use utoipa::ToSchema;

/// The server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// What its clock shows.
    #[schema(value_type = String, format = DateTime)]
    pub now: Timestamp,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
}

/// The server can do its work: its store can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// `ready`.
    pub status: String,
}

/// Which program answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `unstuck`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the events that it writes.
    pub events: u32,
}
