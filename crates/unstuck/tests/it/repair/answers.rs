//! Repairs that need approval.

use super::{NEEDS_FOLDER, project};
use crate::anywhere;
use crate::output_snapshot::assert_output;

/// S3-25, S3-35, S3-42 in part: an unlisted repair needs approval, and approval runs exactly that command.
#[test]
fn unlisted_repair_needs_approval_and_then_runs() {
    let place = project("");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    assert_output!(place, place.go(&exec).told(3, &[]).stderr);
    assert!(!place.project().join("out").exists());
    let asked = place.json_of_run("escalation.json");
    assert_eq!(asked["type"], "recovery_approval_required");
    assert_eq!(
        asked["recovery_proposal"]["command"],
        "mkdir -p out/reports"
    );
    assert!(
        asked["actions"]["approve"]
            .as_str()
            .unwrap()
            .starts_with("unstuck approve")
    );
    assert_output!(place, place.go(&["approve"]).told(0, &[]).stderr);
    assert_eq!(place.text("out/reports/summary.txt"), "ok");
    assert_eq!(place.events("recovery_approved")[0]["source"], "human");
    assert_output!(place, place.go(&["approve"]).told(1, &[]).stderr);
}

/// Without any list, the programs of built-in repairs are still looked up.
#[test]
fn built_in_repairs_are_offered_without_configuration() {
    let place = project("");
    place.write(".env.example", "SHOP_PORT=3000\n");
    place.write("seed.sh", "mkdir -p data && echo 1 > data/seed");
    let env = "test -f .env || { echo 'SHOP_PORT is not set' >&2; exit 1; }";
    assert_output!(
        place,
        place
            .go(&["repair", "--", "sh", "-c", env])
            .told(3, &[])
            .stderr
    );
    let seed = "test -f data/seed || { echo 'no data; run: sh seed.sh' >&2; exit 1; }";
    assert_output!(
        place,
        place
            .go(&["repair", "--", "sh", "-c", seed])
            .told(3, &[])
            .stderr
    );
}

/// S3-26: a rejected repair is neither run nor offered again.
#[test]
fn rejected_repair_is_not_run_and_not_offered_again() {
    let place = project("");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.go(&exec).told(3, &[]);
    let ended = place.go(&["reject", "--note", "not this way"]);
    assert_ne!(ended.code, 0);
    assert!(!place.project().join("out").exists());
    assert!(place.events("recovery_started").is_empty());
    let commands: Vec<_> = place
        .events("recovery_proposed")
        .iter()
        .filter(|one| one["command"] == "mkdir -p out/reports")
        .cloned()
        .collect();
    assert_eq!(commands.len(), 1);
}

#[test]
fn approve_always_runs_it_automatically_next_time() {
    let place = project("");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.go(&exec).told(3, &[]);
    place.go(&["approve", "--always"]).told(0, &[]);
    assert!(
        place
            .text("unstuck.toml")
            .contains("\"mkdir -p out/reports\"")
    );
    std::fs::remove_dir_all(place.project().join("out")).unwrap();
    assert_output!(place, place.go(&exec).told(0, &[]).stderr);
}

/// The reason is written to a file that others read.
#[test]
fn secret_in_the_reason_is_not_written_to_the_configuration() {
    let place = project("");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.go(&exec).told(3, &[]);
    let approve = ["approve", "--always", "--note", "as q7h2k9zt4m may"];
    let mut approve = place.command(&approve);
    let output = approve.env("MY_API_KEY", "q7h2k9zt4m").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let written = place.text("unstuck.toml");
    assert!(
        written.contains("as [redacted:environment] may"),
        "{written}"
    );
    assert!(
        !anywhere(place.folder.path(), "q7h2k9zt4m"),
        "it is on disk"
    );
}

/// A repair that was approved and worked is offered first next time, with its record.
#[test]
fn successful_repair_is_remembered() {
    let place = project("");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.go(&exec).told(3, &[]);
    place.go(&["approve"]).told(0, &[]);
    std::fs::remove_dir_all(place.project().join("out")).unwrap();
    assert_output!(place, place.go(&exec).told(3, &[]).stderr);
}

#[test]
fn agent_cannot_answer_for_a_person() {
    let place = project("");
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", NEEDS_FOLDER];
    place.go(&exec).told(3, &[]);
    let own = env!("CARGO_BIN_EXE_unstuck");
    let inside = place.go(&["exec", "--policy", "off", "--", own, "approve"]);
    assert_eq!(inside.code, 1, "{}", inside.stderr);
    assert_output!(place, inside.stderr);
    let hidden = place.go(&[
        "exec",
        "--policy",
        "off",
        "--",
        "env",
        "-u",
        "UNSTUCK_RUN",
        "-u",
        "UNSTUCK_SESSION",
        own,
        "approve",
    ]);
    assert_eq!(hidden.code, 1, "{}", hidden.stderr);
    assert!(!place.project().join("out").exists());
}
