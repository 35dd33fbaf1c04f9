//! What is left to people.

use serde::Deserialize;

use crate::failure::Kind;
use crate::repair::pattern::Pattern;

/// A failure that is never repaired by a command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct Never {
    pub(in crate::repair) id: String,
    #[serde(default)]
    pub(in crate::repair) kinds: Vec<Kind>,
    #[serde(default)]
    pub(in crate::repair) any: Vec<Pattern>,
    #[serde(default)]
    pub(in crate::repair) none: Vec<Pattern>,
    pub(in crate::repair) reason: String,
}

/// A command that is never offered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct Forbidden {
    pub(in crate::repair) id: String,
    pub(in crate::repair) any: Vec<Pattern>,
    #[serde(default)]
    pub(in crate::repair) none: Vec<Pattern>,
    pub(in crate::repair) reason: String,
}
