//! Problems around a run: secrets, full disks, read-only homes, many at once.

use std::process::Stdio;

use crate::output_snapshot::assert_output;
use crate::{Place, anywhere};

use super::QUICK;

const KEY: &str = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnop";

#[test]
fn secret_is_never_stored() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let mut command = place.command(&["exec", "--", "sh", "-c"]);
    command
        .arg(format!(
            "echo 'API Error: 401 invalid x-api-key {KEY}'; echo token $MY_TOKEN; echo 503 Service Unavailable at https://me:pa55word@example.com/x?api_key={KEY} >&2; exit 1"
        ))
        .env("MY_TOKEN", "tok-9f8e7d6c5b4a39281706");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains(KEY),
        "what the child says is passed through untouched"
    );
    for secret in [KEY, "tok-9f8e7d6c5b4a39281706", "pa55word"] {
        assert!(
            !anywhere(place.folder.path(), secret),
            "{secret} is on disk"
        );
    }
    let shown = place.run(&["show"], "");
    assert!(!shown.stdout.contains(KEY));
    let resumed = place.run(&["resume"], "");
    assert_eq!(resumed.code, 1);
    assert_output!(place, resumed.stderr);
}

#[test]
fn stderr_messages_contain_no_secret() {
    let place = Place::new();
    let script = format!(
        "echo 'fatal: could not read from https://me:{KEY}@example.com/r.git' >&2; exit 128"
    );
    let ended = place.run(&["exec", "--retries", "0", "--", "sh", "-c", &script], "");
    let ours: Vec<_> = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("unstuck:"))
        .collect();
    assert!(
        !ours.is_empty() && !ours.iter().any(|line| line.contains(KEY)),
        "{ours:?}"
    );
}

#[test]
fn read_only_home_is_reported_and_the_command_runs() {
    let place = Place::new();
    let mut command = place.command(&["exec", "--", "echo", "hi"]);
    let output = command
        .env("XDG_STATE_HOME", "/proc/self/nowhere")
        .env("XDG_RUNTIME_DIR", place.folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.contains("/proc/self/nowhere/unstuck") && told.contains("--store"),
        "{told}"
    );
    assert_eq!(output.stdout, b"hi\n");
    let elsewhere = place.folder.path().join("elsewhere.db");
    let ended = place.run(
        &[
            "exec",
            "--store",
            elsewhere.to_str().unwrap(),
            "--",
            "echo",
            "hi",
        ],
        "",
    );
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "hi\n"));
}

#[test]
fn read_only_project_does_not_stop_the_run() {
    let place = Place::new();
    place.write(".unstuck", "a file where a folder should be");
    let ended = place.run(&["exec", "--", "echo", "hi"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "hi\n"));
    assert_output!(place, ended.stderr);
    assert_eq!(
        place.json(&["runs", "--json"], "")[0]["status"],
        "succeeded"
    );
}

#[test]
fn fifty_concurrent_runs_share_one_store() {
    let place = Place::new();
    place.write("unstuck.toml", QUICK);
    let children: Vec<_> = (0..50)
        .map(|number| {
            let script = format!("echo {number}");
            let mut command = place.command(&["exec", "--", "sh", "-c", &script]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for (number, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert_eq!(output.stdout, format!("{number}\n").into_bytes());
    }
    let runs = place.json(&["runs", "--json", "-n", "100"], "");
    assert_eq!(runs.as_array().unwrap().len(), 50);
}

#[test]
fn missing_program_escalates() {
    let place = Place::new();
    let ended = place.run(&["exec", "--", "no-such-program-here"], "");
    assert_eq!(ended.code, 3);
    assert_output!(place, ended.stderr);
    let off = place.run(
        &["exec", "--policy", "off", "--", "no-such-program-here"],
        "",
    );
    assert_eq!(off.code, 127);
}

#[test]
fn invalid_options_are_reported_before_anything_runs() {
    let place = Place::new();
    let mut told = String::new();
    for options in [
        &["--policy", "nope"][..],
        &["--agent", "nope"],
        &["--timeout", "5"],
        &["--expect-json=missing.json"],
        &["--expect-match", "("],
    ] {
        let args = [&["exec"], options, &["--", "sh", "-c", "echo x >> count"]].concat();
        let ended = place.run(&args, "");
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        told += &ended.stderr;
    }
    assert_output!(place, told);
    assert!(!place.project().join("count").exists());
    let empty = place.run(&["exec", "--", ""], "");
    assert_eq!(empty.code, 2);
    assert_output!(place, empty.stderr);
}

#[test]
fn unresumable_run_does_not_block_others() {
    let place = Place::new();
    place.tool(
        "claude",
        "#!/bin/sh\n[ -f login ] && echo done && exit 0; echo 'Not logged in · Please run /login'; exit 1\n",
    );
    assert_eq!(place.run(&["exec", "--", "claude", "-p", "x"], "").code, 3);
    let secret = format!("use {KEY}");
    let second = place.run(&["exec", "--", "claude", "-p", &secret], "");
    assert_output!(place, second.stderr);
    place.write("login", "");
    let resumed = place.run(&["resume"], "");
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (0, "done\n"),
        "{}",
        resumed.stderr
    );
}

#[test]
fn run_without_its_directory_is_not_resumed() {
    let place = Place::new();
    let folder = place.project().join("gone");
    std::fs::create_dir(&folder).unwrap();
    let mut command = place.command(&["exec", "--", "no-such-program-here"]);
    command
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let resumed = place.run(&["resume", run.as_str().unwrap()], "");
    assert_eq!(resumed.code, 1);
    assert_output!(place, resumed.stderr);
    assert!(!folder.exists());
}
