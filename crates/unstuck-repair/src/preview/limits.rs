//! Size limits of previews.

use serde::{Deserialize, Serialize};

use super::error::PreviewError;
use super::tree_path::TreePath;

/// Size limits of a preview: 4 GiB in 500 000 entries by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewLimits {
    /// Total size of all files.
    pub bytes: u64,
    /// Number of files, directories and links.
    pub entries: u64,
}

/// Maximum directory depth. Each level costs handles.
const MAX_DEPTH: usize = 128;

impl Default for PreviewLimits {
    fn default() -> Self {
        Self {
            bytes: 4 * 1024 * 1024 * 1024,
            entries: 500_000,
        }
    }
}

impl PreviewLimits {
    pub(super) fn check_bytes(&self, bytes: u64) -> Result<(), PreviewError> {
        if bytes > self.bytes {
            Err(PreviewError::TooMuch(format!(
                "more than {} MB",
                self.bytes / 1_000_000
            )))
        } else {
            Ok(())
        }
    }

    pub(super) fn check_entries(&self, entries: u64) -> Result<(), PreviewError> {
        if entries > self.entries {
            Err(PreviewError::TooMuch(format!(
                "more than {} files",
                self.entries
            )))
        } else {
            Ok(())
        }
    }

    pub(super) fn check_depth(&self, at: &TreePath, depth: usize) -> Result<(), PreviewError> {
        if depth > MAX_DEPTH {
            let begin: String = at.display().chars().take(60).collect();
            Err(PreviewError::TooMuch(format!(
                "more than {MAX_DEPTH} nested directories in {begin}…"
            )))
        } else {
            Ok(())
        }
    }
}
