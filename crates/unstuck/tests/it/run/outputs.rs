//! Tests that outputs reach dependent roles unchanged.

use super::{project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Sets up a role that writes an output and one that saves its prompt.
fn passing_on(script: &str) -> Place {
    project(
        &[
            role(
                "writer",
                "prompt = \"Write.\"",
                &format!("cat >/dev/null; {script}"),
            ),
            role(
                "reader",
                "prompt = \"{{ outputs.writer }}\"\nneeds = [\"writer\"]",
                "cat > got; echo read",
            ),
        ]
        .concat(),
    )
}

/// Agent output is never treated as a template.
#[test]
fn placeholders_in_an_output_stay_unchanged() {
    let place = passing_on("echo 'Use {{ task }} and {% raw %} here.'");
    place.run(&["run"], "").told(0, &[]);
    assert_eq!(place.text("got"), "Use {{ task }} and {% raw %} here.");
}

/// Outputs over 16 MiB are truncated, with a note.
#[test]
fn too_long_output_is_truncated_with_a_note() {
    let place = passing_on("yes abcdefg | head -c 17000000");
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.events("attempt_succeeded")[0]["truncated"], true);
    assert!(place.text("got").contains("bytes omitted]"));
}

#[test]
fn long_output_arrives_whole() {
    let place = passing_on("seq 1 60000");
    place.run(&["run"], "").told(0, &[]);
    let lines = place.lines("got");
    assert_eq!((lines.len(), lines[59_999].as_str()), (60_000, "60000"));
}

/// An agent need not read its prompt.
#[test]
fn agent_that_ignores_its_prompt_succeeds() {
    let place = project(
        &[
            role("writer", "prompt = \"Write.\"", "seq 1 60000"),
            role(
                "deaf",
                "prompt = \"{{ outputs.writer }}\"\nneeds = [\"writer\"]",
                "exec 0<&-; echo done",
            ),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
}

#[test]
fn invalid_utf8_does_no_harm() {
    let place = passing_on("printf 'a\\377b\\000c\\n'");
    place.run(&["run"], "").told(0, &[]);
    assert!(place.text("got").starts_with('a') && place.text("got").ends_with('c'));
}

/// Background processes of an agent end with its attempt.
#[test]
fn no_process_of_an_agent_is_left() {
    let place = project(&role(
        "a",
        "prompt = \"Serve.\"",
        "cat >/dev/null; sleep 60 >/dev/null 2>&1 & echo $! > pid; echo done",
    ));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let process = format!("/proc/{}", place.text("pid"));
    assert!(
        !std::path::Path::new(&process).exists(),
        "{process} is left"
    );
}

/// If one role is blocked, independent roles finish first.
#[test]
fn independent_roles_finish_when_one_is_blocked() {
    let place = project(
        &[
            role(
                "asks",
                "prompt = \"A\"",
                "cat >/dev/null; echo 'Not logged in · Please run /login'; exit 1",
            ),
            role(
                "works",
                "prompt = \"B\"",
                "cat >/dev/null; sleep 0.3; echo works",
            ),
            role(
                "after",
                "prompt = \"{{ outputs.works }}\"\nneeds = [\"works\"]",
                "cat > got; echo after",
            ),
            role(
                "never",
                "prompt = \"C\"\nneeds = [\"asks\"]",
                "touch never; echo never",
            ),
        ]
        .concat(),
    );
    place
        .run(&["run"], "")
        .told(3, &["asks needs your input", "2 of 4 roles"]);
    assert_eq!(place.text("got"), "works");
    assert!(!place.project().join("never").exists());
}

/// A role's program may get its prompt as an argument or from a file.
#[test]
fn prompt_can_be_an_argument_or_a_file() {
    let with = |id: &str, words: &str| {
        format!(
            "[[role]]\nid = \"{id}\"\nagent = \"command\"\ncommand = [{words}]\nprompt = \"Say 'it'.\"\n"
        )
    };
    let place = project(
        &[
            with("argument", "\"echo\", \"{prompt}\""),
            with("file", "\"cat\", \"{prompt_file}\""),
        ]
        .concat(),
    );
    place.run(&["run"], "").told(0, &[]);
    for id in ["argument", "file"] {
        assert_eq!(
            place.of_run(&format!("roles/{id}/output.md")).trim_end(),
            "Say 'it'."
        );
    }
}

/// An answer that describes failures, like a report or review, is not a failure.
#[test]
fn answer_that_quotes_failures_succeeds() {
    for (role_id, quoted) in [
        (
            "missing",
            "sh: 1: jest: not found\nI installed it, and all tests pass.",
        ),
        (
            "full",
            "write app.log: no space left on device\nThe log is rotated now.",
        ),
        (
            "limited",
            "A 429 of the API (rate limit exceeded) is retried now.",
        ),
        (
            "tests",
            "FAILED tests/a.py::b - assert 1 == 2\nI fixed it: 4 passed.",
        ),
        (
            "login",
            "It returns 401 Unauthorized if the API key is invalid.",
        ),
    ] {
        let script = format!("cat >/dev/null; printf '%s\\n' '# Report' '{quoted}'");
        let place = project(&role(role_id, "prompt = \"Report.\"", &script));
        assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    }
}
