//! Tests that a valid configuration change during a loop applies from the next iteration.

use super::{Running, project, role};
use crate::Place;

/// Sets up a loop whose first iteration edits the configuration.
fn editing(edit: &str) -> Place {
    let script =
        format!("cat > got-$UNSTUCK_ITERATION; [ $UNSTUCK_ITERATION = 1 ] && {edit}; echo worked");
    project(&format!(
        "[loop]\nmax_iterations = 2\n{}",
        role("worker", "prompt = \"Build the shop.\"", &script)
    ))
}

/// S3-43: a change applies at the next iteration, and is reported and recorded.
#[test]
fn change_applies_at_the_next_iteration() {
    let place = editing("sed -i \"s/Build the shop/Build the blog/\" unstuck.toml");
    let ended = place.run(&["run"], "");
    ended.told(0, &["worker: prompt changed"]);
    assert_eq!(place.text("got-1"), "Build the shop.");
    assert_eq!(place.text("got-2"), "Build the blog.");
    let reloaded = &place.events("config_reloaded")[0];
    assert!(
        reloaded["path"].as_str().unwrap().ends_with("unstuck.toml"),
        "{reloaded}"
    );
}

/// S3-43: an invalid change is rejected with its errors, and the loop continues unchanged.
#[test]
fn invalid_change_is_rejected_and_the_loop_continues() {
    for (edit, told) in [
        ("echo \"[lop]\" >> unstuck.toml", "lop"),
        (
            "sed -i \"s/Build the shop/{{ taks }}/\" unstuck.toml",
            "taks",
        ),
        ("rm unstuck.toml", "unstuck.toml"),
    ] {
        let place = editing(edit);
        place.run(&["run"], "").told(0, &[told, "2 iterations"]);
        assert_eq!(place.text("got-2"), "Build the shop.");
        let rejected = &place.events("config_rejected")[0];
        assert!(
            rejected["error"].as_str().unwrap().contains(told),
            "{rejected}"
        );
    }
}

/// S3-43: an unchanged configuration is not reported.
#[test]
fn unchanged_configuration_is_not_reported() {
    let place = editing("touch unstuck.toml");
    place.run(&["run"], "").told(0, &[]);
    assert!(place.events("config_reloaded").is_empty());
    assert!(place.events("config_rejected").is_empty());
}

/// S3-43: the roles of a loop stay fixed while it runs, and this is reported.
#[test]
fn roles_of_a_running_loop_stay_fixed() {
    let place = editing("sed -i \"s/worker/walker/\" unstuck.toml");
    let told = "the roles of a running loop and their order cannot change";
    place.run(&["run"], "").told(0, &[told, "2 iterations"]);
    assert_eq!(place.events("config_rejected").len(), 1);
    assert_eq!(place.text("got-2"), "Build the shop.");
}

/// A change that is seen while a role runs, and again before the next iteration, is rejected once.
#[test]
fn rejected_change_is_reported_once() {
    let edit = "sed -i \"s/worker/walker/\" unstuck.toml";
    let place = editing(&format!("{edit}; while [ ! -e go ]; do sleep 0.01; done"));
    let mut running = Running::start(&place, &["run"]);
    running.until("the roles of a running loop and their order cannot change");
    place.write("go", "");
    running.end().told(0, &["2 iterations"]);
    assert_eq!(place.events("config_rejected").len(), 1);
}

/// S3-43 (AC-10, AC-12): a change of `[recovery]` is reported with its differences; restrictions apply immediately.
#[test]
fn stricter_recovery_section_applies_at_the_next_iteration() {
    let edit = "sed -i \"s/enabled = true/enabled = true\\nmax_auto_recoveries_per_run = 1/\" unstuck.toml";
    let place = editing(edit);
    let config = place.text("unstuck.toml");
    place.write(
        "unstuck.toml",
        &format!("[recovery]\nenabled = true\n\n{config}\n"),
    );
    place
        .run(&["run"], "")
        .told(0, &["max_auto_recoveries_per_run changed from 3 to 1"]);
    let reloaded = &place.events("config_reloaded")[0];
    let changes = reloaded["changes"].as_array().unwrap();
    let told = "max_auto_recoveries_per_run changed from 3 to 1";
    assert!(changes.iter().any(|one| one == told), "{reloaded}");
}

/// S3-43: a change also applies while the run waits for human input.
#[test]
fn change_applies_while_waiting_for_human_input() {
    let login = "cat >/dev/null; [ -f login ] && echo ok && exit 0; echo 'Not logged in · Please run /login'; exit 1";
    let config = role("a", "prompt = \"Do it.\"", login);
    let place = project(&format!("[recovery]\ncooldown_seconds = 60\n\n{config}"));
    let mut running = Running::start(&place, &["run", "--wait"]);
    running.until("waiting for you to fix this");
    place.write(
        "unstuck.toml",
        &format!("[recovery]\ncooldown_seconds = 90\n\n{config}"),
    );
    running.until("cooldown_seconds changed from 60 to 90");
    place.write("unstuck.toml", "[recovery]\nenabld = false\n");
    running.until("enabld");
    place.write("login", "");
    place.write("unstuck.toml", &config);
    place.run(&["resolve", "--last"], "").told(0, &[]);
    running.end().told(0, &[]);
    assert_eq!(place.events("config_rejected").len(), 1);
}
