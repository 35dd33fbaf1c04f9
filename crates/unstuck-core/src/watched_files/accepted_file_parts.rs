//! The baseline: the parts of watched files that the owner accepted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The accepted parts of watched files, by path relative to the project root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WatchedFileBaseline(pub BTreeMap<String, AcceptedWatchedFilePart>);

/// One accepted part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedWatchedFilePart {
    /// The SHA-256 of the part, in hexadecimal.
    pub hash: String,
    /// An excerpt of its text without secrets, for showing a difference.
    #[serde(rename = "shown")]
    pub excerpt: String,
}

impl WatchedFileBaseline {
    /// Returns the accepted part of a file; none if there is none.
    pub fn get(&self, path: &str) -> Option<&AcceptedWatchedFilePart> {
        self.0.get(path)
    }

    /// Returns true if nothing was accepted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Merges both; the later one wins.
    pub fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}
