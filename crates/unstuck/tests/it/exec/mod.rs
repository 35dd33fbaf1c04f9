//! `unstuck exec`: one command, supervised.

mod agents;
mod full_disk;
mod limits;
mod offline;
mod patience;
mod processes;
pub(crate) mod stops;
mod streams;
mod terminal;
mod trouble;
mod waking;

use crate::Place;
use crate::output_snapshot::assert_output;

/// Waits that are short and exact.
const QUICK: &str = "[policy]\ntemplate = \"standard\"\njitter = \"none\"\nbackoffBase = 0.05\n";

/// Returns a script that fails with a text until its `last` execution.
fn flaky(last: u32, text: &str) -> String {
    format!(
        "echo x >> count; [ $(wc -l < count) -ge {last} ] && echo done && exit 0; echo '{text}' >&2; exit 1"
    )
}

fn executions(place: &Place) -> usize {
    let count = std::fs::read_to_string(place.project().join("count")).unwrap();
    count.lines().count()
}

/// Returns the event names of the only run.
fn events(place: &Place) -> Vec<String> {
    let name = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["event"].as_str().unwrap().to_owned()
    };
    place.of_run("events.jsonl").lines().map(name).collect()
}

#[test]
fn help_groups_options_and_hides_environment_values() {
    let place = Place::new();
    let mut command = place.command(&["exec", "-h"]);
    let output = command.env("UNSTUCK_POLICY", "my-own").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert_output!(place, help);
    assert!(!help.contains("my-own"), "{help}");
}

#[test]
fn output_is_passed_through_unchanged() {
    let place = Place::new();
    let ended = place.run(
        &[
            "exec",
            "--",
            "sh",
            "-c",
            "printf 'out\\033[1m\\0x'; printf err >&2; cat",
        ],
        "piped",
    );
    assert_eq!(ended.code, 0);
    assert_eq!(ended.stdout, "out\u{1b}[1m\0xpiped");
    assert_eq!(
        ended.stderr, "err",
        "a command that works is not talked about"
    );
}

/// S0-19, S0-28, S0-33, S1-25, S1-30, S4-04: execute, classify, wait, repeat; each retry is reported with its number.
#[test]
fn flaky_command_recovers_and_reports_it() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = flaky(3, "503 Service Unavailable");
    let ended = place.run(&["exec", "--", "sh", "-c", &script], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "done\n"));
    assert_output!(place, ended.stderr);
    assert_eq!(executions(&place), 3);
}

/// S0-17, S0-21, S0-32, S4-10, S4-31: every attempt stays in the history, and the episode has its count and level.
#[test]
fn run_files_contain_the_history() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = flaky(2, "529 Overloaded");
    let ended = place.run(&["exec", "--json", "-q", "--", "sh", "-c", &script], "");
    let result: serde_json::Value =
        serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["outcome"], "recovered");
    assert_eq!(
        (&result["attempts"], &result["success"]),
        (&2.into(), &true.into())
    );
    assert_eq!(
        events(&place),
        [
            "run_started",
            "attempt_started",
            "attempt_failed",
            "decision_made",
            "waiting_until",
            "attempt_started",
            "attempt_succeeded",
            "run_finished"
        ]
    );
    let episode: serde_json::Value = serde_json::from_str(&place.of_run("episodes.jsonl")).unwrap();
    assert_eq!(episode["retry_count"], 1);
    assert_eq!(episode["recovery_level"], "same");
    assert_eq!(episode["success"], true);
    assert_eq!(place.of_run("attempt-1/stderr.log"), "529 Overloaded\n");
    assert_eq!(place.of_run("attempt-2/stdout.log"), "done\n");
    let ignored = std::fs::read_to_string(place.project().join(".unstuck/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}

/// S4-01: every transient server error is retried.
#[test]
fn transient_server_errors_are_retried() {
    for status in ["429", "500", "502", "503", "504", "529"] {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        place.tool(
            "claude",
            &format!(
                "#!/bin/sh\n{}",
                flaky(2, &format!("API Error: {status} the server said so"))
            ),
        );
        let ended = place.run(&["exec", "--", "claude", "-p", "x"], "");
        assert_eq!(ended.code, 0, "{status}: {}", ended.stderr);
        assert_eq!(executions(&place), 2, "{status}");
    }
}

/// S0-13, S0-18, S0-20, S0-23, S0-31: a missing login needs action at once, in every view.
#[test]
fn missing_login_escalates_at_once() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; echo 'Not logged in · Please run /login'; exit 1\n",
    );
    let ended = place.run(&["exec", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, executions(&place)), (3, 1), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
    let escalation = place.json_of_run("escalation.json");
    assert_eq!(escalation["trigger"], "HICCUP");
    assert_eq!(escalation["type"], "hiccup");
    let state = place.json_of_run("state.json");
    assert_eq!(state["status"], "awaiting_human");
    assert_eq!(state["sessions"][0]["error_count"], 1);
    assert_eq!(state["sessions"][0]["is_hiccup"], true);
    let episode: serde_json::Value = serde_json::from_str(&place.of_run("episodes.jsonl")).unwrap();
    assert_eq!(
        episode["checkpoints_triggered"],
        serde_json::json!(["HICCUP"])
    );
    assert_eq!(
        (&episode["retry_count"], &episode["recovery_level"]),
        (&0.into(), &"escalate".into())
    );
}

/// S0-07, S0-22: three retries, each wait twice the previous one; the episode counts them.
#[test]
fn waits_double_and_the_episode_counts_the_retries() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\ntemplate = \"patient\"\njitter = \"none\"\nbackoffBase = 0.02\n[policy.kinds.timeout]\nmaxRetries = 3\n",
    );
    let script = flaky(4, "curl: (28) Operation timed out after 30001 milliseconds");
    let ended = place.run(&["exec", "--", "sh", "-c", &script], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let waits: Vec<u64> = place
        .of_run("events.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["event"] == "decision_made")
        .map(|event| event["decision"]["action"]["delay_ms"].as_u64().unwrap())
        .collect();
    assert_eq!(waits, [20, 40, 80]);
    let episode: serde_json::Value = serde_json::from_str(&place.of_run("episodes.jsonl")).unwrap();
    assert_eq!(episode["retry_count"], 3);
}

/// S1-28: after the last attempt, a checkpoint states the failure and the number of attempts.
#[test]
fn unrecoverable_failure_leaves_a_checkpoint() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let ended = place.run(
        &[
            "exec",
            "--retries",
            "2",
            "--",
            "sh",
            "-c",
            "echo '503 Service Unavailable' >&2; exit 1",
        ],
        "",
    );
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert_eq!(checkpoint["error_type"], "server_error");
    assert_eq!(checkpoint["retry_count"], 2);
    assert!(
        checkpoint["resume"]
            .as_str()
            .unwrap()
            .starts_with("unstuck resume ")
    );
}

/// S4-05: the policy `off` only supervises; exit codes are the command's own.
#[test]
fn policy_off_only_supervises() {
    for (script, code) in [("exit 7", 7), ("kill -9 $$", 137), ("nosuchprogram-x", 127)] {
        let place = Place::new();
        let ended = place.run(&["exec", "--policy", "off", "--", "sh", "-c", script], "");
        assert_eq!(ended.code, code, "{script}: {}", ended.stderr);
        assert_eq!(events(&place).last().unwrap(), "run_finished");
    }
}

#[test]
fn failing_test_is_left_to_the_agent() {
    let place = Place::new();
    let script = "echo x >> count; echo 'FAILED tests/test_a.py::test_b - assert 1 == 2'; echo '1 failed in 0.01s'; exit 1";
    let ended = place.run(&["exec", "--", "sh", "-c", script], "");
    assert_eq!((ended.code, executions(&place)), (1, 1), "{}", ended.stderr);
}

/// Every event of a run has the resulting state of its session, in the same five fields as everywhere.
#[test]
fn events_contain_the_resulting_state() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = flaky(2, "HTTP 503 Service Unavailable");
    place
        .run(&["exec", "--", "sh", "-c", &script], "")
        .told(0, &[]);
    let lines = place.of_run("events.jsonl");
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let states: Vec<(String, serde_json::Value)> = lines
        .map(|line: serde_json::Value| {
            (
                line["event"].as_str().unwrap().to_owned(),
                line["state"].clone(),
            )
        })
        .collect();
    for (event, state) in &states {
        let fields: Vec<_> = state.as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            ["state", "reason", "until", "source", "next"],
            "{event}"
        );
    }
    let of = |name: &str| {
        states
            .iter()
            .find(|(event, _)| event == name)
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(of("run_started")["state"], "running");
    let waits = of("waiting_until");
    assert_eq!(
        (&waits["state"], &waits["source"]),
        (&"waiting".into(), &"guess".into())
    );
    assert_eq!(waits["next"]["action"], "retry");
    assert_eq!(of("run_finished")["state"], "recovered");
}
