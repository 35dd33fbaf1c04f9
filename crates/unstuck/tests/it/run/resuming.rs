//! Taking a run up again: after Ctrl-C, a crash, a wait, a failed role.

use rustix::process::Signal;
use serde_json::json;

use super::{Running, configure_trusted, project, role};
use crate::Place;

/// Writes down who ran, and says so.
const RAN: &str = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo by $UNSTUCK_ROLE;";

/// An agent that works until somebody allows it to end.
const HANGS: &str = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; [ -f go ] && echo by $UNSTUCK_ROLE && exit 0; echo $$ > pid; echo ready; sleep 60";

fn needing(id: &str, needed: &str, script: &str) -> String {
    role(
        id,
        &format!("prompt = \"{{{{ outputs.{needed} }}}}\"\nneeds = [\"{needed}\"]"),
        script,
    )
}

/// An architect who is done, an implementer who hangs, and a tester after them.
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

/// That no process of an agent is left.
fn nothing_left(place: &Place) {
    let process = format!("/proc/{}", place.text("pid").trim());
    let alive = std::fs::read_to_string(format!("{process}/stat"));
    assert!(
        alive.is_err() || alive.unwrap().contains(") Z "),
        "{process} is left"
    );
}

/// S1-29, S1-31: Ctrl-C stops the agents and keeps a checkpoint; the same command goes on where it stopped.
#[test]
fn after_an_interrupt_it_goes_on_at_the_role_that_was_under_way() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready").signal(Signal::INT);
    running
        .end()
        .told(130, &["Stopped: 1 of 3 roles", "go on: unstuck resume"]);
    nothing_left(&place);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert_eq!(checkpoint["completed_agents"], json!(["architect"]));
    assert_eq!(checkpoint["failed_agent"], "implementer");

    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    resumed.told(0, &["Reusing: architect. Starting: implementer\n", "Done"]);
    assert_eq!(
        place.lines("ran"),
        ["architect", "implementer", "implementer", "tester"]
    );
}

/// A kill of unstuck itself leaves no process, and what was done is not done again.
#[test]
fn after_a_kill_it_goes_on_at_the_role_that_was_under_way() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready");
    running.kill();
    let runs = place.json(&["runs", "--json"], "");
    assert_eq!(
        (&runs[0]["status"], &runs[0]["driven"]),
        (&json!("crashed"), &json!(false))
    );

    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    resumed.told(
        0,
        &[
            "Reusing: architect. Starting: implementer\n",
            "[Attempt 1] implementer → cut off, it is made again",
        ],
    );
    nothing_left(&place);
    assert_eq!(
        place.lines("ran"),
        ["architect", "implementer", "implementer", "tester"]
    );
    assert_eq!(place.of_run("roles/tester/output.md"), "by tester\n");
}

/// A wait for a usage limit survives a kill, and ends at the stated moment.
#[test]
fn a_wait_for_a_usage_limit_goes_on_after_a_kill() {
    let limited = "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo fine && exit 0; echo \"Claude AI usage limit reached|$(($(date +%s)+2))\"; exit 1";
    let place = project(&role("a", "prompt = \"Do it.\"", limited));
    let mut running = Running::start(&place, &["run"]);
    running.until("[Auto-retry 1/3]");
    running.kill();
    assert_eq!(place.json(&["runs", "--json"], "")[0]["status"], "crashed");

    let resumed = place.run(&["resume"], "");
    resumed.told(0, &["a waits until", "[Attempt 2] a → success"]);
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

/// A kill does not give a role its used attempts back.
#[test]
fn attempts_that_were_used_stay_used() {
    let script = "cat >/dev/null; echo x >> ran; echo '503 Service Unavailable' >&2; [ $UNSTUCK_ATTEMPT -lt 3 ] && exit 1; [ -f go ] && exit 1; touch go; echo ready; sleep 60";
    let place = project(&role("a", "prompt = \"Do it.\"", script));
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("a| ready");
    running.kill();
    place
        .run(&["resume"], "")
        .told(3, &["[Auto-retry 3/3]", "a needs a person"]);
    assert_eq!(place.lines("ran").len(), 5, "four tries, one of them twice");
}

/// S1-38, S1-31: example 3, what succeeded is reused, the failed role goes on with its changed config, then the rest.
#[test]
fn the_failed_role_goes_on_with_what_was_changed_about_it() {
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
    place.run(&["run"], "").told(3, &["tester needs a person"]);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert_eq!(
        checkpoint["completed_agents"],
        json!(["architect", "implementer"])
    );
    assert_eq!(checkpoint["failed_agent"], "tester");

    with_tester(RAN);
    let resumed = place.run(&["run", "--resume-from-failure"], "");
    resumed.told(
        0,
        &[
            "Reusing: architect, implementer. Starting: tester\n",
            "Done",
        ],
    );
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

/// A role that failed in a way that is not unstuck's to mend can be taken up again, too.
#[test]
fn a_failed_role_is_taken_up_again() {
    let script = "cat >/dev/null; [ -f go ] && echo ok && exit 0; echo 'FAILED tests/a.py::b - assert 1 == 2'; exit 1";
    let place = project(&role("tester", "prompt = \"Test.\"", script));
    place
        .run(&["run"], "")
        .told(1, &["tester failed", "Failed: tester"]);
    place.write("go", "");
    place
        .run(&["resume"], "")
        .told(0, &["Starting: tester", "Done"]);
}

/// S4-37: what finished out of order is reused as well.
#[test]
fn what_finished_out_of_order_is_reused() {
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
    place.run(&["run"], "").told(3, &["first needs a person"]);
    place.write("go", "");
    place
        .run(&["resume"], "")
        .told(0, &["Reusing: second, third. Starting: first\n"]);
    let mut ran = place.lines("ran");
    assert_eq!(ran.pop().unwrap(), "last");
    ran.sort();
    assert_eq!(ran, ["first", "first", "second", "third"]);
}

/// S1-22, S1-24, S1-35: the checkpoint has what other tools need.
#[test]
fn the_checkpoint_says_what_is_done_and_what_failed() {
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

/// Outputs are kept out of the agents' reach, by what they are.
#[test]
fn outputs_are_reused_although_the_files_in_the_project_are_gone() {
    let place = hanging();
    let mut running = Running::start(&place, &["run", "-v"]);
    running.until("implementer| ready").signal(Signal::INT);
    running.end().told(130, &[]);
    std::fs::remove_dir_all(place.project().join(".unstuck")).unwrap();
    place.write("go", "");
    place
        .run(&["resume"], "")
        .told(0, &["Reusing: architect. Starting: implementer\n"]);
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

/// S1-23, S1-31: where there is nothing to resume, it says so and ends with 1.
#[test]
fn where_there_is_nothing_to_resume_it_says_so() {
    let place = project(&role("a", "prompt = \"Do it.\"", RAN));
    for args in [&["resume"][..], &["run", "--resume-from-failure"]] {
        place.run(args, "").told(1, &["nothing to resume"]);
    }
    place.run(&["run"], "").told(0, &[]);
    for args in [&["resume"][..], &["run", "--resume-from-failure"]] {
        place.run(args, "").told(1, &["nothing to resume"]);
    }
    let run = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    place.run(&["resume", &run], "").told(1, &["it is done"]);
    assert_eq!(place.lines("ran"), ["a"]);
}

#[test]
fn a_run_that_another_process_drives_is_left_alone() {
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

/// Resuming is an answer to an open question.
#[test]
fn resuming_answers_what_was_asked() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(&role("a", "prompt = \"Do it.\"", login));
    place.run(&["run"], "").told(3, &["a needs a person"]);
    place.run(&["resume"], "").told(3, &["a needs a person"]);
    place.write("login", "");
    place.run(&["resume"], "").told(0, &["Done after recovery"]);
    assert_eq!(place.json_of_run("state.json")["status"], "recovered");
    assert_eq!(place.events("recovery_resolved").len(), 2);
}

/// A run that stays for a person goes on when they have seen to it.
#[test]
fn a_run_that_waits_for_a_person_goes_on_when_they_have_seen_to_it() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let place = project(&role("a", "prompt = \"Do it.\"", login));
    let mut running = Running::start(&place, &["run", "--wait"]);
    running.until("waiting until you have seen to it");
    place.write("login", "");
    place.run(&["resume"], "").told(0, &[]);
    running.end().told(0, &["[Attempt 2] a → success"]);
}

/// One answer is heard by all that wait for it, also while others work.
#[test]
fn all_roles_that_wait_for_a_person_go_on_at_their_answer() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    // Fails again and again, so that there always is something to write down.
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
    running.until("waiting until you have seen to it");
    running.until("waiting until you have seen to it");
    place.write("login", "");
    place.run(&["resume"], "").told(0, &[]);
    running
        .end()
        .told(0, &["[Attempt 2] a → success", "[Attempt 2] b → success"]);
}
