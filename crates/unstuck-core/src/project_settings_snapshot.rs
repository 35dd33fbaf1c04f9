//! A snapshot of the project configuration from the start of a run, and the changes since.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A snapshot of the values in a project's configuration files, by file, independent of comments and order.
///
/// A run uses the values from its start, because anything running in the project can change them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProjectSettingsSnapshot {
    /// The values of each file.
    pub files: BTreeMap<String, Value>,
    /// Sections that do not concern the run and are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

impl ProjectSettingsSnapshot {
    /// Returns the canonical text by which they are stored and trusted.
    pub fn canonical_text(&self) -> String {
        let sorted = Self {
            files: self
                .files
                .iter()
                .map(|(file, value)| (file.clone(), sort_keys(value)))
                .collect(),
            ignored: self.ignored.clone(),
        };
        serde_json::to_string(&sorted).unwrap_or_default()
    }

    /// Parses canonical text; none if it is invalid.
    pub fn from_content(content: &[u8]) -> Option<Self> {
        serde_json::from_slice(content).ok()
    }

    /// Returns the same without sections that do not concern the run.
    #[must_use]
    pub fn without_sections(mut self, sections: &[&str]) -> Self {
        for file in self.files.values_mut().filter_map(Value::as_object_mut) {
            sections.iter().for_each(|section| {
                file.remove(*section);
            });
        }
        self.ignored = sections.iter().map(|&section| section.to_owned()).collect();
        self
    }
}

/// Returns the value with sorted table keys.
fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entries: BTreeMap<_, _> = entries
                .iter()
                .map(|(key, value)| (key, sort_keys(value)))
                .collect();
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.clone(), value))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(sort_keys).collect(),
        other => other.clone(),
    }
}

/// A project setting that changed during a run, and is not in effect until a human approves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSettingChange {
    /// Its path, such as `role.builder.command`.
    pub key: String,
    /// The accepted value, as JSON; none if it was absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The current value in the file, as JSON; none if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "after", alias = "now")]
    pub after: Option<String>,
}

impl fmt::Display for ProjectSettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            before,
            after: now,
        } = self;
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        write!(f, "{key}: {} -> {}", shown(before), shown(now))
    }
}
