//! Time, output and children that do not want to end.

use std::path::Path;

use crate::Place;

use super::{events, executions};

#[test]
fn a_command_whose_time_is_up_is_ended_and_gets_124() {
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
    assert!(ended.stderr.contains("timeout"), "{}", ended.stderr);
}

#[test]
fn a_silent_command_counts_as_hung() {
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
    assert!(
        ended.stderr.contains("no output for too long"),
        "{}",
        ended.stderr
    );
}

/// S1-36: an agent whose time was up gets more of it, and a simpler task.
#[test]
fn an_agent_whose_time_was_up_gets_more_of_it() {
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
    assert!(ended.stderr.contains("prompt: focus"), "{}", ended.stderr);
}

#[test]
fn nothing_is_left_of_a_command_that_hides_its_children() {
    let place = Place::new();
    let script = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > new; mv new hidden; exec sleep 1000' >/dev/null 2>&1 &); \
        while [ ! -e hidden ]; do sleep 0.01; done; echo gone";
    let ended = place.run(&["exec", "--", "sh", "-c", script], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "gone\n"));
    let hidden = format!("/proc/{}", place.text("hidden").trim());
    assert!(!Path::new(&hidden).exists(), "{hidden}");
}

#[test]
fn a_flood_of_output_is_passed_through_and_kept_up_to_a_limit() {
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
    assert!(kept.len() < 68_000_000 && kept.ends_with("[unstuck: the rest is not kept]\n"));
}

#[test]
fn a_command_whose_output_nobody_reads_any_more_is_stopped_without_a_word() {
    let place = Place::new();
    let line = "{ \"$UNSTUCK\" exec -- yes; echo code $? >&2; } | head -1";
    let ended = place.shell(line).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "y\n");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "code 130\n");
    let shown = place.json(&["show", "--json"], "");
    assert_eq!(shown["status"], "interrupted");
}

/// A wait that was stated is not sat through if a person has said how long it may be.
#[test]
fn a_reset_beyond_the_longest_wait_asks() {
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
fn an_exit_code_that_is_an_answer_is_passed_on_silently() {
    let place = Place::new();
    let ended = place.run(&["exec", "--json", "--", "test", "-f", "nope"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["success"], false);
}

#[test]
fn silence_is_mended_by_longer_silence() {
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
    assert!(
        ended.stderr.contains("may be silent for"),
        "{}",
        ended.stderr
    );
}
