//! Rules for reading failure texts that hold for every kind, as data (`data/text_rules.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::FailureTextSource;
use crate::failure::FailureLayer;

/// Rules for reading failure texts that hold for every kind.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SharedTextRules {
    /// Tools that display files: their stdout is content, not a failure.
    pub viewers: Vec<String>,
    /// Tools whose stdout is content on success, but may report a failure otherwise.
    pub reporters: Vec<String>,
    /// Lines that are only warnings or information.
    pub noise: Vec<String>,
    /// Lines that mention failures without reporting one, and are ignored.
    pub ignored_lines: Vec<IgnoredLineRule>,
    /// Lines that only point to something else, such as a log or a help page, or frame a message: not shown as evidence
    /// if there is a better line.
    pub pointer: Vec<String>,
    /// Lines with which a run admits its failure although its exit code or status reports success.
    pub admission: Vec<HiddenFailureLineRule>,
    /// Named parts: `{name}` in a pattern below is replaced by the part's text.
    pub parts: BTreeMap<String, String>,
    /// Patterns of a stated HTTP status, with the group `status`.
    pub status: Vec<String>,
    /// Patterns of a stated wait, with one of the groups `wait`, `seconds`, `millis`, `epoch`, `clock`, `date`, and
    /// possibly `zone`.
    pub wait: Vec<String>,
}

/// Lines that mention failures without reporting one, and where they occur.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IgnoredLineRule {
    /// The layers in which they are ignored; empty means all.
    pub layer: Vec<FailureLayer>,
    /// The streams in which they are ignored; empty means all.
    pub stream: Vec<FailureTextSource>,
    /// The patterns, each between slashes.
    pub any: Vec<String>,
    /// Patterns of lines that are not ignored after all.
    pub none: Vec<String>,
}

/// Patterns of output lines that report a failure although the exit code or status reports success.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HiddenFailureLineRule {
    /// The layers in which they apply.
    pub layer: Vec<FailureLayer>,
    /// The streams in which they apply; empty means all.
    pub stream: Vec<FailureTextSource>,
    /// The tools to which they apply; empty means all.
    pub tool: Vec<String>,
    /// The patterns.
    pub any: Vec<String>,
    /// Patterns that report success in spite of them.
    pub none: Vec<String>,
}

impl SharedTextRules {
    /// Expands the named parts in the patterns.
    pub(crate) fn expand_named_parts(&mut self) {
        for pattern in self.status.iter_mut().chain(&mut self.wait) {
            for (name, part) in &self.parts {
                *pattern = pattern.replace(&format!("{{{name}}}"), part);
            }
        }
    }
}
