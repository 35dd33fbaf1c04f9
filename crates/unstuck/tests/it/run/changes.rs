//! Tests of changes between a run and its resume: rejected for completed roles, applied to remaining ones.

use super::{configure_trusted, project, role};
use crate::Place;
use crate::output_snapshot::assert_output;

const RAN: &str = "cat > got-$UNSTUCK_ROLE; echo $UNSTUCK_ROLE >> ran; echo by $UNSTUCK_ROLE;";
const FAILS: &str =
    "cat >/dev/null; echo $UNSTUCK_ROLE >> ran; echo 'Not logged in · Please run /login'; exit 1";

/// Returns three roles, the last of which fails until told otherwise.
fn roles(architect: &str, last: &str) -> String {
    [
        role("architect", architect, RAN),
        role(
            "implementer",
            "prompt = \"{{ outputs.architect }}\"\nneeds = [\"architect\"]",
            RAN,
        ),
        role("other", "prompt = \"Else.\"", RAN),
        role(
            "tester",
            "prompt = \"{{ task }}\"\nneeds = [\"implementer\", \"other\"]",
            last,
        ),
    ]
    .concat()
}

/// Sets up a run whose last role has failed.
fn failed() -> Place {
    let place = project(&roles("prompt = \"Plan.\"", FAILS));
    place.run(&["run", "--task", "the shop"], "").told(3, &[]);
    std::fs::remove_file(place.project().join("ran")).unwrap();
    place
}

/// S1-23: output of changed inputs is not reused silently, and the changes are reported.
#[test]
fn changed_prompt_of_a_completed_role_is_rejected_and_reported() {
    let place = failed();
    configure_trusted(&place, &roles("prompt = \"Plan it well.\"", RAN));
    let refused = place.run(&["resume"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
    assert!(place.lines("ran").is_empty(), "nothing is run");
}

#[test]
fn changes_can_be_accepted() {
    let place = failed();
    configure_trusted(&place, &roles("prompt = \"Plan it well.\"", RAN));
    let resumed = place.run(&["run", "--resume-from-failure", "--accept-changes"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    assert_eq!(place.lines("ran"), ["tester"]);
}

/// A re-run role is re-run with all roles that depend on it; the others are reused.
#[test]
fn role_can_be_rerun_with_its_dependents() {
    let place = failed();
    configure_trusted(&place, &roles("prompt = \"Plan it well.\"", RAN));
    let resumed = place.run(&["resume", "--restart", "architect"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    assert_eq!(place.lines("ran"), ["architect", "implementer", "tester"]);
    assert_eq!(place.text("got-architect"), "Plan it well.");
}

/// A finished run can be resumed from a role that is to be re-run.
#[test]
fn finished_run_can_be_rerun_from_a_role() {
    let place = project(&roles("prompt = \"Plan.\"", RAN));
    place.run(&["run", "--task", "the shop"], "").told(0, &[]);
    std::fs::remove_file(place.project().join("ran")).unwrap();
    let run = place.json(&["runs", "--json"], "")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let again = place.run(&["resume", &run, "--restart", "implementer"], "");
    again.told(0, &[]);
    assert_output!(place, again.stderr);
    assert_eq!(place.lines("ran"), ["implementer", "tester"]);
    assert_output!(
        place,
        place
            .run(&["resume", &run, "--restart", "nobody"], "")
            .told(1, &[])
            .stderr
    );
}

/// S1-38: the end point and everything about remaining roles may change freely.
#[test]
fn remaining_roles_may_change_freely() {
    let place = failed();
    let more = roles("prompt = \"Plan.\"\ntimeout = \"5m\"", RAN)
        .replace("prompt = \"{{ task }}\"", "prompt = \"Now {{ task }}.\"");
    configure_trusted(
        &place,
        &format!("[error_recovery]\nmax_auto_retries = 1\n{more}"),
    );
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    assert_eq!(place.lines("ran"), ["tester"]);
    assert_eq!(place.text("got-tester"), "Now the shop.");
}

#[test]
fn changed_task_is_reported() {
    let place = failed();
    let other = place.run(&["run", "--resume-from-failure", "--task", "the blog"], "");
    other.told(1, &[]);
    assert_output!(place, other.stderr);
    assert!(place.lines("ran").is_empty());
}

#[test]
fn added_and_removed_roles_are_reported() {
    let place = failed();
    let without = roles("prompt = \"Plan.\"", RAN).replace("id = \"other\"", "id = \"another\"");
    let without = without.replace("\"implementer\", \"other\"", "\"implementer\", \"another\"");
    configure_trusted(&place, &without);
    assert_output!(place, place.run(&["resume"], "").told(1, &[]).stderr);
}

#[test]
fn all_changes_are_reported() {
    let place = failed();
    let changed = roles(
        "prompt = \"Plan.\"\nargs = [\"--large\"]\ninstances = 2",
        RAN,
    );
    configure_trusted(&place, &changed);
    let refused = place.run(&["resume"], "");
    refused.told(1, &[]);
    assert_output!(place, refused.stderr);
}

/// S1-23: if the configuration file is gone, the error names it.
#[test]
fn missing_config_is_reported() {
    let place = failed();
    let file = place.project().join("unstuck.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace(FAILS, RAN);
    std::fs::remove_file(&file).unwrap();
    assert_output!(place, place.run(&["resume"], "").told(2, &[]).stderr);
    place.write("other.toml", &text);
    assert_output!(
        place,
        place
            .run(&["resume", "--config", "other.toml"], "")
            .told(1, &[])
            .stderr
    );
    let resumed = place.run(
        &["resume", "--config", "other.toml", "--accept-changes"],
        "",
    );
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
}

/// A role added since is run, and its dependents get its output.
#[test]
fn added_role_is_run() {
    let place = failed();
    let tester =
        "prompt = \"{{ outputs.fixer }}\"\nneeds = [\"implementer\", \"other\", \"fixer\"]";
    let before = "prompt = \"{{ task }}\"\nneeds = [\"implementer\", \"other\"]";
    let roles = roles("prompt = \"Plan.\"", RAN).replace(before, tester);
    configure_trusted(
        &place,
        &[roles, role("fixer", "prompt = \"Fix.\"", RAN)].concat(),
    );
    let resumed = place.run(&["resume"], "");
    resumed.told(0, &[]);
    assert_output!(place, resumed.stderr);
    assert_eq!(place.lines("ran"), ["fixer", "tester"]);
    assert_eq!(place.text("got-tester"), "by fixer");
}

/// A run of selected roles stays limited to them.
#[test]
fn run_of_selected_roles_stays_limited_to_them() {
    let place = project(&roles("prompt = \"Plan.\"", RAN));
    place.run(&["run", "--task", "the shop"], "").told(0, &[]);
    let checked = "outputs.architect }}\"\nexpect.check = \"test -f go\"";
    let roles = roles("prompt = \"Plan.\"", RAN).replace("outputs.architect }}\"", checked);
    configure_trusted(&place, &roles);
    assert_output!(
        place,
        place
            .run(&["run", "--task", "the shop", "--only", "implementer"], "")
            .told(3, &[])
            .stderr
    );
    std::fs::remove_file(place.project().join("ran")).unwrap();
    place.write("go", "");
    assert_output!(place, place.run(&["resume"], "").told(0, &[]).stderr);
    assert_eq!(place.lines("ran"), ["implementer"]);
}
