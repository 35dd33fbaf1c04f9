//! How long what passes by itself is tried again, and how a wait is ended.

use std::time::Duration;

use super::{executions, flaky};
use crate::Place;
use crate::process::Background;

/// Fails for as long as there is no file `up`.
const DOWN: &str =
    "echo x >> ran; [ -e up ] && echo done && exit 0; echo '503 Service Unavailable' >&2; exit 1";

/// By default time bounds the retries, not their number.
#[test]
fn by_default_it_goes_on_after_three_retries() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\n",
    );
    let script = flaky(9, "529 Overloaded");
    let ended = place.run(&["exec", "--", "sh", "-c", &script], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "done\n"));
    assert!(ended.stderr.contains(" of 30 min)."), "{}", ended.stderr);
    assert_eq!(executions(&place), 9);
}

/// A plain command asks when the time without progress is over, and says how long that was.
#[test]
fn a_command_asks_when_its_time_is_over() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\njitter = \"none\"\nbackoffBase = 0.1\nmaxBackoff = 0.1\n",
    );
    let args = ["exec", "--keep-trying", "1s", "--", "sh", "-c", DOWN];
    let ended = place.run(&args, "");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains(" of 1 s)."), "{}", ended.stderr);
    let ran = place.lines("ran").len();
    assert!(ran > 4, "{ran} executions");
}
