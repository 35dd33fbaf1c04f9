//! Tests of changes to the work tree by attempts: kept, shown or rolled back, and attempts with unknown outcome.

use rustix::process::Signal;

use super::{Running, configure, git, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

/// Sets up a repository with a commit and an uncommitted change of the user.
fn repository(config: &str) -> Place {
    let place = Place::new();
    place.write("mine", "as committed\n");
    place.write(".gitignore", "got-*\nran\nunstuck.toml\n");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "."]);
    git(&place, &["commit", "-qm", "first"]);
    place.write("mine", "as I changed it\n");
    place.write("new", "not added yet\n");
    configure(&place, config);
    place
}

/// An agent whose first attempt changes files and fails.
const SPOILS: &str = "cat > got-$UNSTUCK_ATTEMPT; ls > got-ls-$UNSTUCK_ATTEMPT; [ $UNSTUCK_ATTEMPT -ge 2 ] && echo made > made && echo done && exit 0; echo spoilt > mine; echo x > junk; rm new; echo '503 Service Unavailable' >&2; exit 1";

/// S4-38: changes of a failed attempt are rolled back; uncommitted changes of the user stay.
#[test]
fn failed_attempt_is_rolled_back_if_configured() {
    let place = repository(&format!(
        "[run]\non_failed_attempt = \"rollback\"\n{}",
        role("a", "prompt = \"Do it.\"", SPOILS)
    ));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    assert_eq!(place.text("mine"), "as I changed it");
    assert_eq!(place.text("new"), "not added yet");
    assert_eq!(
        place.text("made"),
        "made",
        "what the attempt that worked did stays"
    );
    assert!(!place.project().join("junk").exists());
    assert!(
        !place.lines("got-ls-2").contains(&"junk".to_owned()),
        "it is rolled back before the next attempt"
    );
    assert_eq!(
        git(&place, &["log", "--oneline", "--all"]).lines().count(),
        1,
        "no commit is left"
    );
    assert_eq!(
        git(&place, &["diff", "--cached", "--name-only"]),
        "",
        "the index is as it was"
    );
}

#[test]
fn changes_are_kept_by_default_and_can_be_viewed() {
    let place = repository(&role("a", "prompt = \"Do it.\"", SPOILS));
    place.run(&["run"], "").told(0, &[]);
    assert_eq!(place.text("mine"), "spoilt");
    let run = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = place.run(&["diff", &format!("{run}/1")], "");
    assert_eq!(first.code, 0, "{}", first.stderr);
    for part in ["-as I changed it\n+spoilt\n", "+++ b/junk\n", "--- a/new\n"] {
        assert!(first.stdout.contains(part), "{part} in {}", first.stdout);
    }
    assert!(!first.stdout.contains("b/made"), "{}", first.stdout);
    let second = place.run(&["diff", &format!("{run}/2")], "");
    assert!(
        second.stdout.contains("b/made") && !second.stdout.contains("junk"),
        "{}",
        second.stdout
    );
}

/// Without a repository nothing can be rolled back, and this is reported.
#[test]
fn missing_repository_is_reported_as_preventing_rollback() {
    let place = project(&format!(
        "[run]\non_failed_attempt = \"rollback\"\n{}",
        role("a", "prompt = \"Do it.\"", "cat >/dev/null; echo done")
    ));
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
}

/// An interrupted attempt may have had effects: the next prompt says so.
#[test]
fn prompt_after_an_interrupted_attempt_states_the_unknown_outcome() {
    let script =
        "cat > got-$(ls | grep -c got-); [ -f go ] && echo done && exit 0; echo ready; sleep 60";
    for signal in [Signal::INT, Signal::KILL] {
        let place = project(&role("a", "prompt = \"Push it.\"", script));
        let mut running = Running::start(&place, &["run", "-v"]);
        running.until("a| ready").signal(signal);
        running.end();
        place.write("go", "");
        place.run(&["resume"], "").told(0, &[]);
        assert_eq!(place.text("got-0"), "Push it.");
        let next = place.text("got-1");
        assert!(
            next.contains("outcome is unknown") && next.ends_with("Push it."),
            "{next}"
        );
        assert_eq!(place.events("attempt_interrupted").len(), 1);
    }
}

/// After a crash the agent's own conversation is resumed if possible.
#[test]
fn crashed_agent_continues_in_its_own_conversation() {
    let place = project("[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt = \"Do it.\"\n");
    place.tool(
        "claude",
        "#!/bin/sh\necho \"$@\" >> args; cat > got-$UNSTUCK_ATTEMPT\n[ $UNSTUCK_ATTEMPT -ge 2 ] && echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"All is done.\",\"session_id\":\"11-22\"}' && exit 0\necho '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"11-22\",\"model\":\"m\"}'; echo 'Segmentation fault (core dumped)' >&2; exit 139\n",
    );
    assert_output!(place, place.run(&["run"], "").told(0, &[]).stderr);
    let args = place.lines("args");
    assert!(
        args[0].contains("--session-id") && args[1].contains("--resume 11-22"),
        "{args:?}"
    );
    assert_eq!(place.of_run("roles/a/output.md").trim(), "All is done.");
}
