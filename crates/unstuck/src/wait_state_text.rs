//! Describes the wait of a run or session: until when, the failure kind, the source of that time, and who acts next.

use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::duration::HumanDuration;
use unstuck_core::views::{NextActionActor, RunStatus, SessionNextAction, SessionStatusSummary};
use unstuck_core::{FailureKind, Timestamp};

use crate::clock;

/// Describes a wait in one sentence: `until 03:00:00 (in 2 h 4 min), rate_limit_timed, stated in a header`.
pub(crate) fn wait_text(state: &SessionStatusSummary, now: Timestamp) -> Option<String> {
    let until = state.until?;
    let mut text = format!("until {}", clock::format_time(until));
    if until > now {
        text.push_str(&format!(" (in {})", HumanDuration(until.since(now))));
    }
    let facts = [
        state.reason.map(FailureKind::name),
        state.source.map(source_text),
    ];
    for fact in facts.into_iter().flatten() {
        text.push_str(", ");
        text.push_str(fact);
    }
    if state.state == RunStatus::Waiting
        && let Some(who) = wait_scope(state)
    {
        text.push_str(who);
    }
    Some(text)
}

fn wait_scope(state: &SessionStatusSummary) -> Option<&'static str> {
    let next = state.next?;
    match (next.actor, next.action) {
        (NextActionActor::Gateway, _) => Some(", held in the gateway"),
        (_, SessionNextAction::Probe) => Some(", parked until the next probe"),
        (NextActionActor::Unstuck, SessionNextAction::Retry) if next.at.is_none() => {
            Some(", at most: conversation in use")
        }
        _ => None,
    }
}

const fn source_text(source: RetryAfterSource) -> &'static str {
    match source {
        RetryAfterSource::Guess => "backoff",
        RetryAfterSource::Screen => "stated in the output",
        RetryAfterSource::Event => "stated in an event of the agent",
        RetryAfterSource::Body => "stated in the response",
        RetryAfterSource::Header => "stated in a header",
    }
}
