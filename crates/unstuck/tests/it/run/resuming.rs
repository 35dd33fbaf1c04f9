//! Tests of resuming a run after Ctrl-C, a crash, a wait or a failed role.

use rustix::process::Signal;
use serde_json::json;

use super::{Running, configure_trusted, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Records the role that ran and prints it.
const RAN: &str = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo by $UNSTUCK_ROLE;";

/// An agent that runs until a file allows it to end.
const HANGS: &str = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; [ -f go ] && echo by $UNSTUCK_ROLE && exit 0; echo $$ > pid; echo ready; sleep 60";

fn needing(id: &str, needed: &str, script: &str) -> String {
    role(
        id,
        &format!("prompt = \"{{{{ outputs.{needed} }}}}\"\nneeds = [\"{needed}\"]"),
        script,
    )
}

/// Sets up an architect that succeeds, an implementer that hangs, and a tester after them.
fn hanging() -> Place {
    project(
        &[
            role("architect", "prompt = \"Plan.\"", RAN),
            needing("implementer", "architect", HANGS),
            needing("tester", "implementer", RAN),
        ]
        .concat(),
    )
}

/// Asserts that no process of an agent is left.
fn nothing_left(place: &Place) {
    let process = format!("/proc/{}", place.text("pid").trim());
    let alive = std::fs::read_to_string(format!("{process}/stat"));
    assert!(
        alive.is_err() || alive.unwrap().contains(") Z "),
        "{process} is left"
    );
}

/// S1-29, S1-31: Ctrl-C stops the agents and writes a checkpoint; the same command resumes from there.
#[test]
fn interrupted_run_resumes_at_the_running_role() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready").signal(Signal::INT);
    assert_output!(place, running.end().told(130, &[]).stderr);
    nothing_left(&place);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert_eq!(checkpoint["completed_agents"], json!(["architect"]));
    assert_eq!(checkpoint["failed_agent"], "implementer");

    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    assert_eq!(
        place.lines("ran"),
        ["architect", "implementer", "implementer", "tester"]
    );
}

/// Killing unstuck leaves no process, and completed roles are not re-run.
#[test]
fn killed_run_resumes_at_the_running_role() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready");
    running.kill();
    let runs = place.json(&["runs", "--json"], "");
    assert_eq!(
        (&runs[0]["status"], &runs[0]["supervised"]),
        (&json!("crashed"), &json!(false))
    );

    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    nothing_left(&place);
    assert_eq!(
        place.lines("ran"),
        ["architect", "implementer", "implementer", "tester"]
    );
    assert_eq!(place.of_run("roles/tester/output.md"), "by tester\n");
}

/// A wait for a usage limit survives a kill and ends at the stated time.
#[test]
fn wait_for_a_usage_limit_continues_after_a_kill() {
    let limited = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo fine && exit 0; echo \"Claude AI usage limit reached|$(($(date +%s)+2))\"; exit 1";
    let place = project(&role("a", "prompt = \"Do it.\"", limited));
    let mut running = Running::start(&place, &["run"]);
    running.until("[Auto-retry 1/3]");
    running.kill();
    assert_eq!(place.json(&["runs", "--json"], "")[0]["status"], "crashed");

    let resumed = place.run(&["resume"], "");
    resumed.told(0, &["a: waiting until", "[Attempt 2] a → success"]);
    let until = &place.events("waiting_until")[0]["until"];
    let again = &place.events("attempt_started")[1]["at"];
    assert!(moment(again) >= moment(until), "{again} is before {until}");
    assert_eq!(
        place.events("decision_made").len(),
        1,
        "nothing is decided again"
    );
}

fn moment(value: &serde_json::Value) -> unstuck_core::Timestamp {
    serde_json::from_value(value.clone()).unwrap()
}

/// A kill does not reset the attempts of a role.
#[test]
fn used_attempts_are_kept_after_a_kill() {
    let script = "cat >/dev/null; echo x >> ran; echo '503 Service Unavailable' >&2; [ $UNSTUCK_ATTEMPT -lt 3 ] && exit 1; [ -f go ] && exit 1; touch go; echo ready; sleep 60";
    let place = project(&role("a", "prompt = \"Do it.\"", script));
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("a| ready");
    running.kill();
    assert_output!(place, place.run(&["resume"], "").told(3, &[]).stderr);
    assert_eq!(place.lines("ran").len(), 5, "four tries, one of them twice");
}

/// S1-38, S1-31: example 3, succeeded roles are reused, the failed role runs with its changed configuration, then the
/// rest.
#[test]
fn failed_role_is_resumed_with_its_changed_configuration() {
    let place = Place::new();
    let with_tester = |script: &str| {
        configure_trusted(
            &place,
            &[
                role("architect", "prompt = \"Plan.\"", RAN),
                needing("implementer", "architect", RAN),
                needing("tester", "implementer", script),
                needing("reviewer", "tester", RAN),
            ]
            .concat(),
        );
    };
    with_tester("cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo it did not go well; exit 1");
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert_eq!(
        checkpoint["completed_agents"],
        json!(["architect", "implementer"])
    );
    assert_eq!(checkpoint["failed_agent"], "tester");

    with_tester(RAN);
    let resumed = place.run(&["run", "--resume-from-failure"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    let ran = place.lines("ran");
    assert_eq!(
        ran,
        [
            "architect",
            "implementer",
            "tester",
            "tester",
            "tester",
            "reviewer"
        ]
    );
}

/// A role with a failure that unstuck cannot recover can be resumed, too.
#[test]
fn failed_role_is_resumed() {
    let script = "cat >/dev/null; [ -f go ] && echo ok && exit 0; echo 'FAILED tests/a.py::b - assert 1 == 2'; exit 1";
    let place = project(&role("tester", "prompt = \"Test.\"", script));
    assert_output!(place, place.run(&["run"], "").told(1, &[]).stderr);
    place.write("go", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
}

/// S4-37: roles that finished out of order are reused as well.
#[test]
fn roles_that_finished_out_of_order_are_reused() {
    let fails = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; [ -f go ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(
        &[
            role("first", "prompt = \"One.\"", fails),
            role("second", "prompt = \"Two.\"", RAN),
            role("third", "prompt = \"Three.\"\nneeds = [\"second\"]", RAN),
            role(
                "last",
                "prompt = \"All.\"\nneeds = [\"first\", \"third\"]",
                RAN,
            ),
        ]
        .concat(),
    );
    place.run(&["run"], "").told(3, &[]);
    place.write("go", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    let mut ran = place.lines("ran");
    assert_eq!(ran.pop().unwrap(), "last");
    ran.sort();
    assert_eq!(ran, ["first", "first", "second", "third"]);
}

/// S1-22, S1-24, S1-35: the checkpoint contains what other tools need.
#[test]
fn checkpoint_contains_completed_and_failed_roles() {
    let place = project(
        &[
            role("architect", "prompt = \"Plan.\"", RAN),
            needing(
                "tester",
                "architect",
                "cat >/dev/null; echo 'Not logged in · Please run /login'; exit 1",
            ),
        ]
        .concat(),
    );
    place.run(&["run"], "").told(3, &[]);
    let checkpoint = place.json_of_run("checkpoint.json");
    let project = std::fs::canonicalize(place.project()).unwrap();
    assert_eq!(checkpoint["completed_agents"], json!(["architect"]));
    assert_eq!(checkpoint["failed_agent"], "tester");
    assert_eq!(
        checkpoint["outputs"],
        json!({"architect": "by architect\n"})
    );
    assert_eq!(
        checkpoint["config_path"],
        json!(project.join("unstuck.toml"))
    );
    assert_eq!(checkpoint["workspace"], json!(project));
    assert_eq!(checkpoint["error_type"], "auth_required");
    moment(&checkpoint["timestamp"]);
    let run = checkpoint["run"].as_str().unwrap();
    assert_eq!(checkpoint["resume"], format!("unstuck resume {run}"));
}

/// Outputs are stored by content, out of the agents' reach.
#[test]
fn outputs_are_reused_after_project_files_are_deleted() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready").signal(Signal::INT);
    running.end().told(130, &[]);
    std::fs::remove_dir_all(place.project().join(".unstuck")).unwrap();
    place.write("go", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    let prompt = place.of_run("roles/implementer/prompt.md");
    assert!(
        prompt.ends_with(
            "

by architect
"
        ),
        "{prompt}"
    );
}

/// S1-23, S1-31: if there is nothing to resume, the command says so and exits with 1.
#[test]
fn nothing_to_resume_is_reported() {
    let place = project(&role("a", "prompt = \"Do it.\"", RAN));
    for args in [&["resume"][..], &["run", "--resume-from-failure"]] {
        assert_output!(place, place.run(args, "").told(1, &[]).stderr);
    }
    place.run(&["run"], "").told(0, &[]);
    for args in [&["resume"][..], &["run", "--resume-from-failure"]] {
        assert_output!(place, place.run(args, "").told(1, &[]).stderr);
    }
    let run = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_output!(place, place.run(&["resume", &run], "").told(1, &[]).stderr);
    assert_eq!(place.lines("ran"), ["a"]);
}

#[test]
fn run_active_in_another_process_is_left_alone() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready");
    place
        .run(&["resume"], "")
        .told(1, &["is already active (pid "]);
    running.signal(Signal::TERM);
    running.end().told(143, &["Stopped"]);
    assert_eq!(place.lines("ran"), ["architect", "implementer"]);
}

/// Resuming answers a pending escalation.
#[test]
fn resuming_answers_the_escalation() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(&role("a", "prompt = \"Do it.\"", login));
    assert_output!(place, place.run(&["run"], "").told(3, &[]).stderr);
    assert_output!(place, place.run(&["resume"], "").told(3, &[]).stderr);
    place.write("login", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    assert_eq!(place.json_of_run("state.json")["status"], "recovered");
    assert_eq!(place.events("recovery_resolved").len(), 2);
}

/// A run that keeps waiting for human input continues after a manual fix.
#[test]
fn waiting_run_continues_after_a_manual_fix() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(&role("a", "prompt = \"Do it.\"", login));
    let mut running = Running::start(&place, &["run", "--wait"]);
    running.until("waiting for you to fix this");
    place.write("login", "");
    place.run(&["resume"], "").told(0, &[]);
    running.end().told(0, &["[Attempt 2] a → success"]);
}

/// One answer reaches all roles that wait for it, even while others run.
#[test]
fn all_waiting_roles_continue_after_the_answer() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    // Fails repeatedly, so that there is always something to record.
    let busy = "cat >/dev/null; [ -f login ] && echo ok && exit 0; sleep 0.02; echo '503 Service Unavailable' >&2; exit 1";
    let retries = "prompt = \"C\"\n[role.error_recovery.server_error]\nmax_retries = 500";
    let place = project(
        &[
            "[run]\nwait_for_human = true\n".to_owned(),
            role("a", "prompt = \"A\"", login),
            role("b", "prompt = \"B\"", login),
            role("c", retries, busy),
        ]
        .concat(),
    );
    let mut running = Running::start(&place, &["run"]);
    running.until("waiting for you to fix this");
    running.until("waiting for you to fix this");
    place.write("login", "");
    place.run(&["resume"], "").told(0, &[]);
    running
        .end()
        .told(0, &["[Attempt 2] a → success", "[Attempt 2] b → success"]);
}
