//! The child's environment: its arguments byte for byte, a terminal where needed, its input, and one owner of retries.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::Place;
use crate::output_snapshot::assert_output;

use super::{QUICK, executions, flaky};

#[test]
fn non_utf8_arguments_reach_the_child_unchanged() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = "printf '%s' \"$1\" >> got; [ $(wc -c < got) -ge 10 ] || { echo 503 Service Unavailable >&2; exit 1; }";
    let mut command = place.command(&["exec", "--", "sh", "-c", script, "sh"]);
    command.arg(OsStr::from_bytes(b"caf\xe9\\"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let got = std::fs::read(place.project().join("got")).unwrap();
    assert_eq!(got, b"caf\xe9\\caf\xe9\\");
    let runs = place.json(&["runs", "--json"], "");
    let shown = runs[0].to_string();
    assert!(shown.contains(r"caf\\xe9"), "{shown}");
}

/// Runs a command at a terminal, which an outer unstuck provides here.
fn at_a_terminal(place: &Place, command: &[&str]) -> String {
    let outer = ["exec", "--policy", "off", "--tty", "--"];
    let inner = [
        env!("CARGO_BIN_EXE_unstuck"),
        "exec",
        "--store",
        "inner.db",
        "--",
    ];
    let output = place
        .command(&[&outer[..], &inner, command].concat())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const TELLS: &str = "[ -t 0 ] && [ -t 1 ] && echo on a terminal || echo elsewhere";

#[test]
fn interactive_agent_gets_a_terminal() {
    let place = Place::new();
    place.tool("claude", &format!("#!/bin/sh\n{TELLS}\n"));
    assert_eq!(at_a_terminal(&place, &["claude"]), "on a terminal\r\n");
    let headless = at_a_terminal(&place, &["claude", "-p", "x"]);
    assert_eq!(headless, "elsewhere\r\n");
    assert_eq!(at_a_terminal(&place, &["sh", "-c", TELLS]), "elsewhere\r\n");
    let piped = place.run(&["exec", "--", "claude"], "");
    assert_eq!(piped.stdout, "elsewhere\n");
}

#[test]
fn interactive_agent_is_only_supervised() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    for (code, status) in [(0, "succeeded"), (1, "failed")] {
        place.tool(
            "claude",
            &format!("#!/bin/sh\necho x >> count\necho 'API Error: 529 Overloaded'; exit {code}\n"),
        );
        at_a_terminal(&place, &["claude"]);
        let runs = place.json(&["runs", "--json", "--store", "inner.db"], "");
        assert_eq!(runs[0]["status"], status, "{runs}");
    }
    assert_eq!(executions(&place), 2);
}

#[test]
fn inner_unstuck_leaves_retries_to_the_outer_one() {
    let inner = [env!("CARGO_BIN_EXE_unstuck"), "exec", "--store", "inner.db"];
    let script = flaky(99, "503 Service Unavailable");
    let attempts = |outer: &[&str], own: &[&str]| {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        let command = ["--", "sh", "-c", &script];
        let args = [&["exec"], outer, &["--"], &inner[..], own, &command].concat();
        let ended = place.run(&args, "");
        assert_ne!(ended.code, 0);
        (executions(&place), ended.stderr)
    };
    let (alone, told) = attempts(&["--retries", "2"], &[]);
    assert!(
        told.contains("the outer unstuck process retries it"),
        "{told}"
    );
    // The outer one owns retries only if it retries.
    let (by_inner, _) = attempts(&["--policy", "off"], &["--retries", "2"]);
    assert_eq!(alone, by_inner);
    // An explicit request for retries applies.
    let (multiplied, _) = attempts(&["--retries", "2"], &["--retries", "1"]);
    assert!(multiplied > alone, "{multiplied} {alone}");
}

#[test]
fn stale_run_variable_does_not_disable_retries() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let script = flaky(2, "503 Service Unavailable");
    let mut command = place.command(&["exec", "--", "sh", "-c", &script]);
    let output = command.env("UNSTUCK_OUTER_RETRIES", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(executions(&place), 2);
}

#[test]
fn input_too_large_to_replay_is_reported() {
    let place = Place::new();
    let script = "cat >/dev/null; echo x >> count; echo connection reset by peer >&2; exit 7";
    let ended = place.run(&["exec", "--", "sh", "-c", script], vec![b'x'; 9 << 20]);
    ended.told(7, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(executions(&place), 1);
    assert!(
        place
            .json(&["inbox", "--json"], "")
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn file_input_of_any_size_is_replayed() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let large = place.write("large", &"x".repeat(9 << 20));
    let script = "wc -c >> sizes; echo x >> count; [ $(wc -l < count) -ge 2 ] || { echo 503 Service Unavailable >&2; exit 1; }";
    let mut command = place.command(&["exec", "--", "sh", "-c", script]);
    let output = command
        .stdin(std::fs::File::open(large).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(place.lines("sizes"), ["9437184", "9437184"]);
}
