//! The duration of retries for transient failures, and the end of a wait.

use super::terminal::{HELD, held_claude};
use super::{events, executions, flaky};
use crate::Place;
use crate::output_snapshot::assert_output;
use crate::run::Running;

/// Fails while there is no file `up`.
const DOWN: &str =
    "echo x >> ran; [ -e up ] && echo done && exit 0; echo '503 Service Unavailable' >&2; exit 1";

/// By default time limits the retries, not their number.
#[test]
fn default_policy_continues_after_three_retries() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\n",
    );
    let script = flaky(9, "529 Overloaded");
    let ended = place.run(&["exec", "--", "sh", "-c", &script], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "done\n"));
    assert!(ended.stderr.contains(" of 30 min)."), "{}", ended.stderr);
    assert_eq!(executions(&place), 9);
}

/// A plain command escalates when the time without progress is over.
#[test]
fn command_escalates_at_its_time_limit() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.1\nmaxBackoff = 0.1\n",
    );
    let args = ["exec", "--keep-trying", "2s", "--", "sh", "-c", DOWN];
    let ended = place.run(&args, "");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains(" of 2 s)."), "{}", ended.stderr);
    let ran = place.lines("ran").len();
    assert!(ran > 1, "{ran} executions");
}

/// An agent is parked instead: users are notified once, and it is probed now and then.
#[test]
fn agent_is_parked_at_its_time_limit() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.1\nmaxBackoff = 0.1\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\necho 'API Error: 529 overloaded_error'; exit 1\n",
    );
    let args = [
        "exec",
        "--no-gateway",
        "--keep-trying",
        "1s",
        "--",
        "claude",
        "-p",
        "work",
    ];
    let mut command = place.command(&args);
    command.env_remove("CI");
    let mut running = Running::of(command);
    running.until("parked, probing again in 5 min");
    running.interrupt();
    running.end().told(130, &["unstuck resume"]);
    let parked = events(&place);
    let parked = parked.iter().filter(|name| *name == "session_parked");
    assert_eq!(parked.count(), 1);
}

/// Another process can end a wait, and the waiting process continues.
#[test]
fn retry_ends_a_wait() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 600\nmaxBackoff = 600\n",
    );
    let mut running = Running::start(&place, &["exec", "--", "sh", "-c", DOWN]);
    running.until("retrying in 10 min");
    place.write("up", "");
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let retried = place.run(&["retry", run.as_str().unwrap()], "");
    assert_eq!(retried.code, 0, "{}", retried.stderr);
    running.until("retrying now, as requested");
    let ended = running.end();
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.lines("ran").len(), 2);
}

/// A wait inside the gateway is a wait: it is repeated in a log, shown by every view, and ended in the same way.
#[test]
fn retry_ends_the_wait_of_a_held_api_call() {
    let place = Place::new();
    let text = format!("{HELD}[run]\nheartbeat = \"1s\"\n");
    place.write("unstuck.toml", &text);
    let api = held_claude(&place);
    let mut command = place.command(&["exec", "--", "claude", "-p", "do the work"]);
    command.env("ANTHROPIC_BASE_URL", api.url());
    let mut running = Running::of(command);
    running.until("still waiting until");
    let run = place.json(&["runs", "--json"], "")[0].clone();
    assert_eq!(run["state"]["state"], "waiting", "{run}");
    let retried = place.run(&["retry", run["id"].as_str().unwrap()], "");
    assert_eq!(retried.code, 0, "{}", retried.stderr);
    running.until("retrying now, as requested");
    let ended = running.end();
    ended.told(
        0,
        &[
            "API retry in 4 min",
            "gives up at",
            "unstuck stop",
            "unstuck retry",
        ],
    );
    assert_eq!(api.requests().len(), 2);
    let run = place.json(&["runs", "--json"], "")[0].clone();
    assert_eq!(run["state"]["state"], "succeeded", "{run}");
}

/// A service that is about to start is waited for, although failures of its kind are not transient.
#[test]
fn late_local_service_is_waited_for() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\n",
    );
    let script = flaky(6, "connect ECONNREFUSED 127.0.0.1:5432");
    let ended = place.run(&["exec", "--", "sh", "-c", &script], "");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "done\n"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("service_down"), "{}", ended.stderr);
    assert!(ended.stderr.contains(" of 30 s)."), "{}", ended.stderr);
}
