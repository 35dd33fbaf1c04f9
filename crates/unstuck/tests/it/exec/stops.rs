//! Ctrl-C, kill -9, and resuming afterwards.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use unstuck_core::decision::SeededRng;

use crate::Place;
use crate::output_snapshot::assert_output;

use super::{QUICK, executions};

pub(crate) fn start(place: &Place, args: &[&str]) -> Child {
    place
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the child's first line of output.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

/// S1-29: a cancel stops the child, keeps a checkpoint, and can be resumed.
#[test]
fn interrupted_run_stops_its_child_and_can_be_resumed() {
    let place = Place::new();
    let script = "echo x >> count; echo ready; [ -f go ] && exit 0; sleep 60";
    let mut child = start(&place, &["exec", "--", "sh", "-c", script]);
    assert_eq!(first_line(&mut child), "ready\n");
    signal(&child, Signal::INT);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_output!(place, told);
    let checkpoint = place.json_of_run("checkpoint.json");
    assert!(checkpoint["resume"].as_str().is_some());

    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (0, "ready\n"),
        "{}",
        resumed.stderr
    );
    let again = place.run(&["resume"], "");
    assert_eq!(again.code, 1);
    assert_output!(place, again.stderr);
}

/// `nohup` and background jobs of `sh` start it with ignored signals.
#[test]
fn initially_ignored_signals_stay_ignored() {
    for (name, number) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
    ] {
        let place = Place::new();
        let script = "echo ready; while [ ! -e go ]; do sleep 0.05; done; echo survived";
        let line = format!("trap '' {name}; exec \"$UNSTUCK\" exec -- sh -c '{script}'");
        let mut child = place.shell(&line).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(output.next().unwrap().unwrap(), "ready");
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        assert_eq!(
            caught >> (number.as_raw() - 1) & 1,
            0,
            "SIG{name} is caught"
        );
        signal(&child, number);
        place.write("go", "");
        assert_eq!(output.next().unwrap().unwrap(), "survived");
        assert_eq!(child.wait().unwrap().code(), Some(0), "SIG{name}");
    }
}

#[test]
fn terminating_signal_is_recorded() {
    for (number, code, by, reason) in [
        (Signal::INT, 130, "person", "stopped by the user"),
        (Signal::TERM, 143, "sigterm", "terminated by SIGTERM"),
        (Signal::HUP, 129, "sighup", "terminated by SIGHUP"),
    ] {
        let place = Place::new();
        let script = "echo ready; exec sleep 60";
        let mut child = start(&place, &["exec", "--json", "--", "sh", "-c", script]);
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(output.next().unwrap().unwrap(), "ready");
        signal(&child, number);
        let told: serde_json::Value =
            serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(
            (&told["exit_code"], &told["reason"]),
            (&code.into(), &reason.into())
        );
        assert_eq!(told["child"]["signal"], 15, "{told}");
        assert_eq!(place.events("attempt_interrupted")[0]["by"], by);
        assert_eq!(place.events("run_finished")[0]["reason"], reason);
        let shown = place.run(&["show"], "").stdout;
        assert!(shown.contains(reason), "{shown}");
    }
}

/// Ctrl-C at a terminal, which an outer unstuck provides here, forwarding its input.
#[test]
fn ctrl_c_at_a_terminal_stops_even_if_the_child_ignores_it() {
    for trap in ["exit 5", "exit 0", ""] {
        let place = Place::new();
        let script = format!("trap '{trap}' INT; echo x >> count; echo ready; sleep 60");
        let inner = [env!("CARGO_BIN_EXE_unstuck"), "exec", "--store", "inner.db"];
        let outer = ["exec", "--policy", "off", "--tty", "--"];
        let mut child = place
            .command(&[&outer[..], &inner, &["--", "sh", "-c", &script]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(first_line(&mut child), "ready\r\n");
        let mut keyboard = child.stdin.take().unwrap();
        keyboard.write_all(b"\x03").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "trap '{trap}'");
        let runs = place.json(&["runs", "--json", "--store", "inner.db"], "");
        assert_eq!(runs[0]["status"], "interrupted", "trap '{trap}': {runs}");
        assert_eq!(executions(&place), 1);
    }
}

#[test]
fn interrupted_wait_can_be_resumed() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho ran; [ -f go ] && exit 0; echo \"Claude AI usage limit reached|$(($(date +%s)+2))\"; exit 1\n",
    );
    let mut child = start(&place, &["exec", "--", "claude", "-p", "x"]);
    assert_eq!(first_line(&mut child), "ran\n");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("retrying in") {}
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let waiting = place.json(&["runs", "--json"], "");
    assert_eq!(waiting[0]["status"], "crashed");
    assert!(waiting[0]["state"]["until"].is_string(), "{waiting}");
    let crashed = place.json(&["runs", "--status", "crashed", "--json"], "");
    assert_eq!(crashed[0]["id"], waiting[0]["id"]);
    let still = place.json(&["runs", "--status", "waiting", "--json"], "");
    assert_eq!(still, serde_json::json!([]));
    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(
        place.json_of_run("state.json")["sessions"][0]["attempts"],
        2
    );
}

/// After a kill at any moment nothing is lost, nothing is left running, and the run ends as if undisturbed.
#[test]
fn kill_at_any_moment_loses_nothing() {
    // The counter grows by an atomic step at the end of an execution, so an interrupted execution is not counted.
    let script = "sleep 0.04; n=$(($(cat n 2>/dev/null || echo 0)+1)); echo $n > n.new; mv n.new n; \
        [ $n -ge 3 ] && exit 0; echo '503 Service Unavailable' >&2; exit 1";
    let mut dice = SeededRng::seeded(11);
    for round in 0..rounds() {
        let place = Place::new();
        place.write("unstuck.toml", QUICK);
        let mut args = vec!["exec", "--", "sh", "-c", script];
        let mut finished = false;
        while !finished {
            let mut child = start(&place, &args);
            let moment = Duration::from_millis(dice.next_draw().0 % 700);
            finished = ended_within(&mut child, moment);
            if !finished {
                signal(&child, Signal::KILL);
                child.wait().unwrap();
                let runs = place.json(&["runs", "--json"], "");
                if runs[0]["finished"].is_string() {
                    break;
                }
                // Killed before it began: nothing was acknowledged, so it starts again.
                args = if runs[0]["id"].is_string() {
                    vec!["resume"]
                } else {
                    args
                };
            }
        }
        let run = place.json(&["show", "--json"], "");
        assert_eq!(run["status"], "recovered", "round {round}: {run}");
        // A child killed between its last step and its exit was counted, though its exit was not seen.
        let attempts = run["attempts"].as_array().unwrap();
        let cut_off: u64 = attempts
            .iter()
            .map(|one| one["interruptions"].as_u64().unwrap())
            .sum();
        let counted = std::fs::read_to_string(place.project().join("n")).unwrap();
        let counted: u64 = counted.trim().parse().unwrap();
        let seen = run["attempt_count"].as_u64().unwrap();
        assert!(
            seen <= 3 && seen <= counted && counted <= seen + cut_off,
            "round {round}: {run}"
        );
    }
}

/// The number of kills: a dozen, unless configured.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to test is asked for by the environment"
)]
fn rounds() -> u32 {
    let asked = std::env::var("UNSTUCK_KILLS");
    asked
        .ok()
        .and_then(|asked| asked.parse().ok())
        .unwrap_or(12)
}

fn ended_within(child: &mut Child, time: Duration) -> bool {
    let steps = time.as_millis() / 5;
    for _ in 0..steps {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0));
            return true;
        }
        pause();
    }
    false
}

#[expect(
    clippy::disallowed_methods,
    reason = "the moment of the kill is the point of the test"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

#[test]
fn active_run_cannot_be_resumed() {
    let place = Place::new();
    let mut child = start(&place, &["exec", "--", "sh", "-c", "echo ready; sleep 60"]);
    assert_eq!(first_line(&mut child), "ready\n");
    let second = place.run(&["resume"], "");
    assert_eq!(second.code, 1);
    assert!(
        second.stderr.contains("is already active (pid "),
        "{}",
        second.stderr
    );
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// An answer to an escalation continues a run that waits for it.
#[test]
fn answered_escalation_resumes_the_run() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\n[ -f login ] && echo done && exit 0; echo 'Not logged in · Please run /login'; exit 1\n",
    );
    let mut child = start(&place, &["exec", "--wait", "--", "claude", "-p", "x"]);
    assert!(first_line(&mut child).contains("Not logged in"));
    let waits = || place.json(&["runs", "--json"], "")[0]["status"] == "awaiting_human";
    while !waits() {
        pause();
    }
    place.write("login", "");
    let told = place.run(&["resume"], "");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
