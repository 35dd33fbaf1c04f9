//! Tests of `[loop]`: roles are repeated until the work is done, within limits.

use serde_json::json;

use super::{Running, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Saves the prompt of each iteration and records the role that ran.
const KEEP: &str = "cat > got-$UNSTUCK_ROLE-$UNSTUCK_ITERATION; echo $UNSTUCK_ROLE >> ran;";

/// Sets up a loop with one worker that runs a script in each iteration.
fn working(settings: &str, script: &str) -> Place {
    let worker = role(
        "worker",
        "prompt = \"Work on.\"",
        &format!("{KEEP} {script}"),
    );
    project(&format!("[loop]\n{settings}\n{worker}"))
}

fn iterations(place: &Place) -> usize {
    place.events("iteration_finished").len()
}

#[test]
fn promise_ends_the_loop() {
    let place = working(
        "until = \"<promise>DONE</promise>\"\nmax_iterations = 9",
        "date +%N >> log; [ $UNSTUCK_ITERATION -ge 3 ] && echo '<promise>DONE</promise>'; echo worked",
    );
    let ended = place.run(&["run"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(iterations(&place), 3);
}

/// Mentioning the promise does not give it.
#[test]
fn mentioned_promise_does_not_end_the_loop() {
    let place = working(
        "until = \"<promise>DONE</promise>\"\nmax_iterations = 2",
        "echo 'I will say <promise>DONE</promise> when it works.'; date; echo Not yet.",
    );
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
}

/// Only the configured role can give the promise.
#[test]
fn only_the_named_role_can_promise() {
    let settings = "[loop]\nmax_iterations = 3\n[loop.until]\npromise = { role = \"judge\", text = \"ALL DONE\" }\n";
    let place = project(
        &[
            settings.to_owned(),
            role(
                "worker",
                "prompt = \"Work.\"",
                "cat >/dev/null; echo ALL DONE, I think",
            ),
            role(
                "judge",
                "prompt = \"Judge.\"\nneeds = [\"worker\"]",
                "cat >/dev/null; [ $UNSTUCK_ITERATION -ge 2 ] && echo ALL DONE; echo judged",
            ),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
}

#[test]
fn passing_check_ends_the_loop() {
    let place = working(
        "until.check = \"test $(wc -l < ran) -ge 2 || { echo two are wanted; exit 1; }\"",
        "echo worked",
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let next = place.text("got-worker-2");
    assert!(
        next.contains("Work on.") && next.contains("two are wanted"),
        "{next}"
    );
}

/// Unmet conditions are added to the next prompt once, at the placeholder.
#[test]
fn unmet_conditions_reach_the_next_prompt() {
    let more = "prompt = \"Round {{ iteration }} of {{ max_iterations }}. {% if feedback %}Undone: {{ feedback }}{% endif %}\"";
    let script = format!("{KEEP} [ $UNSTUCK_ITERATION -ge 2 ] && touch made; echo worked");
    let place = project(&format!(
        "[loop]\nmax_iterations = 4\nuntil.check = \"test -f made || {{ echo nothing is made; exit 1; }}\"\n{}",
        role("worker", more, &script)
    ));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(place.text("got-worker-1"), "Round 1 of 4.");
    let next = place.text("got-worker-2");
    assert!(
        next.starts_with("Round 2 of 4. Undone: the check"),
        "{next}"
    );
    assert_eq!(
        next.matches("nothing is made").count(),
        2,
        "in the check and in what it wrote: {next}"
    );
}

/// Outputs of the previous iteration are available in the next one.
#[test]
fn role_sees_outputs_of_the_previous_iteration() {
    let place = project(
        &[
            "[loop]\nmax_iterations = 2\n".to_owned(),
            role(
                "worker",
                "prompt = \"Critic: {{ outputs.critic }}\"",
                &format!("{KEEP} date +%N >> log; echo work $UNSTUCK_ITERATION"),
            ),
            role(
                "critic",
                "prompt = \"{{ outputs.worker }}\"\nneeds = [\"worker\"]",
                &format!("{KEEP} cat log >> log2; echo complaint $UNSTUCK_ITERATION"),
            ),
        ]
        .concat(),
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(place.text("got-worker-1"), "Critic:");
    assert!(
        place
            .text("got-worker-2")
            .starts_with("Critic: complaint 1")
    );
    assert_eq!(place.text("got-critic-2"), "work 2");
}

/// All conditions must be met unless one is configured to suffice.
#[test]
fn one_condition_suffices_if_configured() {
    let both = "max_iterations = 3\nstuck_after = 9\n[loop.until]\npromise = \"DONE\"\ncheck = \"test $(wc -l < ran) -ge 3\"\n";
    let script = "echo DONE";
    let place = working(both, script);
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let place = working(&format!("{both}any = true"), script);
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
}

/// A permanently failed role is reported to the next iteration, which starts over.
#[test]
fn all_roles_must_succeed() {
    let place = working(
        "max_iterations = 5\nuntil.all_roles = true",
        "[ $UNSTUCK_ITERATION -ge 3 ] && echo ok && exit 0; date +%N >> log; echo 'FAILED tests/a.py::b - assert 1 == 2'; exit 1",
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let next = place.text("got-worker-2");
    assert!(
        next.contains("worker failed") && next.contains("tests/a.py::b"),
        "{next}"
    );
}

/// S3-05: an escalation follows when the iterations are used up, and resuming allows as many again.
#[test]
fn exhausted_iterations_escalate_and_resuming_allows_more() {
    let place = working(
        "until = \"DONE\"\nmax_iterations = 2",
        "date +%N >> log; [ $UNSTUCK_ITERATION -ge 3 ] && echo DONE; echo worked",
    );
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.json_of_run("escalation.json")["type"], "hiccup");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    assert_eq!(place.lines("ran").len(), 3);
}

#[test]
fn number_of_iterations_can_be_set() {
    let place = working("until = \"DONE\"", "date +%N >> log; echo worked");
    assert_output!(
        place,
        place
            .run(&["run", "--max-iterations", "1"], "")
            .told(3, &[])
            .stderr
    );
    assert_eq!(iterations(&place), 1);
}

/// Iterations without changes and with the same unmet conditions are stuck, long before the last one.
#[test]
fn loop_without_changes_is_stuck() {
    let place = Place::new();
    super::configure(
        &place,
        &format!(
            "[loop]\nuntil.check = \"test -f made\"\nstuck_after = 2\n{}",
            role(
                "worker",
                "prompt = \"Work.\"",
                "cat >/dev/null; echo x >> ../ran; echo worked"
            )
        ),
    );
    let ended = place.run(&["run"], "");
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.json_of_run("escalation.json")["trigger"], "STUCK");
    assert_eq!(iterations(&place), 2);
    place.write("made", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
}

/// A loop that makes changes is not stuck, although the same check fails.
#[test]
fn loop_with_changes_is_not_stuck() {
    let place = working(
        "until.check = \"test -f made\"\nstuck_after = 2\nmax_iterations = 4",
        "echo $UNSTUCK_ITERATION >> progress; echo worked",
    );
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
}

/// S3-05: a stuck loop stops or continues as configured.
#[test]
fn stuck_loop_stops_or_continues_as_configured() {
    let script = "echo worked";
    let settings = |on_stuck: &str| {
        format!(
            "until.check = \"test -f made\"\nstuck_after = 2\nmax_iterations = 3\non_stuck = \"{on_stuck}\""
        )
    };
    let quiet = |settings: &str| {
        let worker = role(
            "worker",
            "prompt = \"Work.\"",
            &format!("cat >/dev/null; {script}"),
        );
        project(&format!("[loop]\n{settings}\n{worker}"))
    };
    let place = quiet(&settings("stop"));
    assert_output!(place, place.run(&["run"], "").told(1, &[]).stderr);
    let place = quiet(&settings("continue"));
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
}

/// Two roles that undo each other's work are detected and named.
#[test]
fn roles_that_undo_each_other_are_detected() {
    let place = Place::new();
    super::git(&place, &["init", "-q"]);
    let writes = |id: &str, needs: &str, text: &str| {
        role(
            id,
            &format!("prompt = \"Work.\"{needs}"),
            &format!("cat >/dev/null; echo {text} > style; echo done $UNSTUCK_ITERATION"),
        )
    };
    super::configure(
        &place,
        &format!(
            "[loop]\nuntil.check = \"test -f made || {{ echo $RANDOM; date +%N; exit 1; }}\"\nstuck_after = 3\nmax_iterations = 9\n{}{}",
            writes("tabs", "", "tabs"),
            writes("spaces", "\nneeds = [\"tabs\"]", "spaces")
        ),
    );
    let ended = place.run(&["run"], "");
    ended.told(3, &["undo each other's changes", "tabs", "spaces"]);
    assert!(iterations(&place) < 9, "{}", ended.stderr);
}

/// A loop killed in the middle resumes in the same iteration.
#[test]
fn loop_resumes_in_the_interrupted_iteration() {
    let place = project(&[
        "[loop]\nmax_iterations = 3\n".to_owned(),
        role("a", "prompt = \"A {{ iteration }}\"", "cat >/dev/null; echo a$UNSTUCK_ITERATION >> ran; echo a"),
        role("b", "prompt = \"B\"\nneeds = [\"a\"]", "cat >/dev/null; echo b$UNSTUCK_ITERATION >> ran; [ $UNSTUCK_ITERATION = 2 ] && [ ! -f go ] && echo ready && sleep 60; echo b"),
    ].concat());
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("b| ready");
    running.kill();
    place.write("go", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    assert_eq!(
        place.lines("ran"),
        ["a1", "b1", "a2", "b2", "b2", "a3", "b3"]
    );
    let numbers: Vec<_> = place
        .events("iteration_started")
        .iter()
        .map(|one| one["iteration"].clone())
        .collect();
    assert_eq!(numbers, [json!(1), json!(2), json!(3)]);
}
