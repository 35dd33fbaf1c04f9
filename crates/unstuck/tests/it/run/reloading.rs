//! A configuration that is changed while a loop runs counts from the next iteration on, if it is in order.

use super::{project, role};
use crate::Place;

/// A loop whose first iteration edits the configuration.
fn editing(edit: &str) -> Place {
    let script =
        format!("cat > got-$UNSTUCK_ITERATION; [ $UNSTUCK_ITERATION = 1 ] && {edit}; echo worked");
    project(&format!(
        "[loop]\nmax_iterations = 2\n{}",
        role("worker", "prompt = \"Build the shop.\"", &script)
    ))
}

/// S3-43: a change counts at the next iteration, and is told and recorded.
#[test]
fn a_change_counts_at_the_next_iteration() {
    let place = editing("sed -i \"s/Build the shop/Build the blog/\" unstuck.toml");
    let ended = place.run(&["run"], "");
    ended.told(0, &["worker: its prompt was changed"]);
    assert_eq!(place.text("got-1"), "Build the shop.");
    assert_eq!(place.text("got-2"), "Build the blog.");
    let reloaded = &place.events("config_reloaded")[0];
    assert!(
        reloaded["path"].as_str().unwrap().ends_with("unstuck.toml"),
        "{reloaded}"
    );
}

/// S3-43: a change that is not in order is refused with what is wrong, and the loop goes on as it was.
#[test]
fn a_wrong_change_is_refused_and_the_loop_goes_on() {
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

/// S3-43: what is not changed is not told.
#[test]
fn without_a_change_nothing_is_told() {
    let place = editing("touch unstuck.toml");
    place.run(&["run"], "").told(0, &[]);
    assert!(place.events("config_reloaded").is_empty());
    assert!(place.events("config_rejected").is_empty());
}
