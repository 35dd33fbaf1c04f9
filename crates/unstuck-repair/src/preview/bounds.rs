//! How much a preview may hold.

use serde::{Deserialize, Serialize};

use super::error::PreviewError;
use super::path::TreePath;

/// How much a preview may hold: 4 GiB in 500 000 entries by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// All files together.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
}

/// How deep folders may lie in each other. Each level costs handles.
const DEPTH: usize = 128;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 4 * 1024 * 1024 * 1024,
            entries: 500_000,
        }
    }
}

impl Bounds {
    pub(super) fn allow_bytes(&self, bytes: u64) -> Result<(), PreviewError> {
        match bytes > self.bytes {
            true => Err(PreviewError::TooMuch(format!(
                "more than {} MB",
                self.bytes / 1_000_000
            ))),
            false => Ok(()),
        }
    }

    pub(super) fn allow_entries(&self, entries: u64) -> Result<(), PreviewError> {
        match entries > self.entries {
            true => Err(PreviewError::TooMuch(format!(
                "more than {} files",
                self.entries
            ))),
            false => Ok(()),
        }
    }

    pub(super) fn allow_depth(&self, at: &TreePath, depth: usize) -> Result<(), PreviewError> {
        match depth > DEPTH {
            true => {
                let begin: String = at.shown().chars().take(60).collect();
                Err(PreviewError::TooMuch(format!(
                    "more than {DEPTH} folders in each other, in {begin}…"
                )))
            }
            false => Ok(()),
        }
    }
}
