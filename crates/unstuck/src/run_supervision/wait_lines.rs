//! Renders waits: what happens when, the time limit, and how to stop or continue at once.

use std::time::Duration;

use unstuck_core::decision::WaitPurpose;
use unstuck_core::duration::HumanDuration;
use unstuck_core::{SessionState, Timestamp};

use crate::clock;

/// Renders a wait in one line of 80 columns: the countdown and the time at which it is given up.
pub(super) fn countdown_line(left: Duration, recovery: &SessionState) -> String {
    let (next, left) = (recovery.attempt_count() + 1, HumanDuration(left));
    match recovery.wait_purpose() {
        WaitPurpose::Network => {
            format!("no network: attempt {next} when it is back (waiting up to {left})")
        }
        WaitPurpose::Probe => format!("parked: probe in {left}{}", deadline_text(recovery)),
        WaitPurpose::Retry => format!("attempt {next} in {left}{}", deadline_text(recovery)),
    }
}

fn deadline_text(recovery: &SessionState) -> String {
    let at = recovery.give_up_at();
    at.map(|at| format!(" · gives up at {}", clock::format_time(at)))
        .unwrap_or_default()
}

/// Renders a periodic progress line for logs.
pub(super) fn heartbeat_line(
    left: Duration,
    until: Timestamp,
    recovery: &SessionState,
    option: &str,
) -> String {
    let kind = recovery.last_failure().map(|failed| failed.diagnosis.kind);
    let kind = kind.map(|kind| format!("{kind}, ")).unwrap_or_default();
    let short = recovery.id().short();
    format!(
        "still waiting until {}: {kind}{}; to stop: unstuck stop {short}{option}; to retry now: unstuck retry {short}{option}",
        clock::format_time(until),
        countdown_line(left, recovery)
    )
}
