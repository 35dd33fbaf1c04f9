//! What is remembered about one project.

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;
use unstuck_core::watched_files::AcceptedParts;

/// The form of records that this version writes and reads.
pub(super) const RECORD_VERSION: u32 = 1;

/// What is remembered about one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    pub(super) version: u32,
    /// The path of the project.
    pub project: String,
    /// The number of its folder, which tells it from another one that was put in its place.
    pub(super) inode: u64,
    /// The content that was trusted; none if only files were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "trusted")]
    pub trusted_content: Option<TrustedContent>,
    /// The hash of a content that its owner did not want to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "declined")]
    pub declined_hash: Option<String>,
    /// The hash of what else the project's files said when they were trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "settings")]
    pub settings_hash: Option<String>,
    /// The guard files as they were accepted.
    #[serde(default, skip_serializing_if = "AcceptedParts::is_empty")]
    #[serde(rename = "files")]
    pub watched_files: AcceptedParts,
}

/// A content that was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedContent {
    /// Its SHA-256.
    pub hash: String,
    /// The content itself, so that a difference can be told later.
    pub content: String,
    /// When it was trusted.
    #[serde(rename = "at")]
    pub trusted_at: Timestamp,
    /// By whom.
    #[serde(rename = "by")]
    pub trusted_by: String,
}
