//! Renders waits: what happens when, the time limit, and how to stop or continue at once.

use unstuck_core::SessionState;
use unstuck_core::decision::WaitPurpose;
use unstuck_core::duration::HumanDuration;
use unstuck_run::runner::SessionWait;

use crate::clock;

/// Renders a wait in one line of 80 columns: the countdown and the time at which it is given up.
pub(super) fn countdown_line(wait: &SessionWait, attempts: u32) -> String {
    let left = HumanDuration(wait.left);
    let next = if wait.is_held_call {
        "API retry".to_owned()
    } else {
        format!("attempt {}", attempts + 1)
    };
    match wait.wait_purpose {
        WaitPurpose::Network => {
            format!("no network: {next} when it is back (waiting up to {left})")
        }
        WaitPurpose::Probe => format!("parked: probe in {left}{}", deadline_text(wait)),
        WaitPurpose::Conversation => {
            format!("conversation in use elsewhere: {next} when it is free (waiting up to {left})")
        }
        WaitPurpose::Retry => format!("{next} in {left}{}", deadline_text(wait)),
    }
}

/// Returns true if a person can end the wait early: a conversation that another process uses stays in use.
pub(super) fn can_be_ended(wait: &SessionWait) -> bool {
    wait.wait_purpose != WaitPurpose::Conversation
}

fn deadline_text(wait: &SessionWait) -> String {
    wait.give_up_at
        .map(|at| format!(" · gives up at {}", clock::format_deadline(at)))
        .unwrap_or_default()
}

/// Renders a periodic progress line for logs.
pub(super) fn heartbeat_line(wait: &SessionWait, recovery: &SessionState, option: &str) -> String {
    let kind = wait
        .kind
        .map(|kind| format!("{kind}, "))
        .unwrap_or_default();
    let short = recovery.id().short();
    let retry = if can_be_ended(wait) {
        format!("; to retry now: unstuck retry {short}{option}")
    } else {
        String::new()
    };
    format!(
        "still waiting until {}: {kind}{}; to stop: unstuck stop {short}{option}{retry}",
        clock::format_time(wait.until),
        countdown_line(wait, recovery.attempt_count())
    )
}
