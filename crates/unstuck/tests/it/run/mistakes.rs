//! Tests that configuration errors are found before anything runs.

use super::{configure, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

const RAN: &str = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo done";

/// Asserts that the configuration is rejected and nothing was run; returns the messages.
#[track_caller]
fn refused(place: &Place) -> String {
    let ended = place.run(&["run"], "");
    ended.told(2, &[]);
    assert!(place.lines("ran").is_empty());
    assert!(
        !place.project().join(".unstuck").exists(),
        "there is no run"
    );
    ended.stderr
}

#[test]
fn dependency_cycle_is_found() {
    let place = project(
        &[
            role("a", "prompt = \"A\"\nneeds = [\"c\"]", RAN),
            role("b", "prompt = \"B\"\nneeds = [\"a\"]", RAN),
            role("c", "prompt = \"C\"\nneeds = [\"b\"]", RAN),
        ]
        .concat(),
    );
    assert_output!(place, refused(&place));
}

#[test]
fn unknown_needed_role_is_found() {
    let place = project(
        &[
            role("planner", "prompt = \"A\"", RAN),
            role("builder", "prompt = \"B\"\nneeds = [\"planer\"]", RAN),
        ]
        .concat(),
    );
    assert_output!(place, refused(&place));
}

#[test]
fn duplicate_role_id_is_found() {
    let place = project(
        &[
            role("a", "prompt = \"A\"", RAN),
            role("a", "prompt = \"B\"", RAN),
        ]
        .concat(),
    );
    assert_output!(place, refused(&place));
}

#[test]
fn unknown_agent_is_found() {
    let place = project("[[role]]\nid = \"a\"\nagent = \"claud\"\nprompt = \"Do it.\"\n");
    assert_output!(place, refused(&place));
}

#[test]
fn misspelled_key_is_found_with_its_line() {
    let place = project(&role("a", "promt = \"Do it.\"", RAN));
    assert_output!(place, refused(&place));
}

#[test]
fn all_errors_are_reported_at_once() {
    let place = project(
        &[
            role("a", "prompt = \"{{ taks }}\"", RAN),
            role(
                "b",
                "prompt = \"B\"\nneeds = [\"nobody\"]\nexpect.match = \"(\"",
                RAN,
            ),
        ]
        .concat(),
    );
    assert_output!(place, refused(&place));
}

#[test]
fn missing_roles_are_reported_with_a_hint() {
    let place = Place::new();
    assert_output!(place, place.run(&["run"], "").told(2, &[]).stderr);
    configure(&place, "");
    assert_output!(place, place.run(&["run"], "").told(2, &[]).stderr);
}

/// The escalation states where the missing agent was searched for.
#[test]
fn agent_that_is_not_installed_leads_to_an_escalation() {
    let place = project("[[role]]\nid = \"a\"\nagent = \"codex\"\nprompt = \"Do it.\"\n");
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
}

/// The same in YAML and JSON.
#[test]
fn configuration_may_be_written_in_yaml_or_json() {
    for (name, text) in [
        (
            "flow.yaml",
            "role:\n  - id: a\n    agent: command\n    command: [sh, -c, 'cat >/dev/null; echo ok']\n    prompt: Do it.\n",
        ),
        (
            "flow.json",
            r#"{"role":[{"id":"a","agent":"command","command":["sh","-c","cat >/dev/null; echo ok"],"prompt":"Do it."}]}"#,
        ),
    ] {
        let place = Place::new();
        place.write(name, text);
        assert_output!(
            place,
            place
                .run(&["run", "--config", name], "")
                .told(0, &[])
                .stderr
        );
    }
}

/// An error introduced before a resume is reported, and nothing is lost.
#[test]
fn error_before_a_resume_is_reported_and_can_be_fixed() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let good = role("a", "prompt = \"Do it.\"", login);
    let place = project(&good);
    place.run(&["run"], "").told(3, &[]);
    configure(&place, &good.replace("Do it.", "{{ taks }}"));
    assert_output!(place, place.run(&["resume"], "").told(2, &[]).stderr);
    configure(&place, &good);
    place.write("login", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
}
