//! The approved command is what runs, once, whatever happens in between.

use super::project;
use super::proposals::document;
use crate::Place;
use crate::output_snapshot::assert_output;
use crate::run::Running;

/// An agent that proposes the content of a file, and succeeds once another file exists.
const PROPOSES: &str = "test -e healed && exit 0; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo 'zork: boom' >&2; exit 9";

fn asked(place: &Place) {
    place.write("recovery.json", &document("touch healed", None));
    let exec = ["exec", "--repair", "auto", "--", "sh", "-c", PROPOSES];
    place.go(&exec).told(3, &["touch healed"]);
}

/// The document that was read is authoritative: replacing it afterwards changes nothing.
#[test]
fn document_replaced_after_the_request_changes_nothing() {
    let place = project("");
    asked(&place);
    let swap = "for f in $(find .unstuck -name recovery.json); do sed -i 's/touch healed/touch evil/' $f; done";
    assert!(place.shell(swap).status().unwrap().success());
    assert_output!(place, place.go(&["approve"]).told(0, &[]).stderr);
    assert!(place.project().join("healed").exists());
    assert!(!place.project().join("evil").exists());
}

/// An answer is bound to everything that was shown, including the confinement.
#[test]
fn answer_is_bound_to_what_was_shown() {
    let place = project("network = false");
    asked(&place);
    let config = place
        .text("unstuck.toml")
        .replace("network = false", "network = true");
    place.write("unstuck.toml", &config);
    place.go(&["trust"]).told(0, &[]);
    let ended = place.go(&["approve"]);
    assert_ne!(ended.code, 0, "{}", ended.stderr);
    assert_output!(place, ended.stderr);
    assert!(!place.project().join("healed").exists());
}

/// A repair that was running when unstuck was killed is not run again.
#[test]
fn repair_killed_with_unstuck_is_not_run_twice() {
    let slow = "echo once >> ran && sleep 60 && touch healed";
    let place = project(&format!("auto_approve = ['{slow}']"));
    place.write("recovery.json", &document(slow, Some(100)));
    let mut running = Running::start(
        &place,
        &[
            "exec",
            "--repair",
            "auto",
            "--retries",
            "0",
            "--",
            "sh",
            "-c",
            PROPOSES,
        ],
    );
    running.until("running fix: echo once");
    let ran = place.project().join("ran");
    while !ran.exists() {
        std::thread::yield_now();
    }
    running.kill();
    let resumed = place.go(&["resume"]);
    assert_ne!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(place.lines("ran"), ["once"]);
    assert_eq!(place.events("recovery_failed")[0]["interrupted"], true);
}
