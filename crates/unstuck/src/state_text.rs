//! The state of a run in words: what it waits for, until when, where that is known from, and who acts next.

use unstuck_core::diagnosis::WaitSource;
use unstuck_core::duration::Human;
use unstuck_core::episode::{Actor, NextAction, SessionStatus, Status};
use unstuck_core::{Kind, Timestamp};

use crate::clock;

/// A wait in one sentence: `until 03:00:00 (in 2 h 4 min), rate_limit_timed, stated in a header`.
pub(crate) fn wait(state: &SessionStatus, now: Timestamp) -> Option<String> {
    let until = state.until?;
    let mut text = format!("until {}", clock::shown(until));
    if until > now {
        text.push_str(&format!(" (in {})", Human(until.since(now))));
    }
    let facts = [state.reason.map(Kind::name), state.source.map(source)];
    for fact in facts.into_iter().flatten() {
        text.push_str(", ");
        text.push_str(fact);
    }
    if state.state == Status::Waiting
        && let Some(who) = waits_in(state)
    {
        text.push_str(who);
    }
    Some(text)
}

fn waits_in(state: &SessionStatus) -> Option<&'static str> {
    let next = state.next?;
    match (next.who, next.action) {
        (Actor::Gateway, _) => Some(", held in the gateway"),
        (_, NextAction::Probe) => Some(", parked: one probe then"),
        _ => None,
    }
}

const fn source(source: WaitSource) -> &'static str {
    match source {
        WaitSource::Guess => "backoff",
        WaitSource::Screen => "stated in the output",
        WaitSource::Event => "stated in an event",
        WaitSource::Body => "stated in the response",
        WaitSource::Header => "stated in a header",
    }
}
