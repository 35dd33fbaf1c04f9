//! How texts are read in general, as data (`data/reading.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::FailureStream;
use crate::failure::Layer;

/// What is known about texts of all kinds.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextRules {
    /// Tools that show what others wrote: what is on their standard output is content, not a failure.
    pub viewers: Vec<String>,
    /// Tools whose standard output is content when they end well, and may tell of a failure when they do not.
    pub reporters: Vec<String>,
    /// Lines that only warn or inform.
    pub noise: Vec<String>,
    /// Lines that talk of failures without reporting one: what they say does not count.
    #[serde(rename = "aside")]
    pub ignored_lines: Vec<IgnoredLines>,
    /// Lines that only point to something else, such as a log or a page of help, or that frame a message: they are not
    /// shown as evidence if there is a better one.
    pub pointer: Vec<String>,
    /// Lines with which a run admits that it failed although its exit code or status says that all is well.
    pub admission: Vec<FailureAdmission>,
    /// Named parts: `{name}` in a pattern below stands for the part's text.
    pub parts: BTreeMap<String, String>,
    /// Ways to state an HTTP status, with the group `deserialize_status`.
    pub status: Vec<String>,
    /// Ways to state how long to wait, with one of the groups `retry_delay`, `seconds`, `millis`, `epoch`, `clock`, `parse_date`, and perhaps `zone`.
    pub wait: Vec<String>,
}

/// Lines that talk of failures without reporting one, and where they stand.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IgnoredLines {
    /// The layers in which they do not count; empty means all.
    pub layer: Vec<Layer>,
    /// The streams in which they do not count; empty means all.
    pub stream: Vec<FailureStream>,
    /// The patterns, each between slashes.
    pub any: Vec<String>,
    /// Patterns that make a line count all the same.
    pub none: Vec<String>,
}

/// Lines that admit a failure, and where they count.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FailureAdmission {
    /// The layers in which they count.
    pub layer: Vec<Layer>,
    /// The streams in which they count; empty means all.
    pub stream: Vec<FailureStream>,
    /// The tools for which they count; empty means all.
    pub tool: Vec<String>,
    /// The patterns.
    pub any: Vec<String>,
    /// Patterns of what says that all is well in spite of them.
    pub none: Vec<String>,
}

impl TextRules {
    /// Puts the named parts into the patterns that use them.
    pub(crate) fn expand_named_parts(&mut self) {
        for pattern in self.status.iter_mut().chain(&mut self.wait) {
            for (name, part) in &self.parts {
                *pattern = pattern.replace(&format!("{{{name}}}"), part);
            }
        }
    }
}
