//! Rules that recognize failure kinds, as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::{FailureLayer, RecoveryLevel};

/// A rule that recognizes a kind. All conditions must hold; an absent one always does.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiagnosisRuleSpec {
    /// The id of the rule; unique within its kind.
    pub id: String,
    /// The layers to which it applies.
    pub layer: Vec<FailureLayer>,
    /// The providers to which it applies.
    pub provider: Vec<String>,
    /// The tools or agents to which it applies.
    pub tool: Vec<String>,
    /// HTTP statuses: that of the response, or one stated in the text.
    pub status: Vec<u16>,
    /// Exit codes.
    pub exit_code: Vec<i32>,
    /// Signals that ended the process; exit code 128 + n is treated as signal n.
    pub signal: Vec<i32>,
    /// Headers, each with a pattern that its value must match.
    pub header: BTreeMap<String, String>,
    /// Values in a JSON document of the text, by pointer; `*` matches any key or index.
    pub json: BTreeMap<String, DiagnosisValuePattern>,
    /// Values of a named field, in any notation (`"code": "x"`, `code='x'`, `code: x`).
    pub field: BTreeMap<String, DiagnosisValuePattern>,
    /// Patterns of which one must match; a group named `wait` (`1h 5m`), `seconds`, `millis`, `epoch`, `clock` or
    /// `date` (possibly with `zone`) captures the time to wait.
    pub any: Vec<String>,
    /// Patterns that all must match.
    pub all: Vec<String>,
    /// Patterns that must not match.
    pub none: Vec<String>,
    /// The streams searched by the patterns; empty means all that the program itself wrote.
    pub stream: Vec<FailureTextSource>,
    /// Streams that must be empty or unknown.
    pub blank: Vec<FailureTextSource>,
    /// Streams that must be known to be empty.
    pub empty: Vec<FailureTextSource>,
    /// Conditions on the run itself.
    pub when: Vec<DiagnosisRunCondition>,
    /// If set, it also applies when the exit code or status reports success.
    pub on_success: bool,
    /// The layers in which `on_success` applies; empty means all.
    pub success_layer: Vec<FailureLayer>,
    /// If set, a line that is only a warning is not penalized.
    pub on_warning: bool,
    /// The weight against other rules: the highest wins (see [`DiagnosisRuleSpec::rank`]).
    pub priority: Option<i32>,
    /// The level at which recovery starts, if it differs from that of the kind.
    pub level: Option<RecoveryLevel>,
    /// The confidence, from 0 to 1; by default derived from the priority.
    pub confidence: Option<f32>,
    /// How to determine the time to wait, if the usual sources mislead.
    pub wait: Option<DiagnosisRetryAfterSpec>,
    /// True if it means that a response was truncated at its length limit.
    pub truncated: bool,
    /// If set, the rule is disabled (for overriding a built-in one).
    pub disabled: bool,
}

impl DiagnosisRuleSpec {
    /// Returns the weight of the rule, by default: structure beats text, text beats a mere number.
    pub fn rank(&self) -> i32 {
        let typed = !self.json.is_empty() || !self.field.is_empty() || !self.header.is_empty();
        let text = !self.any.is_empty() || !self.all.is_empty();
        self.priority.unwrap_or(match (typed, text) {
            (true, _) => 80,
            (_, true) => 60,
            _ if !self.status.is_empty() => 30,
            _ => 20,
        })
    }
}

impl DiagnosisRuleSpec {
    /// Returns the problem of the rule, apart from its patterns.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let confident = self
            .confidence
            .is_none_or(|sure| (0.0..=1.0).contains(&sure));
        let literals = [&self.any, &self.all, &self.none].into_iter().flatten();
        let unmatchable = |text: &String| !text.starts_with('/') && text.contains("  ");
        if self.id.trim().is_empty() {
            Some("missing `id`")
        } else if !confident {
            Some("`confidence` must be between 0 and 1")
        } else if !self.has_condition() {
            Some("no condition: it would match everything")
        } else if literals.into_iter().any(unmatchable) {
            Some("a text with consecutive spaces never matches: whitespace is collapsed")
        } else {
            None
        }
    }

    fn has_condition(&self) -> bool {
        let texts = [&self.any, &self.all, &self.tool, &self.provider];
        texts.iter().any(|list| !list.is_empty())
            || !(self.status.is_empty() && self.exit_code.is_empty() && self.signal.is_empty())
            || !(self.header.is_empty() && self.json.is_empty() && self.field.is_empty())
            || !(self.when.is_empty() && self.blank.is_empty() && self.empty.is_empty())
    }
}

/// One value or alternatives: a string (`/…/` is a regular expression, `*` matches anything), number or bool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum DiagnosisValuePattern {
    /// One of these.
    Any(Vec<Value>),
    /// This one.
    One(Value),
}

impl DiagnosisValuePattern {
    /// Returns the alternatives.
    pub fn alternatives(&self) -> &[Value] {
        match self {
            Self::Any(values) => values,
            Self::One(value) => std::slice::from_ref(value),
        }
    }
}

/// The source of a text of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureTextSource {
    /// The body of a response.
    Body,
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
    /// The findings of the output checks.
    Validation,
}

impl FailureTextSource {
    /// All streams.
    pub const ALL: [Self; 4] = [Self::Body, Self::Stdout, Self::Stderr, Self::Validation];
}

/// A condition on the failed run besides its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisRunCondition {
    /// The supervisor stopped it at its time limit.
    TimedOut,
    /// Output checks found a problem.
    Invalid,
    /// A diff was expected, but the output contains none.
    DiffMissing,
    /// The exit code or status reports success.
    Succeeded,
}

/// How to determine the time to wait, if the usual sources mislead.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisRetryAfterSpec {
    /// Stated times cannot be trusted.
    Unstated,
    /// Until the next such time of day, written `00:00 America/Los_Angeles`.
    Daily(String),
}
