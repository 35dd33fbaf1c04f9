//! The variables of prompt note templates, extracted from a failure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diagnosis::Diagnosis;
use crate::failure::{Failure, LossyText};

/// The variables of a prompt note template; unknown ones are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PromptNoteVars {
    /// The error.
    pub error: String,
    /// The failure kind.
    pub kind: String,
    /// The output of the failed attempt.
    pub output: String,
    /// The stack trace.
    pub trace: String,
    /// The suggested fix.
    pub suggestion: String,
    /// The missing sections.
    pub sections: Vec<String>,
    /// A summary of the conversation so far.
    pub summary: String,
    /// A human's message.
    pub user_message: String,
    /// The requirements.
    pub expected: String,
    /// The task of the agent.
    pub task: String,
    /// The step at which it was interrupted.
    pub step: String,
    /// Other changes in the meantime, such as to the files that it works on.
    pub concurrent_changes: String,
    /// The attempt number.
    pub attempt: u32,
    /// Values for variables of a user's own templates.
    #[serde(flatten)]
    pub extra: BTreeMap<String, String>,
}

/// Prefixes of the first line of a stack trace.
const TRACE_STARTS: [&str; 5] = [
    "Traceback (most recent call last)",
    "stack backtrace:",
    "    at ",
    "goroutine ",
    "Exception in thread",
];

impl PromptNoteVars {
    /// Extracts the error, the output, the stack trace and the missing sections from a failure.
    ///
    /// ```
    /// use unstuck_core::Failure;
    /// use unstuck_core::recovery_plan::PromptNoteVars;
    /// # use unstuck_core::{Diagnosis, Evidence, FailureKind, FailureLayer};
    /// # let diagnosis = Diagnosis {
    /// #     kind: FailureKind::MissingSections, layer: FailureLayer::Agent, level: None, confidence: 1.0, retry_after: None, retry_after_source: None,
    /// #     fingerprint: String::new(), message: String::new(), hint: String::new(), truncated: false,
    /// #     evidence: Evidence { rule: String::new(), line: String::new() },
    /// # };
    ///
    /// let failure = Failure::agent("claude").with_validation_errors(["Missing section: # Tests"]);
    /// assert_eq!(PromptNoteVars::from_failure(&failure, &diagnosis).sections, ["# Tests"]);
    /// ```
    pub fn from_failure(failure: &Failure, diagnosis: &Diagnosis) -> Self {
        let text = |text: &Option<LossyText>| text.as_ref().map(|text| text.to_str().into_owned());
        let written = text(&failure.stderr).unwrap_or_default();
        let errors = failure.validation_errors.join("; ");
        let error = [&diagnosis.evidence.line, &diagnosis.message, &errors];
        let error = error.into_iter().find(|text| !text.trim().is_empty());
        Self {
            error: error.cloned().unwrap_or_else(|| diagnosis.kind.to_string()),
            kind: diagnosis.kind.to_string(),
            output: text(&failure.stdout).unwrap_or_default(),
            trace: find_stack_trace(&written),
            suggestion: diagnosis.hint.clone(),
            sections: failure
                .validation_errors
                .iter()
                .filter_map(|error| missing_section(error))
                .collect(),
            ..Self::default()
        }
    }
}

/// Returns the stack trace in a text, from its first line to its end.
fn find_stack_trace(text: &str) -> String {
    let starts = |line: &&str| TRACE_STARTS.iter().any(|mark| line.contains(mark));
    let first = text.lines().find(starts).and_then(|line| text.find(line));
    first
        .map(|at| text[at..].trim_end().to_owned())
        .unwrap_or_default()
}

/// Returns the section that a validation error reports as missing.
fn missing_section(error: &str) -> Option<String> {
    let lower = error.to_ascii_lowercase();
    let after = lower.find("missing section")? + "missing section".len();
    let name = error.get(after..)?.trim_start_matches(['s', ':', ' ']);
    let name = name.trim_matches([' ', '"', '\'', '`']);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_traces_are_found_in_several_languages() {
        let python = "noise\nTraceback (most recent call last):\n  File \"x\"\nKeyError: 'a'\n";
        assert!(
            find_stack_trace(python).starts_with("Traceback")
                && find_stack_trace(python).ends_with("KeyError: 'a'")
        );
        assert_eq!(
            find_stack_trace("Error: x\n    at f (a.js:1:2)"),
            "    at f (a.js:1:2)"
        );
        assert_eq!(find_stack_trace("plain"), "");
    }

    #[test]
    fn missing_sections_are_parsed_from_the_errors() {
        assert_eq!(
            missing_section("Missing section: # Tests").as_deref(),
            Some("# Tests")
        );
        assert_eq!(
            missing_section("missing section \"- Findings:\"").as_deref(),
            Some("- Findings:")
        );
        assert_eq!(missing_section("too long"), None);
    }
}
