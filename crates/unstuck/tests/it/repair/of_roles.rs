//! Repairs in `unstuck run`: the next iteration starts repaired.

use super::proposals::document;
use crate::Place;

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

/// S3-05, S3-38: a tester that succeeds and proposes is heard, and the next iteration starts repaired.
#[test]
fn a_proposal_of_a_role_is_run_before_the_next_iteration() {
    let script = "echo $UNSTUCK_ITERATION >> ran; test -e healed || cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping(
        "auto_approve = ['touch healed']",
        "test -e healed && test \"$(wc -l < ran)\" = 2",
        script,
    );
    place.write("recovery.json", &document("touch healed", None));
    place.go(&["run"]).told(0, &["repairing: touch healed"]);
    assert_eq!(place.lines("ran"), ["1", "2"]);
}

/// What the check of the loop complains about is repaired without any agent, and counts at once.
#[test]
fn a_broken_check_is_repaired_between_iterations() {
    let check = "python3 -c \"open('out/reports/x', 'w')\"";
    let place = looping(
        "auto_approve = ['mkdir -p out/reports']",
        check,
        "echo $UNSTUCK_ITERATION >> ran; echo tested",
    );
    place
        .go(&["run"])
        .told(0, &["repairing: mkdir -p out/reports"]);
    assert_eq!(place.lines("ran"), ["1"], "no agent had to be called again");
}

/// S3-04, S3-05: what nobody listed pauses the loop; the answer goes on.
#[test]
fn an_unlisted_proposal_pauses_the_loop_until_it_is_answered() {
    let script = "echo $UNSTUCK_ITERATION >> ran; test -e healed || cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("", "test -e healed", script);
    place.write("recovery.json", &document("touch healed", None));
    place
        .go(&["run"])
        .told(3, &["touch healed", "needs your word"]);
    assert_eq!(place.json_of_run("state.json")["status"], "awaiting_human");
    assert!(!place.project().join("healed").exists());
    place.go(&["approve"]).told(0, &["you allowed it"]);
    assert_eq!(place.lines("ran"), ["1"]);
}

/// S3-28: a role is told how to propose, where its prompt asks for it.
#[test]
fn a_prompt_can_tell_how_to_propose() {
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

/// S3-43: an agent that widens what it may do has gained nothing; its owner is told what it wanted.
#[test]
fn what_widens_while_it_runs_becomes_a_question() {
    let script = "echo $UNSTUCK_ITERATION >> ran; sed -i 's/^auto_approve.*/auto_approve = [\"touch healed\"]/' unstuck.toml; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("auto_approve = ['true']", "test -e healed", script);
    place.write("recovery.json", &document("touch healed", None));
    let ended = place.go(&["run"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(!place.project().join("healed").exists());
    let asked = place.events("recovery_escalated");
    let widened = asked.iter().find(|one| one["why"] == "trust");
    let widened = widened.unwrap_or_else(|| panic!("{asked:?}\n{}", ended.stderr));
    assert!(
        widened["reason"].as_str().unwrap().contains("touch healed"),
        "{widened}"
    );
}

/// What narrows counts at once, without anybody's trust.
#[test]
fn what_narrows_while_it_runs_counts_at_once() {
    let script = "echo $UNSTUCK_ITERATION >> ran; sed -i 's/^auto_approve.*/auto_approve = []/' unstuck.toml; cp recovery.json \"$UNSTUCK_RECOVERY_FILE\"; echo tested";
    let place = looping("auto_approve = ['touch healed']", "test -e healed", script);
    place.write("recovery.json", &document("touch healed", None));
    let ended = place.go(&["run"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(!place.project().join("healed").exists());
}

/// From wherever a run is resumed, the project's file stays the project's word: it approves nothing until it is trusted.
#[test]
fn a_resume_from_elsewhere_does_not_make_it_the_owners_word() {
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
