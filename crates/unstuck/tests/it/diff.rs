//! `unstuck diff`: the changes of an attempt.

use std::fs;

use unstuck_core::event::{
    AttemptEnd, AttemptInterrupted, AttemptStarted, AttemptSucceeded, AttemptUsage, Event,
    InterruptionCause, RunKind, RunStarted, SessionSpec,
};
use unstuck_core::{RetryPolicy, RunId, Timestamp};
use unstuck_run::worktree::SnapshotStore;
use unstuck_store::{RunEventBatch, Store, StoreLocation, StoreOptions};

use crate::Place;
use crate::output_snapshot::assert_output;

const RUN: &str = "k3v9x0m2qa";

/// A project with a repository, whose run has these events; the store is next to the project.
fn place(events: impl FnOnce(&Place) -> Vec<Event>) -> Place {
    let place = Place::new();
    let events = events(&place);
    let location = StoreLocation::file(place.folder.path().join("history.db"));
    let work = async {
        let store = Store::open(&location, StoreOptions::default())
            .await
            .unwrap();
        let events = [run_started(&place)].into_iter().chain(events);
        let append = RunEventBatch::new(
            RunId::new(RUN),
            Timestamp::from_seconds(1_700_000_000),
            events,
        );
        store.append(append).await.unwrap();
        store.close().await.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work);
    place
}

fn run_started(place: &Place) -> Event {
    let cwd = place.project().display().to_string();
    Event::from(Box::new(RunStarted {
        head: None,
        project: cwd.clone(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd,
            command: vec!["claude".into()],
            agent: None,
            model: None,
            session: RunId::new(RUN).session_id(1),
            policy: RetryPolicy::default(),
            origins: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: None,
            knowledge: "0.1.0".into(),
        })),
    }))
}

fn started(number: u32, tree: Option<String>) -> Event {
    Event::from(Box::new(AttemptStarted {
        session: RunId::new(RUN).session_id(1),
        number,
        command: vec!["claude".into()],
        model: None,
        timeout_ms: None,
        cause: None,
        changes: Vec::new(),
        agent_session: None,
        reaper: None,
        tree,
    }))
}

fn succeeded(number: u32, tree: Option<String>) -> Event {
    let end = AttemptEnd {
        session: RunId::new(RUN).session_id(1),
        number,
        exit_code: Some(0),
        signal: None,
        limit: None,
        duration_ms: 1,
        stdout_bytes: 0,
        stderr_bytes: 0,
        leftover_processes: 0,
        model: None,
        cause: None,
        usage: AttemptUsage::default(),
        tree,
        last_progress: None,
        failing_since: None,
    };
    Event::from(Box::new(AttemptSucceeded {
        end,
        truncated: false,
    }))
}

fn interrupted(number: u32) -> Event {
    Event::from(AttemptInterrupted {
        has_output: false,
        session: RunId::new(RUN).session_id(1),
        number,
        by: InterruptionCause::Person,
        agent_session: None,
    })
}

impl Place {
    fn make_repository(&self) {
        let made = self.program("git", &["init", "-q"]).status().unwrap();
        assert!(made.success());
    }

    fn snapshot(&self, label: &str) -> Option<String> {
        let state = self.folder.path().join("history.d");
        let snapshots = SnapshotStore::open(&self.project(), &RunId::new(RUN), &state).unwrap();
        Some(snapshots.create(label).unwrap().tree)
    }

    fn diff(&self, args: &[&str]) -> crate::Ended {
        let store = self.folder.path().join("history.db");
        let store = store.display().to_string();
        self.run(&[&["--store", &store, "diff"], args].concat(), "")
    }
}

/// Two attempts: the first changes a file, the second adds a text file and a binary one.
fn two_attempts() -> Place {
    place(|place| {
        place.make_repository();
        place.write("a.txt", "one\n");
        let before = place.snapshot("1-before");
        place.write("a.txt", "two\n");
        let between = place.snapshot("1-after");
        place.write("b.txt", "new \u{1b}[31mred\n");
        fs::write(place.project().join("c.bin"), [0, 1, 2]).unwrap();
        let after = place.snapshot("2-after");
        fs::write(place.project().join("later"), "no part of the run\n").unwrap();
        vec![
            started(1, before),
            succeeded(1, between.clone()),
            started(2, between),
            succeeded(2, after),
        ]
    })
}

#[test]
fn attempt_diff_shows_its_changes_and_run_diff_all() {
    let place = two_attempts();
    let first = place.diff(&["k3v9/1"]);
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    assert!(first.stdout.contains("\n-one\n+two\n"), "{}", first.stdout);
    assert!(!first.stdout.contains("b.txt"));
    let whole = place.diff(&["--stat"]).stdout;
    assert_output!(place, whole);
}

#[test]
fn piped_diff_is_an_applicable_patch_and_terminal_diff_is_sanitized() {
    let place = two_attempts();
    let patch = place.diff(&["k3v9/2"]).stdout;
    assert!(patch.contains("new \u{1b}[31mred"), "{patch}");
    place.write("../patch", &patch);
    let back = place
        .program("git", &["apply", "--reverse", "../patch"])
        .status();
    assert!(back.unwrap().success());
    assert!(!place.project().join("b.txt").exists() && !place.project().join("c.bin").exists());
    let shown = place.diff(&["k3v9/2", "--color", "always"]).stdout;
    assert!(
        shown.contains("\u{1b}[1m\u{1b}[32m+new \\u{1b}[31mred\u{1b}[0m"),
        "{shown}"
    );
    assert!(shown.contains("Binary files"), "{shown}");
}

#[test]
fn json_has_the_files_and_the_patch() {
    let place = two_attempts();
    let told: serde_json::Value =
        serde_json::from_str(&place.diff(&["k3v9/1", "--json"]).stdout).unwrap();
    assert_eq!(told["id"], "k3v9x0m2qa/1");
    assert_eq!(told["to_is_work_tree"], false);
    let file =
        serde_json::json!([{ "path": "a.txt", "change": "modified", "added": 1, "removed": 1 }]);
    assert_eq!(told["files"], file);
    assert!(told["diff"].as_str().unwrap().contains("+two\n"));
    let stat: serde_json::Value =
        serde_json::from_str(&place.diff(&["--stat", "--json"]).stdout).unwrap();
    assert_eq!((stat["id"].as_str(), stat.get("diff")), (Some(RUN), None));
}

#[test]
fn attempt_without_changes_is_reported() {
    let place = place(|place| {
        place.make_repository();
        let tree = place.snapshot("1");
        vec![started(1, tree.clone()), succeeded(1, tree)]
    });
    for args in [&["k3v9/1"][..], &["k3v9/1", "--stat"]] {
        let ended = place.diff(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
        assert_output!(place, ended.stderr);
    }
}

#[test]
fn unfinished_attempt_is_compared_with_the_next_one_or_the_work_tree() {
    let place = place(|place| {
        place.make_repository();
        let before = place.snapshot("1");
        place.write("half.txt", "half\n");
        let next = place.snapshot("2");
        place.write("now.txt", "now\n");
        vec![
            started(1, before),
            interrupted(1),
            started(2, next),
            interrupted(2),
        ]
    });
    let first = place.diff(&["k3v9/1", "--stat"]);
    assert_output!(place, first.stdout);
    assert_eq!(first.stderr, "");
    let second = place.diff(&["k3v9/2", "--stat"]);
    assert_output!(place, second.stdout);
    assert_output!(place, second.stderr);
}

#[test]
fn missing_diff_is_explained() {
    let refused = |place: &Place| {
        let ended = place.diff(&["k3v9/1"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
        ended.stderr
    };
    let without_git = place(|_| vec![started(1, None), succeeded(1, None)]);
    assert_output!(without_git, refused(&without_git));
    without_git.make_repository();
    assert_output!(without_git, refused(&without_git));
    let lost = "0123456789012345678901234567890123456789".to_owned();
    let pruned = place(|place| {
        place.make_repository();
        vec![started(1, Some(lost.clone())), succeeded(1, Some(lost))]
    });
    assert_output!(pruned, refused(&pruned));
}

#[test]
fn missing_git_is_reported() {
    let place = two_attempts();
    let store = place.folder.path().join("history.db").display().to_string();
    let mut command = place.command(&["--store", &store, "diff"]);
    let output = command.env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_output!(place, told);
}

/// Runs git in the project.
fn git(place: &Place, args: &[&str]) -> String {
    let mut command = place.program("git", args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn changes_of_an_agent_under_exec_are_shown() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    place.write("before.txt", "old\n");
    place.tool(
        "claude",
        "#!/bin/sh\necho new > before.txt; echo made > made.txt; echo done\n",
    );
    let ended = place.run(&["exec", "--no-gateway", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let stat = place.run(&["diff", "--stat"], "").stdout;
    assert!(
        stat.contains("before.txt") && stat.contains("made.txt"),
        "{stat}"
    );
    let patch = place.run(&["diff"], "").stdout;
    assert!(patch.contains("-old\n+new"), "{patch}");
}

#[test]
fn plain_command_or_missing_repository_has_no_snapshots() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    let ended = place.run(&["exec", "--", "touch", "made.txt"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(git(&place, &["for-each-ref", "refs/unstuck"]), "");

    let place = Place::new();
    place.tool("claude", "#!/bin/sh\necho done\n");
    let ended = place.run(&["exec", "--no-gateway", "--", "claude", "-p", "x"], "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
fn failed_attempt_is_rolled_back_if_configured() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.05\n[run]\non_failed_attempt = \"rollback\"\n",
    );
    place.tool(
        "claude",
        "#!/bin/sh\n[ -e \"$HOME/again\" ] && { ls; exit 0; }\ntouch \"$HOME/again\" wreck; echo 'API Error: 529 Overloaded'; exit 1\n",
    );
    let ended = place.run(&["exec", "--no-gateway", "--", "claude", "-p", "x"], "");
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert!(!place.project().join("wreck").exists());
}
