//! `unstuck demo`: the first impression of a new user.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// The default store of the demo.
const STORE: &str = ".local/state/unstuck/demo.db";

fn store(place: &Place) -> String {
    place.folder.path().join(STORE).display().to_string()
}

fn played(place: &Place) -> Ended {
    let ended = place.run(&["demo", "--fast"], "");
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Returns the runs in the demo's store as printed by `show`, oldest first.
fn shown(place: &Place, store: &str) -> Vec<Value> {
    let runs = place.json(&["runs", "--json", "--store", store], "");
    let mut runs: Vec<_> = runs.as_array().unwrap().clone();
    runs.reverse();
    let show = |run: &Value| {
        let id = run["id"].as_str().unwrap();
        place.json(&["show", id, "--json", "--store", store], "")
    };
    runs.iter().map(show).collect()
}

/// Returns the failure kinds of a run, in order.
fn kinds(run: &Value) -> Vec<&str> {
    let attempts = run["attempts"].as_array().unwrap().iter();
    attempts
        .filter_map(|attempt| attempt["diagnosis"]["kind"].as_str())
        .collect()
}

fn decided(run: &Value, attempt: usize) -> &str {
    let decision = &run["attempts"][attempt]["decision"]["decision"];
    decision["reason"].as_str().unwrap()
}

/// Returns the names of the entries of a directory.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn demo_shows_all_seven_features() {
    let place = Place::new();
    played(&place);
    let runs = shown(&place, &store(&place));
    let [review, hard, broken] = runs.as_slice() else {
        panic!("there are {} runs", runs.len());
    };
    assert_eq!(
        kinds(review),
        ["rate_limit", "server_overloaded", "missing_sections"]
    );
    assert!(decided(review, 0).contains("in 1 s, as the server asked"));
    assert_eq!(review["attempts"][3]["changes"][0], "prompt: sections");
    assert_eq!(review["status"], "recovered");

    assert_eq!(kinds(hard), ["timeout", "empty_output"]);
    let change = &hard["attempts"][1]["model_switch"];
    assert_eq!(change["toModel"], "claude-sonnet-5-5");
    assert!(change["costEstimate"].as_f64().unwrap() > 0.0, "{change}");
    assert_eq!(hard["status"], "recovered");

    assert_eq!(kinds(broken), ["dependency_conflict"; 2]);
    assert_eq!(broken["status"], "awaiting_human");
    assert_eq!(broken["exit_code"], 3);
}

#[test]
fn output_has_the_story_the_timeline_and_next_steps() {
    let place = Place::new();
    let ended = played(&place);
    for told in [
        "rate_limit: API Error",
        "as the server asked",
        "attempt 4 (prompt: sections)",
        "timeout: timed out",
        "model claude-haiku-5-5 → claude-sonnet-5-5 (about +$",
        "needs your input",
    ] {
        assert!(ended.stderr.contains(told), "{told} in {}", ended.stderr);
    }
    for told in [
        "are simulated",
        "1/3 A review",
        "recovered after",
        "7 failures, 5 recovered automatically, 1 pending request.",
        "unstuck exec -- claude",
    ] {
        assert!(ended.stdout.contains(told), "{told} in {}", ended.stdout);
    }
    assert!(!(ended.stdout + &ended.stderr).contains('\u{1b}'));
}

#[test]
fn suggested_commands_work_when_copied() {
    let place = Place::new();
    let ended = played(&place);
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    let proposed = |line: &str| {
        let at = line.find("unstuck ").filter(|_| line.contains("--store"))?;
        let line = line[at..].strip_prefix("unstuck: ").unwrap_or(&line[at..]);
        let at = line.find("unstuck ")?;
        Some(line[at..].replace('~', &place.folder.path().display().to_string()))
    };
    let lines: std::collections::BTreeSet<_> = printed.lines().filter_map(proposed).collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in &lines {
        let words: Vec<_> = line.split(' ').skip(1).collect();
        let copied = place.run(&words, "");
        assert_eq!(copied.code, 0, "{line}: {}", copied.stderr);
    }
    assert!(lines.iter().any(|line| line.contains("resume")));
    let open = ["runs", "--json", "--status", "awaiting_human", "--store"];
    let open = place.json(&[&open[..], &[&store(&place)]].concat(), "");
    assert_eq!(open, serde_json::json!([]), "the answer was taken");
}

#[test]
fn users_own_history_and_directory_stay_unchanged() {
    let place = Place::new();
    assert_eq!(place.run(&["exec", "--", "true"], "").code, 0);
    let (history, folder) = (place.json(&["runs", "--json"], ""), names(&place.project()));
    let own = place.folder.path().join("own.db");
    let mut command = place.command(&["demo", "--fast", "--json"]);
    let output = command.env("UNSTUCK_STORE", &own).output().unwrap();
    assert!(output.status.success());
    assert!(!own.exists(), "a store for all commands is the user's own");
    assert_eq!(place.json(&["runs", "--json"], ""), history);
    assert_eq!(names(&place.project()), folder);
    assert!(place.folder.path().join(STORE).exists());
}

#[test]
fn demo_can_be_repeated_and_leaves_no_process() {
    let place = Place::new();
    let named = place.folder.path().join("elsewhere/demo.sqlite");
    let named = named.display().to_string();
    for _ in 0..2 {
        let runs = place.json(&["demo", "--fast", "--json", "--store", &named], "");
        let outcomes: Vec<_> = runs
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes, ["recovered", "recovered", "awaiting_human"]);
    }
    assert_eq!(shown(&place, &named).len(), 6);
    assert!(!place.folder.path().join(STORE).exists());
    let here = |entry: std::fs::DirEntry| {
        let folder = std::fs::read_link(entry.path().join("cwd")).ok()?;
        folder.starts_with(place.folder.path()).then_some(entry)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let left: Vec<_> = processes.filter_map(here).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn interrupt_ends_the_whole_demo() {
    let place = Place::new();
    let mut child = place
        .command(&["demo"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("retrying in") {}
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert!(rest[0].contains("stopped · unstuck resume"), "{rest:?}");
    let run = rest[0].split("unstuck resume ").nth(1).unwrap();
    let run = run.split(' ').next().unwrap();
    let resumed = place.run(&["resume", run, "--store", &store(&place)], "");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stdout.contains("# Review"), "{}", resumed.stdout);
}

#[test]
fn broken_configuration_does_not_prevent_the_demo() {
    let place = Place::new();
    place.write("unstuck.toml", "[policy]\nmaxRetries = \"many\"\n");
    played(&place);
}

#[test]
fn directory_that_cannot_be_created_is_reported_with_a_fix() {
    let place = Place::new();
    let mut command = place.command(&["demo", "--fast"]);
    let output = command
        .env("XDG_STATE_HOME", "/proc/self/nowhere")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_output!(place, told);
}
