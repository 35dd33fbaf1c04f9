//! Tests that the core understands the errors of expectations.

use proptest::prelude::*;
use serde_json::json;
use unstuck_core::{ClockReading, Failure, FailureKind, Timestamp, classify};

use super::{AnswerExpectations, ExpectedSchema, JsonExpectation};

fn sections(names: &[&str]) -> AnswerExpectations {
    let sections = names.iter().map(|name| (*name).to_owned()).collect();
    AnswerExpectations {
        sections,
        ..AnswerExpectations::default()
    }
}

fn any_json() -> AnswerExpectations {
    AnswerExpectations {
        json: Some(JsonExpectation::Any),
        ..AnswerExpectations::default()
    }
}

fn schema() -> AnswerExpectations {
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}, "required": ["items"]});
    AnswerExpectations {
        json: Some(JsonExpectation::Schema(
            ExpectedSchema::try_from(schema).unwrap(),
        )),
        ..AnswerExpectations::default()
    }
}

fn diff() -> AnswerExpectations {
    AnswerExpectations {
        diff: true,
        ..AnswerExpectations::default()
    }
}

fn pattern(text: &str) -> AnswerExpectations {
    AnswerExpectations {
        matches: vec![text.parse().unwrap()],
        ..AnswerExpectations::default()
    }
}

/// Returns the kind of failure of an answer by an agent that exited with code 0.
fn kind(expectations: &AnswerExpectations, answer: &str) -> FailureKind {
    assert!(!expectations.is_met_by(answer), "{answer}");
    let failure = Failure::agent("claude")
        .with_exit_code(0)
        .with_stdout(answer)
        .with_validation_errors(expectations.check(answer));
    classify(&failure, &ClockReading::utc(Timestamp::from_seconds(0))).kind
}

const DIFF: &str = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ fn main()\n one\n-two\n+2\n\n@@ -9 +9,2 @@\n-nine\n+9\n+10\n\\ No newline at end of file\n";

#[test]
fn absent_section_is_a_missing_section() {
    let expectations = sections(&["# Review", "## Tests"]);
    assert_eq!(
        kind(&expectations, "# Review\nfine"),
        FailureKind::MissingSections
    );
    assert_eq!(
        expectations.check("# Review\nfine"),
        ["Missing section: ## Tests"]
    );
}

#[test]
fn section_may_be_emphasized_and_end_with_colons_and_hashes() {
    let review = sections(&["# Review"]);
    for line in [
        "# Review",
        "# Review:",
        "# Review ##",
        "# **Review**",
        "**# Review:**",
        "# Review  \r",
        "#  _Review_",
    ] {
        assert!(review.is_met_by(&format!("text\n{line}\nmore")), "{line}");
    }
    assert!(review.is_met_by("```markdown\n# Review\nfine\n```\n"));
    assert!(sections(&["**Findings:**"]).is_met_by("Findings"));
    for text in [
        "## Review",
        "# Reviewed",
        "a # Review",
        "# review",
        "```\n# Review\n```",
        "~~~\n# Review\n",
        "Review",
    ] {
        assert!(!review.is_met_by(text), "{text}");
    }
}

#[test]
fn text_may_follow_a_label_on_its_line() {
    let findings = sections(&["- Findings:"]);
    for line in ["- Findings:", "- Findings: none", "- **Findings:** none"] {
        assert!(findings.is_met_by(&format!("# Review\n{line}\n")), "{line}");
    }
    for line in ["- Findings of today: none", "No - Findings: none"] {
        assert!(!findings.is_met_by(line), "{line}");
    }
    assert!(!sections(&["# Review"]).is_met_by("# Review: of the shop"));
}

#[test]
fn empty_answer_is_empty_output_for_any_expectation() {
    let not_empty = AnswerExpectations {
        not_empty: true,
        ..AnswerExpectations::default()
    };
    for expectations in [
        not_empty,
        sections(&["# Review"]),
        any_json(),
        diff(),
        pattern("x"),
    ] {
        assert!(expectations.check(" \n").is_empty());
        assert_eq!(kind(&expectations, " \n"), FailureKind::EmptyOutput);
    }
    assert!(AnswerExpectations::default().is_met_by(""));
}

#[test]
fn invalid_json_is_a_json_parse_error() {
    for text in [
        "Here you are: 5",
        "{\"a\": ",
        "{'a': 1}",
        "```json\n{\"a\": 1,}\n```",
        "{} {}",
    ] {
        let errors = any_json().check(text);
        assert!(
            errors[0].starts_with("The output is not valid JSON: "),
            "{errors:?}"
        );
        assert_eq!(
            kind(&any_json(), text),
            FailureKind::JsonParseError,
            "{text}"
        );
    }
}

#[test]
fn json_may_be_the_whole_answer_or_in_a_code_block() {
    for text in [
        " {\"a\": 1}\n",
        "[1]",
        "Here:\n```json\n{\"a\": 1}\n```\nDone.",
        "```\n[1]\n```",
        "```rust\nfn\n```\n~~~JSON\n1\n~~~",
    ] {
        assert!(any_json().is_met_by(text), "{text}");
    }
}

#[test]
fn schema_violation_is_a_wrong_format_with_its_path() {
    assert_eq!(
        kind(&schema(), r#"{"items": 3}"#),
        FailureKind::FormatValidation
    );
    assert_eq!(kind(&schema(), "{}"), FailureKind::FormatValidation);
    let errors = schema().check(r#"{"items": [1, "401 Unauthorized"]}"#);
    assert!(
        errors[0].contains("/items/1:") && !errors[0].contains("401"),
        "{errors:?}"
    );
    assert!(schema().is_met_by("```json\n{}\n```\n```json\n{\"items\": [1]}\n```"));
    assert!(schema().check("no json")[0].contains("not valid JSON"));
}

#[test]
fn missing_or_inconsistent_diff_is_a_diff_parse_error() {
    let cut = DIFF.replace("+10\n\\ No newline at end of file\n", "");
    let surplus = DIFF.replace("+2\n", "+2\n+3\n+4\n");
    let headless = DIFF.replace("+++ b/f\n", "");
    let garbled = DIFF.replace("-1,3", "-1,x");
    for text in [
        "I changed it.",
        &cut,
        &surplus,
        &headless,
        &garbled,
        "```diff\n+ one\n```",
        "--- a\n+++ b\n",
        "new mode of work",
    ] {
        let errors = diff().check(text);
        assert!(errors[0].starts_with("Invalid diff: "), "{errors:?}");
        assert_eq!(kind(&diff(), text), FailureKind::DiffParseError, "{text}");
    }
}

#[test]
fn diff_may_be_in_prose_or_in_a_code_block() {
    let fenced = format!("- a list\n---\n```diff\n{DIFF}```\n- done");
    let renamed = "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n";
    for text in [
        DIFF,
        &format!("Here:\n\n{DIFF}\nDone."),
        &fenced,
        renamed,
        &DIFF.replace('\n', "\r\n"),
    ] {
        assert!(diff().is_met_by(text), "{text}");
    }
}

#[test]
fn unmatched_pattern_is_a_wrong_format() {
    assert_eq!(
        kind(&pattern(r"(?m)^VERDICT: (yes|no)$"), "VERDICT: maybe"),
        FailureKind::FormatValidation
    );
    assert!(pattern(r"(?m)^VERDICT: (yes|no)$").is_met_by("so\nVERDICT: yes\n"));
}

#[test]
fn expectations_are_serialized_as_written() {
    let text = r##"{"sections":["# Review"],"json":{"schema":{"type":"array"}},"diff":true,"matches":["a+"],"not_empty":true}"##;
    let read: AnswerExpectations = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    assert_eq!(
        serde_json::to_string(&any_json()).unwrap(),
        r#"{"json":"any"}"#
    );
    for wrong in [
        r#"{"matches":["("]}"#,
        r#"{"json":{"schema":{"type":7}}}"#,
        r#"{"section":[]}"#,
    ] {
        assert!(
            serde_json::from_str::<AnswerExpectations>(wrong).is_err(),
            "{wrong}"
        );
    }
}

proptest! {
    #[test]
    fn check_accepts_any_answer(text in "([-+ @#`~{}\\[\\]\"a:,0-9\\\\]{0,6}|--- a\n\\+\\+\\+ b\n|@@ -1,2 \\+1 @@|```diff|\n){0,20}") {
        for expectations in [sections(&["#"]), schema(), diff(), pattern("a")] {
            expectations.check(&text);
        }
    }
}
