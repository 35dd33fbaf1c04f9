//! Rules: how a kind is recognised, as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Layer, Level};

/// One way to recognise a kind. All conditions that are given must hold; an absent one always does.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSpec {
    /// Names the rule; unique within its kind.
    pub id: String,
    /// The layers in which it may be used.
    pub layer: Vec<Layer>,
    /// The providers for which it may be used.
    pub provider: Vec<String>,
    /// The tools or agents for which it may be used.
    pub tool: Vec<String>,
    /// HTTP statuses: that of the answer, or one that the text states.
    pub status: Vec<u16>,
    /// Exit codes.
    pub exit_code: Vec<i32>,
    /// Signals that ended the process; exit code 128 + n counts as signal n.
    pub signal: Vec<i32>,
    /// Headers, each with a pattern that its value must match.
    pub header: BTreeMap<String, String>,
    /// Values in a JSON document of the text, by pointer; `*` stands for any key or index.
    pub json: BTreeMap<String, ValuePattern>,
    /// Values of a named field, wherever and however it is printed (`"code": "x"`, `code='x'`, `code: x`).
    pub field: BTreeMap<String, ValuePattern>,
    /// Patterns of which one must match; a group named `retry_delay` (`1h 5m`), `seconds`, `millis`, `epoch`, `clock` or
    /// `parse_date` (perhaps with `zone`) captures how long to wait.
    pub any: Vec<String>,
    /// Patterns that all must match.
    pub all: Vec<String>,
    /// Patterns that must not match.
    pub none: Vec<String>,
    /// The streams in which the patterns are looked for; empty means all that the program itself wrote.
    pub stream: Vec<FailureStream>,
    /// Streams that must be empty or unknown.
    pub blank: Vec<FailureStream>,
    /// Streams that must be known to be empty.
    pub empty: Vec<FailureStream>,
    /// What must hold about the run itself.
    pub when: Vec<Condition>,
    /// Whether it also holds when the exit code or status says that all is well.
    pub on_success: bool,
    /// The layers in which `on_success` holds; empty means all.
    pub success_layer: Vec<Layer>,
    /// Whether it holds just as well on a line that only warns.
    pub on_warning: bool,
    /// What else has to be weighed: the higher one wins (see [`RuleSpec::rank`]).
    pub priority: Option<i32>,
    /// The level at which recovery starts, where it differs from that of the kind.
    pub level: Option<Level>,
    /// How sure it is, from 0 to 1; by default told from the priority.
    pub confidence: Option<f32>,
    /// How to find out how long to wait, where the usual ways mislead.
    pub wait: Option<RetryAfterSpec>,
    /// Whether it says that an answer was cut off at its length limit.
    pub truncated: bool,
    /// Switches the rule off (for overriding a built-in one).
    pub disabled: bool,
}

impl RuleSpec {
    /// What the rule weighs if it does not say so itself: structure beats text, text beats a mere number.
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

impl RuleSpec {
    /// What is wrong with the rule apart from its patterns.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let confident = self
            .confidence
            .is_none_or(|sure| (0.0..=1.0).contains(&sure));
        let literals = [&self.any, &self.all, &self.none].into_iter().flatten();
        let unmatchable = |text: &String| !text.starts_with('/') && text.contains("  ");
        if self.id.trim().is_empty() {
            Some("it needs an `id`")
        } else if !confident {
            Some("`confidence` must be between 0 and 1")
        } else if !self.has_condition() {
            Some("it has no condition, so it would match everything")
        } else if literals.into_iter().any(unmatchable) {
            Some("a text with two spaces in a row never matches: blanks count as one")
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

/// One value or several alternatives: a text (`/…/` is a regular expression, `*` anything at all), number or bool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ValuePattern {
    /// One of these.
    Any(Vec<Value>),
    /// This one.
    One(Value),
}

impl ValuePattern {
    /// The alternatives.
    pub fn alternatives(&self) -> &[Value] {
        match self {
            Self::Any(values) => values,
            Self::One(value) => std::slice::from_ref(value),
        }
    }
}

/// A text of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureStream {
    /// The body of an answer.
    Body,
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
    /// What the checks of the output found wrong.
    Validation,
}

impl FailureStream {
    /// Every stream.
    pub const ALL: [Self; 4] = [Self::Body, Self::Stdout, Self::Stderr, Self::Validation];
}

/// Something that is known about a run beside its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The supervisor ended it because its time was up.
    TimedOut,
    /// Checks of the output found something wrong.
    Invalid,
    /// A diff was expected and the output has none.
    DiffMissing,
    /// The exit code or status says that all is well.
    Succeeded,
}

/// How to find out how long to wait, where the usual ways mislead.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterSpec {
    /// Nothing that is stated can be trusted.
    Unstated,
    /// Until the next such time of day, written `00:00 America/Los_Angeles`.
    Daily(String),
}
