//! The stored trust decisions about one project.

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;
use unstuck_core::watched_files::WatchedFileBaseline;

/// Format version of the records.
pub(super) const RECORD_VERSION: u32 = 1;

/// The stored trust decisions about one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectTrustRecord {
    pub(super) version: u32,
    /// Path of the project.
    pub project: String,
    /// Inode of its directory, to detect that another directory is now in its place.
    pub(super) inode: u64,
    /// Trusted content, or `None` if only files were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "trusted")]
    pub trusted_content: Option<TrustedRepairPolicy>,
    /// Hash of a content that the owner declined to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "declined")]
    pub declined_hash: Option<String>,
    /// Hash of the project's other settings when they were trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "settings")]
    pub settings_hash: Option<String>,
    /// Accepted versions of the watched files.
    #[serde(default, skip_serializing_if = "WatchedFileBaseline::is_empty")]
    #[serde(alias = "files")]
    pub watched_files: WatchedFileBaseline,
}

/// The content of a project's `[recovery]` section that its owner trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedRepairPolicy {
    /// SHA-256 of the content.
    pub hash: String,
    /// The content itself, for showing a diff later.
    pub content: String,
    /// Timestamp of the decision.
    #[serde(alias = "at")]
    pub trusted_at: Timestamp,
    /// User who decided.
    #[serde(alias = "by")]
    pub trusted_by: String,
}
