//! Expectations of an agent's final answer.
//!
//! [`check`](AnswerExpectations::check) returns the validation errors of a [`Failure`](unstuck_core::Failure), in words by
//! which the core distinguishes missing sections, broken JSON, broken diffs and other wrong formats. An empty answer
//! has no validation errors: it is diagnosed as empty output.
//!
//! ```
//! use unstuck_run::answer_expectations::AnswerExpectations;
//!
//! let expectations = AnswerExpectations {
//!     sections: vec!["# Review".to_owned(), "# Tests".to_owned()],
//!     ..AnswerExpectations::default()
//! };
//! assert_eq!(expectations.check("# Review\nAll is well."), ["Missing section: # Tests"]);
//! assert!(expectations.is_met_by("**# Review**\nfine\n# Tests:\npassed"));
//! ```

mod fenced_code;
mod json;
mod pattern;
mod section;
#[cfg(test)]
mod tests;
mod unified_diff;

pub use json::{ExpectedSchema, InvalidSchema, JsonExpectation};
pub use pattern::ExpectedPattern;
use serde::{Deserialize, Serialize};

/// The expectations of an agent's final answer; none by default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerExpectations {
    /// Required lines, such as `# Review`; emphasis, and a colon or hashes at the end, are ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// JSON, as the whole answer or in a code block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<JsonExpectation>,
    /// True if a unified diff is required, possibly in a code block.
    #[serde(skip_serializing_if = "is_false")]
    pub diff: bool,
    /// Regular expressions that must all match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<ExpectedPattern>,
    /// True if the answer must not be blank.
    #[serde(skip_serializing_if = "is_false")]
    pub not_empty: bool,
}

impl AnswerExpectations {
    /// Returns true if the text of an answer is checked, beyond being non-empty.
    pub fn needs_text(&self) -> bool {
        let Self {
            sections,
            json,
            diff,
            matches,
            not_empty: _,
        } = self;
        !sections.is_empty() || json.is_some() || *diff || !matches.is_empty()
    }

    /// Returns the errors of an answer. An empty answer has no errors here.
    pub fn check(&self, text: &str) -> Vec<String> {
        let mut errors = Vec::new();
        if text.trim().is_empty() {
            return errors;
        }
        errors.extend(section::missing_sections(&self.sections, text));
        if let Some(json) = &self.json {
            errors.extend(json.check(text));
        }
        if self.diff {
            errors.extend(unified_diff::check(text));
        }
        errors.extend(
            self.matches
                .iter()
                .filter_map(|pattern| pattern.check(text)),
        );
        errors
    }

    /// Returns the JSON of an answer if JSON is expected, without the text around it; else the whole answer.
    pub fn accepted_part<'t>(&self, text: &'t str) -> &'t str {
        let json = self.json.as_ref().and_then(|json| json.accepted_json(text));
        json.unwrap_or(text)
    }

    /// Returns true if an answer meets all expectations; an empty answer does only if there are none.
    pub fn is_met_by(&self, text: &str) -> bool {
        let nothing_expected = *self == Self::default();
        nothing_expected || !text.trim().is_empty() && self.check(text).is_empty()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
