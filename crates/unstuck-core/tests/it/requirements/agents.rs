//! Seed 001: failures of agents in a pipeline.

use super::*;

/// S1-01: the error types of the pipeline are failure kinds with the same names.
#[test]
fn every_error_type_of_the_pipeline_is_a_kind() {
    for name in [
        "timeout",
        "empty_output",
        "format_validation",
        "missing_sections",
        "diff_parse_error",
        "context_error",
        "unknown",
    ] {
        assert_eq!(name.parse::<FailureKind>().unwrap().name(), name);
    }
}

/// S1-02, S1-03, S1-39: code 124 is a timeout, even if the output is empty, wrong or without its diff.
#[test]
fn code_124_is_a_timeout() {
    assert_eq!(kind(&agent(124, "", "", &[])), FailureKind::Timeout);
    let all = agent(124, "", "", &["Missing section: # Tests"]);
    assert_eq!(kind(&all.with_diff_expected()), FailureKind::Timeout);
}

/// S1-04: an empty output is `empty_output`, even if checks failed because of it.
#[test]
fn no_output_is_empty_output() {
    for stdout in ["", "  \n\t\n"] {
        assert_eq!(kind(&agent(0, stdout, "", &[])), FailureKind::EmptyOutput);
        assert_eq!(kind(&agent(1, stdout, "", &[])), FailureKind::EmptyOutput);
        let checked = agent(0, stdout, "", &["Missing section: # Tests", "too short"]);
        assert_eq!(kind(&checked), FailureKind::EmptyOutput);
        assert_eq!(
            kind(&checked.with_diff_expected()),
            FailureKind::EmptyOutput
        );
    }
}

/// S1-05, S1-40: a check reports a missing section, in any letter case.
#[test]
fn missing_section_is_distinguished_from_other_checks() {
    for check in ["Missing section: # Tests", "MISSING SECTION `Plan`"] {
        let failure = agent(0, "output", "", &[check]);
        assert_eq!(kind(&failure), FailureKind::MissingSections, "{check}");
        let both = agent(0, "output", "", &["line 3 is too long", check]);
        assert_eq!(kind(&both), FailureKind::MissingSections, "{check}");
    }
}

/// S1-06: any other failed check is a format error.
#[test]
fn other_failed_check_is_format_validation() {
    for check in ["line 3 is too long", "expected a table", "x"] {
        let failure = agent(0, "output", "", &[check]);
        assert_eq!(kind(&failure), FailureKind::FormatValidation, "{check}");
        assert_eq!(
            kind(&failure.with_diff_expected()),
            FailureKind::FormatValidation
        );
    }
}

/// S1-07: an output that has to contain a diff and has none.
#[test]
fn missing_expected_diff_is_a_diff_parse_error() {
    let without = agent(0, "I changed the file as you asked.", "", &[]);
    assert_eq!(kind(&without), FailureKind::None);
    assert_eq!(
        kind(&without.with_diff_expected()),
        FailureKind::DiffParseError
    );
    let with = agent(0, "diff --git a/x b/x\n--- a/x\n+++ b/x\n", "", &[]);
    assert_eq!(kind(&with.with_diff_expected()), FailureKind::None);
    let refused = agent(1, "patching", "error: patch does not apply", &[]);
    assert_eq!(kind(&refused), FailureKind::DiffParseError);
}

/// S1-08: a prompt with a missing variable is a context error.
#[test]
fn missing_placeholder_is_a_context_error() {
    for stderr in [
        "KeyError: 'design'",
        "Missing placeholder: {plan}",
        "MISSING PLACEHOLDER",
    ] {
        let failure = agent(1, "output", stderr, &[]);
        assert_eq!(kind(&failure), FailureKind::ContextError, "{stderr}");
    }
}

/// S1-09: the order of the rules: 124, empty, checks, diff, context, unknown.
#[test]
fn first_rule_of_the_pipeline_applies() {
    let context = agent(1, "output", "KeyError: 'x'", &[]);
    assert_eq!(kind(&context), FailureKind::ContextError);
    let diff = context.with_diff_expected();
    assert_eq!(kind(&diff), FailureKind::DiffParseError);
    let checked = diff.clone().with_validation_errors(["too short"]);
    assert_eq!(kind(&checked), FailureKind::FormatValidation);
    let empty = checked.with_stdout("").with_stderr("");
    assert_eq!(kind(&empty), FailureKind::EmptyOutput);
    assert_eq!(kind(&empty.with_exit_code(124)), FailureKind::Timeout);
    assert_eq!(
        kind(&agent(1, "output", "it did not go well", &[])),
        FailureKind::Unknown
    );
}

/// A typed cause beats its consequences: there was no output because of a missing login.
#[test]
fn known_cause_beats_its_symptoms() {
    let refused = r#"API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let failure = agent(1, "", refused, &["Missing section: # Tests"]);
    assert_eq!(
        kind(&failure.with_diff_expected()),
        FailureKind::AuthRequired
    );
    let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    assert_eq!(kind(&agent(1, "", limited, &[])), FailureKind::RateLimit);
}
