//! Agent proposals in `recovery.json`.

use serde_json::json;

use super::project;
use crate::output_snapshot::assert_output;

/// Returns a proposal as an agent writes it.
pub(super) fn document(command: &str, timeout: Option<u32>) -> String {
    json!({
        "version": 1,
        "timestamp": "2026-11-16T05:36:33Z",
        "category": "dependency",
        "severity": "blocking",
        "diagnosis": {
            "error_pattern": "boom",
            "root_cause": "it is not there",
            "evidence": ["test.log:1: boom"],
        },
        "recovery": {
            "command": command,
            "timeout_seconds": timeout,
            "expected_outcome": "the tests can run",
            "confidence": "high",
        },
    })
    .to_string()
}

/// An agent that fails with an unknown error, proposes something, and succeeds once a file exists.
const PROPOSES: &str = "test -e healed && exit 0; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo 'zork: boom' >&2; exit 9";

/// S3-03, S3-37: an approved command in recovery.json is executed.
#[test]
fn listed_proposal_runs() {
    let place = project("auto_approve = ['touch healed']");
    place.write("recovery.json", &document("  touch healed\n", None));
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES]);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.events("recovery_proposed")[0]["by"], "agent");
}

/// S3-21, S3-35: anything else needs approval, and nothing runs.
#[test]
fn unlisted_proposal_needs_approval() {
    let place = project("auto_approve = ['touch healed']");
    place.write("recovery.json", &document("touch healed; id", None));
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES]);
    ended.told(3, &[]);
    assert_output!(place, ended.stderr);
    assert!(!place.project().join("healed").exists());
}

#[test]
fn invalid_document_is_rejected_as_a_whole_and_the_agent_is_told() {
    let place = project("auto_approve = ['touch healed']");
    let wrong = document("touch healed", None).replace("\"version\":1", "\"version\":2");
    place.write("recovery.json", &wrong);
    let ended = place.go(&[
        "exec",
        "--repair",
        "auto",
        "--retries",
        "0",
        "--",
        "sh",
        "-c",
        PROPOSES,
    ]);
    assert_ne!(ended.code, 0);
    assert_output!(place, ended.stderr);
    assert!(place.events("recovery_proposed").is_empty());
    assert!(!place.project().join("healed").exists());
}

/// S3-15, S3-39: a failed command is followed by its fallback, which is evaluated separately.
#[test]
fn failed_repair_is_followed_by_its_fallback() {
    let place = project("auto_approve = ['false', 'touch healed']");
    let mut proposal: serde_json::Value = serde_json::from_str(&document("false", None)).unwrap();
    proposal["fallback"] = json!({ "command": "touch healed", "confidence": "low" });
    place.write("recovery.json", &proposal.to_string());
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES]);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
    assert_eq!(place.events("recovery_failed")[0]["command"], "false");
}

#[test]
fn terminal_escapes_in_a_proposal_reach_no_terminal() {
    let place = project("");
    let mut proposal: serde_json::Value = serde_json::from_str(&document("echo hi", None)).unwrap();
    proposal["diagnosis"]["root_cause"] = json!("\u{1b}[2J\u{1b}]52;c;aGk=\u{7}");
    proposal["recovery"]["expected_outcome"] = json!("\u{1b}]8;;http://evil.example\u{7}click");
    place.write("recovery.json", &proposal.to_string());
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES]);
    let shown = place.go(&["show"]);
    let explained = place.go(&["explain"]);
    for text in [ended.stderr, shown.stdout, explained.stdout] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}'),
            "{text:?}"
        );
    }
}

/// An agent proposes without writing JSON by hand.
#[test]
fn unstuck_propose_writes_the_proposal_file() {
    let place = project("auto_approve = ['touch healed']");
    let own = env!("CARGO_BIN_EXE_unstuck");
    let check = format!(
        "test -e healed && exit 0; {own} propose --command 'touch healed' --root-cause 'not there' --evidence a.log:1 >&2; exit 9"
    );
    let ended = place.go(&["exec", "--repair", "auto", "--", "sh", "-c", &check]);
    ended.told(0, &[]);
    assert_output!(place, ended.stderr);
}
