//! What the replies with many values hold.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use unstuck_core::Timestamp;

use super::duration;
use super::headers;

/// A proper answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerSpec {
    /// What the model says; that the tests pass if absent from a script.
    #[serde(default = "default_text")]
    pub text: String,
    /// How long it takes, such as `"300ms"`; no time if absent.
    #[serde(default, deserialize_with = "duration::required")]
    pub delay: Duration,
    /// The tokens that are charged for the prompt; estimated if absent.
    pub input_tokens: Option<u64>,
    /// The tokens that are charged for the answer; estimated if absent.
    pub output_tokens: Option<u64>,
    /// The part of the prompt's tokens that came from the cache; none if absent.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// The part of the prompt's tokens that was put into the cache; none if absent.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Further headers.
    #[serde(default, deserialize_with = "headers::deserialize_headers")]
    pub headers: BTreeMap<String, String>,
}

/// When the plan can be used again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsageLimit {
    /// How long after the step was first taken, such as `"5s"`; 5 hours if absent.
    #[serde(deserialize_with = "duration::required")]
    pub resets_in: Duration,
    /// The moment itself; it goes before `resets_in`.
    pub resets_at: Option<Timestamp>,
    /// Whether requests that come before the reset are refused too, as the real limit does.
    #[serde(rename = "holds")]
    pub is_enforced: bool,
}

/// The call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool; `run_tests` if absent.
    #[serde(default = "default_tool")]
    pub name: String,
    /// Its arguments; none if absent.
    #[serde(default = "no_arguments")]
    pub input: Value,
}

/// What a failing tool leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFailure {
    /// What it writes to its standard error.
    pub stderr: String,
    /// The exit code; 1 if absent.
    #[serde(default = "default_exit_code")]
    pub exit_code: u8,
}

impl Default for UsageLimit {
    fn default() -> Self {
        Self {
            resets_in: Duration::from_secs(5 * 60 * 60),
            resets_at: None,
            is_enforced: false,
        }
    }
}

fn default_text() -> String {
    "All twelve tests pass.".to_owned()
}

fn default_tool() -> String {
    "run_tests".to_owned()
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

const fn default_exit_code() -> u8 {
    1
}
