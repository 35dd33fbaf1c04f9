//! Time limits, output limits, and children that do not end.

use std::path::Path;

use crate::Place;
use crate::output_snapshot::assert_output;

use super::{events, executions};

#[test]
fn timed_out_command_is_stopped_with_code_124() {
    let place = Place::new();
    let script = "trap '' TERM; echo started; while true; do sleep 0.1; done";
    let ended = place.run(
        &[
            "exec",
            "--policy",
            "off",
            "--timeout",
            "300ms",
            "--grace",
            "100ms",
            "--",
            "sh",
            "-c",
            script,
        ],
        "",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (124, "started\n"));
    assert_output!(place, ended.stderr);
}

#[test]
fn silent_command_is_treated_as_hung() {
    let place = Place::new();
    let ended = place.run(
        &[
            "exec",
            "--policy",
            "off",
            "--idle-timeout",
            "300ms",
            "--",
            "sh",
            "-c",
            "echo a; sleep 0.1; echo b; sleep 60",
        ],
        "",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (124, "a\nb\n"));
    assert_output!(place, ended.stderr);
}

/// S1-36: a timed out agent gets more time and a simpler task.
#[test]
fn timed_out_agent_gets_more_time() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\ntemplate = \"standard\"\njitter = \"none\"\nbackoffBase = 0.02\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; [ $(wc -l < count) -ge 3 ] && echo done && exit 0; sleep 30\n",
    );
    let ended = place.run(&["exec", "--timeout", "1s", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, executions(&place)), (0, 3), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
}

#[test]
fn hidden_children_of_a_command_are_killed() {
    let place = Place::new();
    let script = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > new; mv new hidden; exec sleep 1000' >/dev/null 2>&1 &); \
        while [ ! -e hidden ]; do sleep 0.01; done; echo gone";
    let ended = place.run(&["exec", "--", "sh", "-c", script], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "gone\n"));
    let hidden = format!("/proc/{}", place.text("hidden").trim());
    assert!(!Path::new(&hidden).exists(), "{hidden}");
}

#[test]
fn huge_output_is_passed_through_and_stored_up_to_a_limit() {
    let place = Place::new();
    let ended = place.run(
        &[
            "exec",
            "--",
            "sh",
            "-c",
            "yes 'a line of output' | head -c 80000000",
        ],
        "",
    );
    assert_eq!((ended.code, ended.stdout.len()), (0, 80_000_000));
    let kept = place.of_run("attempt-1/stdout.log");
    assert!(kept.len() < 68_000_000 && kept.ends_with("[unstuck: remaining output not stored]\n"));
}

#[test]
fn closed_output_stops_the_command_silently() {
    let place = Place::new();
    let line = "{ \"$UNSTUCK\" exec -- yes; echo code $? >&2; } | head -1";
    let ended = place.shell(line).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "y\n");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "code 130\n");
    let shown = place.json(&["show", "--json"], "");
    assert_eq!(shown["status"], "interrupted");
}

/// A stated wait is not waited out if it exceeds the configured maximum.
#[test]
fn reset_beyond_the_maximum_wait_escalates() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; echo \"Claude AI usage limit reached|$(($(date +%s)+7200))\"; exit 1\n",
    );
    let ended = place.run(&["exec", "--max-wait", "1h", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, executions(&place)), (3, 1), "{}", ended.stderr);
    assert!(events(&place).contains(&"recovery_escalated".to_owned()));
}

#[test]
fn exit_code_that_is_an_answer_is_passed_on_silently() {
    let place = Place::new();
    let ended = place.run(&["exec", "--json", "--", "test", "-f", "nope"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["success"], false);
}

#[test]
fn silence_timeout_is_fixed_by_a_longer_limit() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\ntemplate = \"standard\"\njitter = \"none\"\nbackoffBase = 0.02\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\necho x >> count; [ $(wc -l < count) -ge 3 ] && echo done && exit 0; sleep 30\n",
    );
    let ended = place.run(
        &["exec", "--idle-timeout", "1s", "--", "claude", "-p", "x"],
        "",
    );
    assert_eq!((ended.code, executions(&place)), (0, 3), "{}", ended.stderr);
    assert_output!(place, ended.stderr);
}
