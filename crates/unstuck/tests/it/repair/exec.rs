//! `unstuck exec --repair`.

use super::{NEEDS_FOLDER, bare, project};
use crate::output_snapshot::assert_output;

/// S3-01, S3-02, S3-37, S3-38: a listed repair that matches the failure runs, and the failed check passes.
#[test]
fn listed_repair_that_matches_runs_and_the_check_passes() {
    let place = project("auto_approve = ['npm ci', 'mkdir -p out/reports', 'cargo clean']");
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER]);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.text("out/reports/summary.txt"), "ok");
    let executed = place.events("recovery_executed");
    assert_eq!(executed.len(), 1);
    assert_eq!(executed[0]["command"], "mkdir -p out/reports");
    assert_eq!(executed[0]["exit_code"], 0);
    assert!(executed[0]["duration_ms"].is_u64());
}

/// S3-31 to S3-33, S3-40: every step is logged.
#[test]
fn every_step_of_a_repair_is_logged() {
    let place = project("auto_approve = ['mkdir -p out/reports']");
    place
        .go(&["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER])
        .told(0, &[]);
    let proposed = &place.events("recovery_proposed")[0];
    assert_eq!(proposed["command"], "mkdir -p out/reports");
    assert_eq!(proposed["by"], "owner");
    assert!(proposed["category"].is_string() && proposed["confidence"].is_string());
    let approved = &place.events("recovery_approved")[0];
    assert_eq!(
        (&approved["source"], &approved["command"]),
        (&"auto".into(), &"mkdir -p out/reports".into())
    );
    assert_eq!(place.events("recovery_resolved")[0]["method"], "repair");
}

/// The agent's work is done; only the check that the repair was for runs again.
#[test]
fn only_the_failed_check_is_rerun_after_a_repair() {
    let place = project("auto_approve = ['mkdir -p out/reports']");
    place.tool("claude", "#!/bin/sh\necho x >> count; echo 'All done.'\n");
    let line = ["exec", "--repair", "auto", "--check", NEEDS_FOLDER, "--"];
    let line = [&line[..], &["claude", "-p", "do the work"]].concat();
    let ended = place.go(&line);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.lines("count").len(), 1, "{}", ended.stderr);
    assert_eq!(place.text("out/reports/summary.txt"), "ok");
}

/// S3-51: without a section nothing is repaired, and nothing else changes.
#[test]
fn nothing_is_repaired_without_a_section_or_a_flag() {
    let place = bare();
    let ended = place.go(&["exec", "--retries", "0", "--", "sh", "-c", NEEDS_FOLDER]);
    assert_ne!(ended.code, 0);
    assert!(place.events("recovery_proposed").is_empty());
    assert!(!place.project().join("out").exists());
}

#[test]
fn repairs_can_be_disabled() {
    let place = project("auto_approve = ['mkdir -p out/reports']");
    let ended = place.go(&[
        "exec",
        "--repair",
        "off",
        "--retries",
        "0",
        "--",
        "sh",
        "-c",
        NEEDS_FOLDER,
    ]);
    assert_ne!(ended.code, 0);
    assert!(!place.project().join("out").exists());
}

/// S3-29: a failed assertion is not an environment problem, whatever its message says.
#[test]
fn failed_assertion_is_never_repaired() {
    let place = project(
        "auto_approve = ['mkdir -p out/reports', 'npm ci']\non_unknown = 'allow'\nrequire_human = []",
    );
    place.write(
        "test_it.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual('No such file or directory: out/reports', 'run npm ci')\n",
    );
    let ended = place.go(&[
        "exec", "--repair", "auto", "--", "python3", "-m", "unittest", "-q", "test_it",
    ]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(place.events("recovery_started").is_empty());
}

#[test]
fn untrusted_section_approves_nothing_and_is_reported() {
    let place = bare();
    place.write(
        "unstuck.toml",
        "[recovery]\nauto_approve = ['mkdir -p out/reports']\n",
    );
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER]);
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert!(!place.project().join("out").exists());
}

/// A repair that succeeds but does not help is reported as such, and a human is asked.
#[test]
fn repair_success_is_decided_by_the_check() {
    let place = project("auto_approve = ['mkdir -p out/reports']");
    let check = "test -d out/reports && exit 5; ".to_owned() + NEEDS_FOLDER;
    let ended = place.go(&[
        "exec",
        "--repair",
        "auto",
        "--retries",
        "0",
        "--",
        "sh",
        "-c",
        &check,
    ]);
    assert_ne!(ended.code, 0);
    let failed = &place.events("recovery_failed")[0];
    assert!(
        failed["error"].as_str().unwrap().contains("still failing"),
        "{failed}"
    );
}

/// S3-52: results of repairs are counted in the run's `usage.jsonl`.
#[test]
fn usage_includes_repair_results() {
    let place = project("auto_approve = ['mkdir -p out/reports']");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.go(&exec).told(0, &[]);
    let usage = place.of_run("usage.jsonl");
    let last: serde_json::Value = serde_json::from_str(usage.lines().last().unwrap()).unwrap();
    let counts = &last["recovery"];
    assert_eq!(counts["proposals"], 1, "{counts}");
    assert_eq!(
        (&counts["auto_worked"], &counts["auto_success_rate"]),
        (&1.into(), &1.0.into())
    );
    assert_eq!(
        (&counts["escalations"], &counts["categories"]["environment"]),
        (&0.into(), &1.into())
    );
    assert!(counts["mean_time_to_resolution_ms"].is_u64(), "{counts}");
}

/// The changes of a repair in the work tree can be undone.
#[test]
fn repair_can_be_undone() {
    let place =
        project("auto_approve = ['mkdir -p out/reports && cp report.py out/reports/keep.txt']");
    let git = |line: &str| {
        let done = place.shell(line).output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    git("git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm base");
    let exec = [
        "exec",
        "--repair",
        "auto",
        "--",
        "sh",
        "-c",
        "test -d out/reports || { echo \"directory 'out/reports' does not exist\" >&2; exit 1; }",
    ];
    place.go(&exec).told(0, &[]);
    assert!(place.project().join("out/reports/keep.txt").exists());
    let run = place.events("run_started")[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let undone = place.go(&["repair", "--undo", &run]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(!place.project().join("out/reports/keep.txt").exists());
    place.write("later.txt", "a person's work");
    let refused = place.go(&["repair", "--undo", &run]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
}
