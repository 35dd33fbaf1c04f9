//! What counts as success: what an agent's final answer must hold.
//!
//! [`check`](Expectations::check) gives the validation errors of a [`SandboxSetupFailure`](unstuck_core::Failure), in words by which the
//! core tells missing sections, broken JSON, broken diffs and other wrong formats apart. An empty answer has no validation errors:
//! that it is empty says enough.
//!
//! ```
//! use unstuck_run::expectations::Expectations;
//!
//! let expectations = Expectations {
//!     sections: vec!["# Review".to_owned(), "# Tests".to_owned()],
//!     ..Expectations::default()
//! };
//! assert_eq!(expectations.check("# Review\nAll is well."), ["Missing section: # Tests"]);
//! assert!(expectations.met_by("**# Review**\nfine\n# Tests:\npassed"));
//! ```

mod diff;
mod fence;
mod json;
mod pattern;
mod section;
#[cfg(test)]
mod tests;

pub use json::{ExpectedSchema, InvalidSchema, JsonExpectation};
pub use pattern::ExpectedPattern;
use serde::{Deserialize, Serialize};

/// What an agent's final answer must hold; by default nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expectations {
    /// Lines that must be there, such as `# Review`; emphasis, a colon and hashes at the end do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// JSON, as all of the answer or in a code block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<JsonExpectation>,
    /// A unified diff, perhaps in a code block.
    #[serde(skip_serializing_if = "is_false")]
    pub diff: bool,
    /// Expressions of which each must be found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<ExpectedPattern>,
    /// Anything but blanks.
    #[serde(skip_serializing_if = "is_false")]
    pub not_empty: bool,
}

impl Expectations {
    /// Whether something is expected of the text of an answer, beyond that there is one.
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

    /// What is wrong with an answer. An empty answer is not told here.
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
            errors.extend(diff::check(text));
        }
        errors.extend(
            self.matches
                .iter()
                .filter_map(|pattern| pattern.check(text)),
        );
        errors
    }

    /// The JSON of an answer where JSON is expected, without what stands around it; else all of the answer.
    pub fn accepted_part<'t>(&self, text: &'t str) -> &'t str {
        let json = self.json.as_ref().and_then(|json| json.accepted_json(text));
        json.unwrap_or(text)
    }

    /// Whether an answer holds all that is expected; an empty one does so only if nothing is.
    pub fn is_met_by(&self, text: &str) -> bool {
        let nothing_expected = *self == Self::default();
        nothing_expected || !text.trim().is_empty() && self.check(text).is_empty()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
