//! What an owner accepted: the parts of guard files as they were then.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The parts of guard files that an owner accepted, by path from the root of the project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AcceptedParts(pub BTreeMap<String, AcceptedPart>);

/// One part as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedPart {
    /// The SHA-256 of the part, in hexadecimal digits.
    pub hash: String,
    /// Its text, cut and without secrets, so that a difference can be shown.
    #[serde(rename = "shown")]
    pub excerpt: String,
}

impl AcceptedParts {
    /// What was accepted of a file; none if nothing was.
    pub fn get(&self, path: &str) -> Option<&AcceptedPart> {
        self.0.get(path)
    }

    /// Whether nothing was accepted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Both, where the later one wins.
    pub fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}
