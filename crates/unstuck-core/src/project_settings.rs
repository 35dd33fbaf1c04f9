//! What the files of a project say, as a run remembers it, and how they have changed since.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the configuration files of a project say, by file, in one form that no comment and no order changes.
///
/// A run goes by what they said when it began, because whatever works in the project can change them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProjectSettings {
    /// The values of each file.
    pub files: BTreeMap<String, Value>,
    /// The sections that do not concern the run, and are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

impl ProjectSettings {
    /// The bytes by which they are kept and trusted.
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

    /// What such bytes said; none if they are none.
    pub fn from_content(content: &[u8]) -> Option<Self> {
        serde_json::from_slice(content).ok()
    }

    /// The same for a run that these sections do not concern.
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

/// The same value with the keys of its tables in order.
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

/// A value of a project's file that was changed while a run was under way, and does not count until a person agrees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Its path, such as `role.builder.command`.
    pub key: String,
    /// What it was when it was accepted, as JSON; none if there was nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What it is in the file now, as JSON; none if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "now")]
    pub after: Option<String>,
}

impl fmt::Display for SettingChange {
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
