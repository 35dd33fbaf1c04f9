//! Tests of prompts with placeholders, checked before anything runs, and of partial pipelines.

use super::{project, role};
use crate::output_snapshot::assert_output;

const KEEP: &str = "cat > got-$UNSTUCK_ROLE-$UNSTUCK_INSTANCE; echo $UNSTUCK_ROLE >> ran; echo by $UNSTUCK_ROLE $UNSTUCK_INSTANCE";

#[test]
fn placeholders_are_filled() {
    let place = project(&[
        role("planner", "prompt = \"Plan {{ task }}.\"", "cat >/dev/null; echo the plan"),
        role(
            "builder",
            "prompt = \"{{ role }}: {{ task }} by {{ outputs.planner | trim }}, round {{ iteration }}/{{ max_iterations }}. {{ file('rules.md') | trim }}!\"\nneeds = [\"planner\"]",
            KEEP,
        ),
    ].concat());
    place.write("rules.md", "No tabs\n");
    assert_output!(
        place,
        place
            .run(&["run", "--task", "a shop"], "")
            .told(0, &[])
            .stderr
    );
    assert_eq!(
        place.text("got-builder-1"),
        "builder: a shop by the plan, round 1/1. No tabs!"
    );
}

#[test]
fn prompt_may_be_a_file_and_task_may_be_configured() {
    let place = project(&format!(
        "[run]\ntask = \"a shop\"\n{}",
        role("a", "prompt_file = \"prompts/a.md\"", KEEP)
    ));
    place.write("prompts/a.md", "Build {{ task }}.\n");
    place.run(&["run"], "").told(0, &[]);
    assert_eq!(place.text("got-a-1"), "Build a shop.");
    place.run(&["run", "--task", "a blog"], "").told(0, &[]);
    assert_eq!(place.text("got-a-1"), "Build a blog.");
}

/// An undefined variable is found before anything runs, with its name and the closest match.
#[test]
fn misspelled_placeholder_is_found_before_anything_runs() {
    for prompt in [
        "{{ taks }}",
        "{{ outputs.planer }}",
        "{{ file('rulse.md') }}",
    ] {
        let place = project(
            &[
                role("planner", "prompt = \"Plan.\"", KEEP),
                role(
                    "builder",
                    &format!("prompt = \"{prompt}\"\nneeds = [\"planner\"]"),
                    KEEP,
                ),
            ]
            .concat(),
        );
        place.write("rules.md", "");
        assert_output!(
            place,
            place.run(&["run", "--task", "x"], "").told(2, &[]).stderr
        );
        assert!(place.lines("ran").is_empty());
        assert!(
            !place.project().join(".unstuck").exists(),
            "there is no run"
        );
    }
}

#[test]
fn missing_prompt_file_is_found_before_anything_runs() {
    let place = project(
        &[
            role("planner", "prompt = \"Plan.\"", KEEP),
            role("builder", "prompt_file = \"build.md\"", KEEP),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(2, &[]).stderr);
    assert!(place.lines("ran").is_empty());
}

#[test]
fn output_that_may_not_exist_yet_is_found_before_anything_runs() {
    let place = project(
        &[
            role("planner", "prompt = \"Plan.\"", KEEP),
            role("builder", "prompt = \"{{ outputs.planner }}\"", KEEP),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(2, &[]).stderr);
}

#[test]
fn missing_task_is_reported() {
    let place = project(&role("a", "prompt = \"Do {{ task }}\"", KEEP));
    assert_output!(place, place.run(&["run"], "").told(2, &[]).stderr);
    assert!(place.lines("ran").is_empty());
}

/// A role's output is truncated in other prompts, with a note.
#[test]
fn long_output_is_truncated_in_other_prompts() {
    let place = project(
        &[
            role(
                "talker",
                "prompt = \"Talk.\"\nmax_output = 5",
                "cat >/dev/null; echo 0123456789",
            ),
            role(
                "reader",
                "prompt = \"{{ outputs.talker }}\"\nneeds = [\"talker\"]",
                KEEP,
            ),
        ]
        .concat(),
    );
    place.run(&["run"], "").told(0, &[]);
    assert_eq!(
        place.text("got-reader-1"),
        "01234\n[… truncated: 6 more characters]"
    );
    assert_eq!(
        place.of_run("roles/talker/output.md"),
        "0123456789\n",
        "the whole is kept"
    );
}

#[test]
fn role_may_have_several_instances() {
    let place = project(
        &[
            role(
                "worker",
                "prompt = \"{{ instance }} of {{ instances }}\"\ninstances = 3",
                KEEP,
            ),
            role(
                "judge",
                "prompt = \"{{ outputs.worker }}\"\nneeds = [\"worker\"]",
                KEEP,
            ),
        ]
        .concat(),
    );
    place.run(&["run"], "").told(0, &["4 attempts"]);
    for number in 1..=3 {
        assert_eq!(
            place.text(&format!("got-worker-{number}")),
            format!("{number} of 3")
        );
    }
    let all = place.text("got-judge-1");
    assert_eq!(
        all.split_whitespace().collect::<Vec<_>>().join(" "),
        "by worker 1 by worker 2 by worker 3"
    );
}

/// S4-37: outputs of other roles are kept when an optional role fails.
#[test]
fn other_roles_continue_without_a_failed_optional_role() {
    let place = project(
        &[
            role(
                "extra",
                "prompt = \"Try.\"\noptional = true",
                "cat >/dev/null; echo 'FAILED tests/a.py::b - assert 1 == 2'; exit 1",
            ),
            role(
                "last",
                "prompt = \"End. {{ outputs.extra }}\"\nneeds = [\"extra\"]",
                KEEP,
            ),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(place.text("got-last-1"), "End.");
}

/// Other roles also continue when an optional role would need human input.
#[test]
fn optional_role_that_needs_human_input_does_not_block_others() {
    let place = project(
        &[
            role(
                "extra",
                "prompt = \"Try.\"\noptional = true",
                "cat >/dev/null; echo 'Not logged in · Please run /login'; exit 1",
            ),
            role("last", "prompt = \"End.\"\nneeds = [\"extra\"]", KEEP),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(place.lines("ran"), ["last"]);
}

/// One role alone, with the needed outputs of an earlier run.
#[test]
fn partial_pipeline_uses_outputs_of_an_earlier_run() {
    let place = project(
        &[
            role(
                "a",
                "prompt = \"A\"",
                "cat >/dev/null; echo a >> ran; date +%N",
            ),
            role("b", "prompt = \"{{ outputs.a }}\"\nneeds = [\"a\"]", KEEP),
            role("c", "prompt = \"{{ outputs.b }}\"\nneeds = [\"b\"]", KEEP),
        ]
        .concat(),
    );
    assert_output!(
        place,
        place.run(&["run", "--only", "b"], "").told(1, &[]).stderr
    );
    place.run(&["run"], "").told(0, &[]);
    let built_on = place.text("got-b-1");
    std::fs::remove_file(place.project().join("ran")).unwrap();
    std::fs::remove_file(place.project().join("got-b-1")).unwrap();
    assert_output!(
        place,
        place.run(&["run", "--only", "b"], "").told(0, &[]).stderr
    );
    assert_eq!(
        (place.lines("ran"), place.text("got-b-1")),
        (vec!["b".to_owned()], built_on)
    );
    assert_output!(
        place,
        place.run(&["run", "--from", "b"], "").told(0, &[]).stderr
    );
    assert_eq!(place.lines("ran"), ["b", "b", "c"]);
    assert_output!(
        place,
        place.run(&["run", "--only", "d"], "").told(2, &[]).stderr
    );
}

#[test]
fn agent_gets_its_role_in_the_environment() {
    let script = "cat >/dev/null; env | grep '^UNSTUCK_\\(ROLE\\|ITERATION\\|INSTANCE\\|ATTEMPT\\)=' | sort; echo $KEY; pwd";
    let place = project(&role(
        "a",
        "prompt = \"Look.\"\nenv = { KEY = \"value\" }",
        script,
    ));
    place.run(&["run"], "").told(0, &[]);
    let folder = std::fs::canonicalize(place.project()).unwrap();
    assert_eq!(
        place.of_run("roles/a/output.md"),
        format!(
            "UNSTUCK_ATTEMPT=1\nUNSTUCK_INSTANCE=1\nUNSTUCK_ITERATION=1\nUNSTUCK_ROLE=a\nvalue\n{}\n",
            folder.display()
        )
    );
}

/// A task is required only if a role that will run uses it.
#[test]
fn role_that_does_not_run_needs_no_task() {
    let planner = role(
        "planner",
        "prompt = \"Plan {{ task }}\"",
        "cat; echo; echo planned",
    );
    let builder = role(
        "builder",
        "prompt = \"Your task: {{ outputs.planner }}\"\nneeds = [\"planner\"]",
        "cat",
    );
    let place = project(&format!("{planner}{builder}"));
    assert_output!(place, place.run(&["run"], "").told(2, &[]).stderr);
    place.run(&["run", "--task", "a poem"], "").told(0, &[]);
    place.run(&["run", "--only", "builder"], "").told(0, &[]);
    place.run(&["run", "--from", "builder"], "").told(0, &[]);
    assert_output!(
        place,
        place
            .run(&["run", "--only", "planner"], "")
            .told(2, &[])
            .stderr
    );
}
