//! What is wrong with a configuration is found before anything runs.

use super::{configure, project, role};
use crate::Place;

const RAN: &str = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo done";

/// That it is refused with all of this, and nothing was run.
#[track_caller]
fn refused(place: &Place, parts: &[&str]) {
    place.run(&["run"], "").told(2, parts);
    assert!(place.lines("ran").is_empty());
    assert!(
        !place.project().join(".unstuck").exists(),
        "there is no run"
    );
}

#[test]
fn roles_that_wait_for_each_other_are_found() {
    let place = project(
        &[
            role("a", "prompt = \"A\"\nneeds = [\"c\"]", RAN),
            role("b", "prompt = \"B\"\nneeds = [\"a\"]", RAN),
            role("c", "prompt = \"C\"\nneeds = [\"b\"]", RAN),
        ]
        .concat(),
    );
    refused(
        &place,
        &["these roles wait for each other", " → ", "unstuck.toml"],
    );
}

#[test]
fn a_needed_role_that_there_is_not_is_found() {
    let place = project(
        &[
            role("planner", "prompt = \"A\"", RAN),
            role("builder", "prompt = \"B\"\nneeds = [\"planer\"]", RAN),
        ]
        .concat(),
    );
    refused(&place, &["`planer`", "did you mean `planner`?"]);
}

#[test]
fn two_roles_of_one_name_are_found() {
    let place = project(
        &[
            role("a", "prompt = \"A\"", RAN),
            role("a", "prompt = \"B\"", RAN),
        ]
        .concat(),
    );
    refused(&place, &["`a`", "unstuck.toml"]);
}

#[test]
fn an_agent_that_there_is_not_is_found() {
    let place = project("[[role]]\nid = \"a\"\nagent = \"claud\"\nprompt = \"Do it.\"\n");
    refused(&place, &["`claud`", "did you mean `claude`?"]);
}

#[test]
fn a_misspelt_key_is_found_with_its_line() {
    let place = project(&role("a", "promt = \"Do it.\"", RAN));
    refused(
        &place,
        &["unstuck.toml:6", "promt", "did you mean `prompt`?"],
    );
}

#[test]
fn all_mistakes_are_told_at_once() {
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
    refused(&place, &["taks", "nobody", "not a regular expression"]);
}

#[test]
fn without_roles_it_says_how_to_begin() {
    let place = Place::new();
    place
        .run(&["run"], "")
        .told(2, &["there is no unstuck.toml", "unstuck run --help"]);
    configure(&place, "");
    place.run(&["run"], "").told(2, &["has no [[role]] to run"]);
}

/// A person is told where an agent that is not installed was looked for.
#[test]
fn an_agent_that_is_not_installed_is_a_question() {
    let place = project("[[role]]\nid = \"a\"\nagent = \"codex\"\nprompt = \"Do it.\"\n");
    place
        .run(&["run"], "")
        .told(3, &["a → cli_not_found", "hint: Install the agent"]);
}

/// The same in YAML and JSON.
#[test]
fn the_configuration_may_be_written_in_yaml_or_json() {
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
        place
            .run(&["run", "--config", name], "")
            .told(0, &["Done: 1 role"]);
    }
}

/// A mistake that came in before a resume is told, and nothing is lost by it.
#[test]
fn a_mistake_before_a_resume_is_told_and_mended() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let good = role("a", "prompt = \"Do it.\"", login);
    let place = project(&good);
    place.run(&["run"], "").told(3, &[]);
    configure(&place, &good.replace("Do it.", "{{ taks }}"));
    place.run(&["resume"], "").told(2, &["taks"]);
    configure(&place, &good);
    place.write("login", "");
    place.run(&["resume"], "").told(0, &["Done after recovery"]);
}
