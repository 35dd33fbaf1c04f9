//! Repairs in `unstuck run`: the next iteration starts in the repaired environment.

use super::proposals::document;
use crate::Place;
use crate::output_snapshot::assert_output;

fn looping(recovery: &str, check: &str, script: &str) -> Place {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        &format!(
            "[recovery]\ncooldown_seconds = 0\n{recovery}\n\n[loop]\nmax_iterations = 3\nuntil.check = '''{check}'''\n\n[[role]]\nid = \"tester\"\nagent = \"command\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
        ),
    );
    place.go(&["trust"]).told(0, &[]);
    place
}

/// S3-05, S3-38: a proposal of a successful tester is considered, and the next iteration starts repaired.
#[test]
fn role_proposal_runs_before_the_next_iteration() {
    let script = "echo $UNSTUCK_ITERATION >> ran; test -e healed || cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping(
        "auto_approve = ['touch healed']",
        "test -e healed && test \"$(wc -l < ran)\" = 2",
        script,
    );
    place.write("recovery.json", &document("touch healed", None));
    assert_output!(place, place.go(&["run"]).told(0, &[]).stderr);
    assert_eq!(place.lines("ran"), ["1", "2"]);
}

/// The cause of a failing loop check is repaired without an agent, and applies at once.
#[test]
fn broken_check_is_repaired_between_iterations() {
    let check = "python3 -c \"open('out/reports/x', 'w')\"";
    let place = looping(
        "auto_approve = ['mkdir -p out/reports']",
        check,
        "echo $UNSTUCK_ITERATION >> ran; echo tested",
    );
    place.go(&["run"]).told(0, &["mkdir -p out/reports"]);
    assert_eq!(place.lines("ran"), ["1"], "no agent had to be called again");
}

/// S3-04, S3-05: an unlisted proposal pauses the loop; the answer continues it.
#[test]
fn unlisted_proposal_pauses_the_loop_until_answered() {
    let script = "echo $UNSTUCK_ITERATION >> ran; test -e healed || cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("", "test -e healed", script);
    place.write("recovery.json", &document("touch healed", None));
    assert_output!(place, place.go(&["run"]).told(3, &[]).stderr);
    assert_eq!(place.json_of_run("state.json")["status"], "awaiting_human");
    assert!(!place.project().join("healed").exists());
    assert_output!(place, place.go(&["approve"]).told(0, &[]).stderr);
    assert_eq!(place.lines("ran"), ["1"]);
}

/// S3-28: a role's prompt can explain how to propose.
#[test]
fn prompt_can_explain_how_to_propose() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[recovery]\n\n[[role]]\nid = \"tester\"\nagent = \"command\"\ncommand = [\"cat\"]\nprompt = \"Test it.\\n{{ unstuck.recovery_instructions }}\"\n",
    );
    place.go(&["run"]).told(0, &[]);
    let prompt = place.of_run("roles/tester/prompt.md");
    for part in ["UNSTUCK_RECOVERY_FILE", "\"version\": 1", "confidence"] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
}

/// S3-43: an agent that widens its permissions gains nothing; the owner is told about the change.
#[test]
fn widening_change_during_a_run_needs_approval() {
    let script = "echo $UNSTUCK_ITERATION >> ran; sed -i 's/^auto_approve.*/auto_approve = [\"touch healed\"]/' unstuck.toml; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("auto_approve = ['true']", "test -e healed", script);
    place.write("recovery.json", &document("touch healed", None));
    let ended = place.go(&["run"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(!place.project().join("healed").exists());
    let asked = place.events("recovery_escalated");
    let widened = asked.iter().find(|one| one["reason_code"] == "trust");
    let widened = widened.unwrap_or_else(|| panic!("{asked:?}\n{}", ended.stderr));
    assert!(
        widened["reason"].as_str().unwrap().contains("touch healed"),
        "{widened}"
    );
}

/// A tightening change applies at once, without trust.
#[test]
fn tightening_change_during_a_run_applies_at_once() {
    let script = "echo $UNSTUCK_ITERATION >> ran; sed -i 's/^auto_approve.*/auto_approve = []/' unstuck.toml; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("auto_approve = ['touch healed']", "test -e healed", script);
    place.write("recovery.json", &document("touch healed", None));
    let ended = place.go(&["run"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(!place.project().join("healed").exists());
}

/// Wherever a run is resumed, the project's file remains untrusted project content.
#[test]
fn resume_from_elsewhere_does_not_trust_the_project_file() {
    let script = "echo $UNSTUCK_ITERATION >> ran; test -e healed || cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("auto_approve = ['touch healed']", "test -e healed", script);
    place.go(&["trust", "--forget"]).told(0, &[]);
    place.write("recovery.json", &document("touch healed", None));
    place.go(&["run"]).told(3, &["touch healed"]);
    let run = place.json(&["runs", "--json"], "")[0]["id"].clone();
    let mut command = place.command(&["resume", run.as_str().unwrap()]);
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(3), "{elsewhere:?}");
    assert!(!place.project().join("healed").exists());
}
