//! What one role writes and another reads: whatever it is, it arrives as it was.

use super::{project, role};
use crate::Place;

/// A role that writes something, and one that keeps what it is told.
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

/// What an agent wrote is never taken for a template.
#[test]
fn placeholders_in_an_output_stay_as_they_are() {
    let place = passing_on("echo 'Use {{ task }} and {% raw %} here.'");
    place.run(&["run"], "").told(0, &[]);
    assert_eq!(place.text("got"), "Use {{ task }} and {% raw %} here.");
}

/// More than 16 MiB are not passed on, and nobody takes what is left for the whole.
#[test]
fn an_output_that_is_too_long_says_that_it_was_cut() {
    let place = passing_on("yes abcdefg | head -c 17000000");
    let ended = place.run(&["run"], "");
    ended.told(0, &["[Attempt 1] writer → success, but its output was cut"]);
    assert_eq!(place.events("attempt_succeeded")[0]["truncated"], true);
    assert!(place.text("got").contains("bytes omitted]"));
}

#[test]
fn a_long_output_arrives_whole() {
    let place = passing_on("seq 1 60000");
    place.run(&["run"], "").told(0, &[]);
    let lines = place.lines("got");
    assert_eq!((lines.len(), lines[59_999].as_str()), (60_000, "60000"));
}

/// An agent need not read what it is told.
#[test]
fn an_agent_that_does_not_read_its_prompt_is_fine() {
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
    place
        .run(&["run"], "")
        .told(0, &["Done: 2 roles, 2 attempts"]);
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let place = passing_on("printf 'a\\377b\\000c\\n'");
    place.run(&["run"], "").told(0, &[]);
    assert!(place.text("got").starts_with('a') && place.text("got").ends_with('c'));
}

/// What an agent leaves running in the background ends with its attempt.
#[test]
fn nothing_that_an_agent_started_is_left() {
    let place = project(&role(
        "a",
        "prompt = \"Serve.\"",
        "cat >/dev/null; sleep 60 >/dev/null 2>&1 & echo $! > pid; echo done",
    ));
    place.run(&["run"], "").told(0, &["Done"]);
    let process = format!("/proc/{}", place.text("pid"));
    assert!(
        !std::path::Path::new(&process).exists(),
        "{process} is left"
    );
}

/// Where one role needs a person, those that do not depend on it come to their end first.
#[test]
fn the_others_come_to_their_end_where_one_needs_a_person() {
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
        .told(3, &["asks needs a person", "Waiting for you: 2 of 4 roles"]);
    assert_eq!(place.text("got"), "works");
    assert!(!place.project().join("never").exists());
}

/// The program of a role may take its prompt as an argument or from a file.
#[test]
fn a_prompt_can_come_as_an_argument_or_a_file() {
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

/// An answer that tells of failures, as reports and reviews do, is no failure.
#[test]
fn an_answer_that_quotes_failures_is_fine() {
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
        let told = format!("[Attempt 1] {role_id} → success");
        place
            .run(&["run"], "")
            .told(0, &[&told, "Done: 1 role, 1 attempt"]);
    }
}
