//! The parameters of replies: answers, usage limits, tool calls and tool failures.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use unstuck_core::Timestamp;

use super::duration;
use super::headers;

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultScriptAnswer {
    /// Text of the model; in a script, defaults to saying that the tests pass.
    #[serde(default = "default_text")]
    pub text: String,
    /// Delay, such as `"300ms"`; none if absent.
    #[serde(default, deserialize_with = "duration::required")]
    pub delay: Duration,
    /// Charged prompt tokens; estimated if absent.
    pub input_tokens: Option<u64>,
    /// Charged answer tokens; estimated if absent.
    pub output_tokens: Option<u64>,
    /// Prompt tokens read from the cache; none if absent.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Prompt tokens written to the cache; none if absent.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Additional headers.
    #[serde(default, deserialize_with = "headers::deserialize_headers")]
    pub headers: BTreeMap<String, String>,
}

/// A refusal by a plan's usage limit, with its reset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsageLimit {
    /// Time from the first use of the step to the reset, such as `"5s"`; 5 hours if absent.
    #[serde(deserialize_with = "duration::required")]
    pub resets_in: Duration,
    /// Timestamp of the reset; takes precedence over `resets_in`.
    pub resets_at: Option<Timestamp>,
    /// If set, requests before the reset are refused too, as by the real limit.
    #[serde(rename = "holds")]
    pub is_enforced: bool,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Name of the tool; `run_tests` if absent.
    #[serde(default = "default_tool")]
    pub name: String,
    /// Arguments; none if absent.
    #[serde(default = "no_arguments")]
    pub input: Value,
}

/// The result of a failing tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedToolFailure {
    /// Standard error output.
    pub stderr: String,
    /// Exit code; 1 if absent.
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
