//! What is told of a wait: what comes when, how long it is tried, and how to stop it or to go on at once.

use std::time::Duration;

use unstuck_core::decision::WaitFor;
use unstuck_core::duration::Human;
use unstuck_core::{Recovery, Timestamp};

use crate::clock;

/// A wait on one line of 80 columns: the countdown, and the moment at which it is given up.
pub(super) fn line(left: Duration, recovery: &Recovery) -> String {
    let (next, left) = (recovery.attempts() + 1, Human(left));
    match recovery.wait_for() {
        WaitFor::Network => format!("no network: attempt {next} when it is back (for {left} more)"),
        WaitFor::Probe => format!("parked: probe in {left}{}", deadline(recovery)),
        WaitFor::Retry => format!("attempt {next} in {left}{}", deadline(recovery)),
    }
}

fn deadline(recovery: &Recovery) -> String {
    let at = recovery.give_up_at();
    at.map(|at| format!(" · gives up at {}", clock::shown(at)))
        .unwrap_or_default()
}

/// A sign of life in a log.
pub(super) fn sign_of_life(
    left: Duration,
    until: Timestamp,
    recovery: &Recovery,
    option: &str,
) -> String {
    let kind = recovery.failure().map(|failed| failed.diagnosis.kind);
    let kind = kind.map(|kind| format!("{kind}, ")).unwrap_or_default();
    let short = recovery.id().short();
    format!(
        "still waiting until {}: {kind}{}; unstuck stop {short}{option} stops, unstuck retry {short}{option} tries now",
        clock::shown(until),
        line(left, recovery)
    )
}
