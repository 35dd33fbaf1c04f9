//! The scope of commands without an id; stop, status, abort and resume of unfinished runs.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::exec::stops::{first_line, signal, start};
use crate::output_snapshot::assert_output;
use crate::{Ended, Place};

/// An agent that is not logged in until a file exists.
const CLAUDE: &str = "#!/bin/sh\ncat >/dev/null; echo \"$PWD\" >> \"$HOME/calls\"; [ -f login ] && echo done && exit 0; echo 'Not logged in · Please run /login'; exit 7\n";
const EXEC: [&str; 5] = ["exec", "--", "claude", "-p", "x"];

fn asking() -> Place {
    let place = Place::new();
    place.tool("claude", CLAUDE);
    place
}

/// Another project of the same user.
fn other_project(place: &Place) -> PathBuf {
    let other = place.folder.path().join("other");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    other
}

fn run_in(place: &Place, folder: &Path, args: &[&str]) -> Ended {
    let output = place.command(args).current_dir(folder).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn runs(place: &Place, args: &[&str]) -> Value {
    let args = [&["runs", "--json"], args].concat();
    place.json(&args, "")
}

fn id(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

/// Starts a command, waits for its first line, and ends it with a signal.
fn ended_by(place: &Place, with: Signal, command: &[&str]) {
    let args = [&["exec", "--"], command].concat();
    let mut child = start(place, &args);
    assert_eq!(first_line(&mut child), "ready\n");
    signal(&child, with);
    child.wait().unwrap();
}

#[test]
fn answer_without_id_never_reaches_another_project() {
    let place = asking();
    let other = other_project(&place);
    place.run(&EXEC, "").told(3, &[]);
    run_in(&place, &other, &EXEC).told(3, &[]);
    std::fs::write(other.join("login"), "").unwrap();
    place.write("login", "");
    // The request of this project is the older one.
    let resolved = place.run(&["resolve"], "");
    resolved.told(0, &[]);
    assert_output!(place, resolved.stderr);
    let refused = place.run(&["resolve"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    place.run(&["resolve", "--last"], "").told(1, &[]);
    let left = runs(&place, &["--status", "awaiting_human"]);
    assert_eq!(left[0]["project"], other.display().to_string());
    let resolved = run_in(&place, &other, &["resolve"]);
    resolved.told(0, &[]);
    assert_output!(place, resolved.stderr);
}

#[test]
fn ambiguous_request_is_never_guessed() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    place.run(&EXEC, "").told(3, &[]);
    let asked = place.json(&["inbox", "--json"], "");
    let ids: Vec<_> = [0, 1].map(|at| id(&asked[at])).to_vec();
    let refused = place.run(&["abort"], "");
    refused.told(1, &[&ids[0], &ids[1]]);
    assert_output!(place, refused.stderr);
    assert_eq!(
        runs(&place, &["--status", "awaiting_human"])
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // The newest comes first.
    place.run(&["abort", "--last"], "").told(0, &[]);
    assert_eq!(id(&place.json(&["inbox", "--json"], "")[0]), ids[1]);
}

#[test]
fn resume_without_id_prefers_the_agent_and_lists_several() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\necho ready; [ -f go ] && exit 0; sleep 60\n",
    );
    ended_by(&place, Signal::INT, &["claude", "-p", "important"]);
    place.run(&["exec", "--", "false"], "").told(3, &[]);
    place.write("go", "");
    let resumed = place.run(&["resume"], "");
    assert_eq!((resumed.code, resumed.stdout.as_str()), (0, "ready\n"));
    std::fs::remove_file(place.project().join("go")).unwrap();

    let script = "echo ready; sleep 60";
    ended_by(&place, Signal::INT, &["sh", "-c", script]);
    let refused = place.run(&["resume"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
}

#[test]
fn crashed_runs_can_be_listed_and_resumed_together() {
    let place = Place::new();
    let script = "echo ready; [ -f go ] && echo x >> done && exit 0; sleep 60";
    ended_by(&place, Signal::KILL, &["sh", "-c", script]);
    ended_by(&place, Signal::KILL, &["sh", "-c", script]);
    // A human stopped this run; it stays stopped.
    ended_by(&place, Signal::INT, &["sh", "-c", script]);
    let crashed = runs(&place, &["--status", "crashed"]);
    assert_eq!(crashed.as_array().unwrap().len(), 2);
    assert_eq!(crashed[0]["state"]["state"], "crashed");
    place.write("go", "");
    let resumed = place.run(&["resume", "--all"], "");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_output!(place, resumed.stdout);
    for run in crashed.as_array().unwrap() {
        let short = &id(run)[..6];
        assert!(resumed.stdout.contains(short), "{}", resumed.stdout);
    }
    let is_done = || {
        runs(&place, &["--status", "succeeded,recovered"])
            .as_array()
            .unwrap()
            .len()
            == 2
    };
    crate::eventually(is_done);
    assert_eq!(place.lines("done").len(), 2);
    let nothing = place.run(&["resume", "--all"], "");
    assert_eq!(nothing.code, 0);
    assert_output!(place, nothing.stdout);
}

#[test]
fn run_can_be_stopped_from_another_terminal_and_resumed() {
    let place = Place::new();
    let nothing = place.run(&["stop"], "");
    nothing.told(1, &[]);
    assert_output!(place, nothing.stderr);
    let script = "echo ready; [ -f go ] && exit 0; sleep 60";
    let mut child = start(&place, &["exec", "--", "sh", "-c", script]);
    assert_eq!(first_line(&mut child), "ready\n");
    let other = other_project(&place);
    let nothing = run_in(&place, &other, &["stop"]);
    nothing.told(1, &[]);
    assert_output!(place, nothing.stderr);
    let stopped = place.run(&["stop"], "");
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    let run = runs(&place, &[])[0].clone();
    let short = &id(&run)[..6];
    assert_output!(place, stopped.stdout);
    assert_eq!(run["status"], "interrupted");
    child.wait().unwrap();
    let again = place.run(&["stop", short], "");
    again.told(1, &[]);
    assert_output!(place, again.stderr);
    place.write("go", "");
    assert_eq!(place.run(&["resume"], "").code, 0);
}

#[test]
fn status_shows_pending_requests_and_sets_the_exit_code() {
    let place = asking();
    let idle = place.run(&["status"], "");
    assert_eq!(idle.code, 0);
    assert_output!(place, idle.stdout);
    let mut child = start(&place, &["exec", "--", "sh", "-c", "echo ready; sleep 60"]);
    assert_eq!(first_line(&mut child), "ready\n");
    let busy = place.run(&["status"], "");
    assert_eq!(busy.code, 0, "{}", busy.stdout);
    assert_output!(place, busy.stdout);
    assert_eq!(place.run(&["status", "--short"], "").stdout, "1 running\n");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let crashed = place.run(&["status"], "");
    assert_eq!(crashed.code, 3, "{}", crashed.stdout);
    assert_output!(place, crashed.stdout);

    place.run(&EXEC, "").told(3, &[]);
    let needs = place.run(&["status", "--project", "."], "");
    assert_eq!(needs.code, 3);
    assert_output!(place, needs.stdout);
    let json = place.run(&["status", "--json"], "");
    let listed: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(listed[0]["state"]["next"]["actor"], "human");
    assert_eq!(listed[0]["state"]["reason"], "auth_required");
    let other = other_project(&place);
    assert_eq!(
        run_in(&place, &other, &["status", "--project", "."]).code,
        0
    );
}

/// N29: any amount of data fits the terminal, and every section gets its share.
#[test]
fn status_fits_one_screen() {
    let place = asking();
    for code in 10..22 {
        let exec = ["exec", "--", "sh", "-c", &format!("exit {code}")];
        place.run(&exec, "").told(3, &[]);
    }
    let mut child = start(&place, &["exec", "--", "sh", "-c", "echo ready; sleep 60"]);
    assert_eq!(first_line(&mut child), "ready\n");
    let unstuck = env!("CARGO_BIN_EXE_unstuck");
    for (columns, rows) in [(40, 24), (80, 12)] {
        let line = format!("stty cols {columns} rows {rows}; '{unstuck}' status");
        let mut terminal = place.shell(&format!("script -qec \"{line}\" /dev/null"));
        let shown = terminal.env("NO_COLOR", "1").output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap().replace('\r', "");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() < rows, "{text}");
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{text}");
        assert!(text.starts_with("needs your input (12), newest "), "{text}");
        assert!(
            text.contains("exit 21") && text.contains("running (1)"),
            "{text}"
        );
        assert!(text.contains("abort in 2"), "the expiry is told: {text}");
        assert!(!text.contains('\u{1b}'), "no color: {text}");
    }
    assert_eq!(
        place.run(&["status", "--short"], "").stdout,
        "12 need your input, 1 running\n"
    );
    signal(&child, Signal::INT);
    child.wait().unwrap();
}

/// Ids that humans copy, of a session or a request and in any case, select their run.
#[test]
fn run_is_found_by_session_and_request_ids() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let asked = id(&place.json(&["inbox", "--json"], "")[0]);
    let run = asked.split_once('-').unwrap().0.to_owned();
    for named in [asked.clone(), format!("{run}-1"), run.to_uppercase()] {
        for command in ["show", "explain"] {
            let shown = place.run(&[command, &named], "");
            shown.told(0, &[]);
            assert!(
                shown.stdout.contains("auth_required"),
                "{named}: {}",
                shown.stdout
            );
        }
    }
    place
        .run(&["inbox", &asked.to_uppercase()], "")
        .told(0, &[]);
    let mut empty = String::new();
    for command in ["show", "explain", "inbox", "logs", "diff"] {
        let refused = place.run(&[command, ""], "");
        empty += &refused.told(2, &[]).stderr;
    }
    assert_output!(place, empty);
    let long = "x".repeat(300);
    let unknown = place.run(&["inbox", &long], "");
    unknown.told(1, &[]);
    assert_output!(place, unknown.stderr);
    assert!(unknown.stderr.len() < 300, "{}", unknown.stderr);
}

/// A command whose input contains a secret, which is not stored, can never run again: resume is not offered.
#[test]
fn unresumable_run_is_never_left_unfinished() {
    let place = Place::new();
    let script = "cat >/dev/null; exit 5";
    let mut exec =
        assert_cmd::Command::from_std(place.command(&["exec", "--", "sh", "-c", script]));
    let exec = exec.env("MY_API_KEY", "q7h2k9zt4m");
    let asked = exec.write_stdin("the key is q7h2k9zt4m").output().unwrap();
    assert_eq!(asked.status.code(), Some(3));
    let told = String::from_utf8(asked.stderr).unwrap();
    assert_output!(place, told);
    let open = place.json(&["inbox", "--json"], "");
    let answers: Vec<_> = open[0]["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["answer"].clone())
        .collect();
    assert_eq!(answers, ["skip", "abort"]);
    let refused = place.run(&["resolve", &id(&open[0])], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    let refused = place.run(&["resume"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    assert_eq!(
        place
            .json(&["inbox", "--json"], "")
            .as_array()
            .unwrap()
            .len(),
        1
    );
    place.run(&["abort"], "").told(0, &[]);
    assert_eq!(place.json_of_run("state.json")["status"], "failed");
    assert_eq!(place.json(&["inbox", "--json"], ""), serde_json::json!([]));
}

/// A run may become unresumable after the request was made: then the answer is not consumed.
#[test]
fn answer_that_cannot_continue_the_run_is_rejected() {
    let place = asking();
    let folder = place.project().join("work");
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(place.project().join(".git")).unwrap();
    run_in(&place, &folder, &EXEC).told(3, &[]);
    std::fs::remove_dir_all(&folder).unwrap();
    let refused = place.run(&["resolve"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    assert_eq!(refused.stdout, "");
    assert_eq!(
        place
            .json(&["inbox", "--json"], "")
            .as_array()
            .unwrap()
            .len(),
        1
    );
    place.run(&["abort"], "").told(0, &[]);
    let run = runs(&place, &[])[0].clone();
    assert_eq!(
        (&run["status"], &run["exit_code"]),
        (&"failed".into(), &7.into())
    );
    let again = place.run(&["abort", &id(&run)], "");
    again.told(1, &[]);
    assert_output!(place, again.stderr);
}

#[test]
fn crashed_or_stopped_run_can_be_aborted() {
    let place = Place::new();
    let script = "echo ready; sleep 60";
    ended_by(&place, Signal::KILL, &["sh", "-c", script]);
    let run = id(&runs(&place, &[])[0]);
    let aborted = place.run(&["abort", &run[..6]], "");
    aborted.told(0, &[]);
    assert!(
        aborted.stdout.contains("has ended: aborted by"),
        "{}",
        aborted.stdout
    );
    assert_eq!(runs(&place, &[])[0]["status"], "failed");
    assert_eq!(
        runs(&place, &["--status", "crashed"]),
        serde_json::json!([])
    );
    assert_eq!(place.json_of_run("state.json")["status"], "failed");

    let mut child = start(&place, &["exec", "--", "sh", "-c", script]);
    assert_eq!(first_line(&mut child), "ready\n");
    let active = id(&runs(&place, &["--status", "running"])[0]);
    let refused = place.run(&["abort", &active], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    place.run(&["stop"], "").told(0, &[]);
    child.wait().unwrap();
}

#[test]
fn all_requests_of_a_project_can_be_aborted() {
    let place = asking();
    let other = other_project(&place);
    run_in(&place, &other, &EXEC).told(3, &[]);
    place.run(&EXEC, "").told(3, &[]);
    place.run(&["exec", "--", "false"], "").told(3, &[]);
    let aborted = place.run(&["abort", "--all", "--project", "."], "");
    aborted.told(0, &[]);
    assert!(
        aborted.stdout.ends_with("aborted 2 runs in ~/project\n"),
        "{}",
        aborted.stdout
    );
    let left = place.json(&["inbox", "--json"], "");
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["project"], other.display().to_string());
    let nothing = place.run(&["abort", "--all"], "");
    assert_eq!(nothing.code, 0);
    assert_output!(place, nothing.stdout);
}

#[test]
fn inbox_shows_newest_first_and_requests_of_plain_commands_expire() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    place
        .run(&["exec", "--", "sh", "-c", "exit 5"], "")
        .told(3, &[]);
    let asked = place.json(&["inbox", "--json"], "");
    assert_eq!(asked[0]["activity"], "sh -c 'exit 5'");
    assert_eq!(asked[0]["deadline"]["answer"], "abort");
    // Requests of an agent's conversation never expire by default.
    assert_eq!(asked[1]["deadline"], Value::Null);
    let listed = place.run(&["inbox"], "").stdout;
    assert_output!(place, listed);
}

#[test]
fn nothing_is_announced_before_it_happens() {
    let place = asking();
    place.run(&EXEC, "").told(3, &[]);
    let asked = id(&place.json(&["inbox", "--json"], "")[0]);
    let refused = place.run(&["approve", &asked], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    assert_eq!(refused.stdout, "");
    place
        .run(&["exec", "--", "sh", "-c", "exit 5"], "")
        .told(3, &[]);
    let plain = id(&place.json(&["inbox", "--json"], "")[0]);
    let refused = place.run(&["retry", &plain, "--note", "x"], "");
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (1, ""),
        "{}",
        refused.stderr
    );
}

#[test]
fn errors_are_json_if_json_is_requested() {
    let place = Place::new();
    for args in [
        &["show", "zzzz", "--json"][..],
        &["resume", "zzzz", "--json"],
    ] {
        let failed = place.run(args, "");
        assert_eq!(failed.code, 1);
        let error: Value = serde_json::from_str(&failed.stdout).unwrap();
        assert_eq!(error["error"]["exit_code"], failed.code);
        assert!(error["error"]["hint"].is_string(), "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(failed.stderr.contains(message), "{error}");
    }
    // Without it nothing of ours is printed to standard output.
    assert_eq!(place.run(&["show", "zzzz"], "").stdout, "");
    let own = place.run(&["exec", "--timeout", "x", "--", "echo", "--json"], "");
    assert_eq!((own.code, own.stdout.as_str()), (2, ""));
}

#[test]
fn command_can_be_checked_without_a_subcommand() {
    let place = Place::new();
    let long = place.run(&["guard", "check", "npm ci"], "");
    let short = place.run(&["guard", "npm ci"], "");
    assert_eq!((short.code, &short.stdout), (long.code, &long.stdout));
    assert_output!(place, short.stdout);
    let json = place.run(&["guard", "npm ci", "--json"], "");
    let checked: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(checked["command"], "npm ci");
}

#[test]
fn proposal_without_arguments_shows_its_usage() {
    let place = Place::new();
    let help = place.run(&["propose"], "");
    assert_eq!(help.code, 2);
    assert_output!(place, help.stderr);
    assert!(
        !help.stderr.contains("required arguments"),
        "{}",
        help.stderr
    );
}

#[test]
fn very_long_arguments_are_truncated_in_messages() {
    let place = Place::new();
    let long = "x".repeat(100_000);
    for args in [
        &["show", &long][..],
        &["classify", &long],
        &[&long],
        &["--config", &long, "runs"],
    ] {
        let refused = place.run(args, "");
        assert!(refused.code == 1 || refused.code == 2, "{}", refused.code);
        assert!(
            refused.stderr.len() < 3_000,
            "{} bytes for {}",
            refused.stderr.len(),
            args[0]
        );
    }
}

#[test]
fn help_explains_exit_codes_of_the_command() {
    let place = Place::new();
    let help = place.run(&["exec", "--help"], "").stdout;
    assert_output!(place, help);
    let help = place.run(&["abort", "--help"], "").stdout;
    assert_output!(place, help);
    assert!(!help.contains("unstuck retry"), "{help}");
}
