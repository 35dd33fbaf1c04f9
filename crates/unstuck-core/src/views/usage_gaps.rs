//! Usage gaps: intervals in which the agent did not report usage, so that the gateway's figures apply.
//!
//! An agent that reports usage has included its calls: the gateway's figures must not be added to them.

use crate::event::{AttemptEnd, Event, EventRecord, SessionId};
use crate::time::Timestamp;

/// An interval in which an agent ran that did not report all its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageGap {
    /// The session.
    pub session: SessionId,
    /// The start of the attempt.
    pub from: Timestamp,
    /// The end of the attempt; none while it runs.
    pub to: Option<Timestamp>,
    /// True if the agent did not report its cost.
    pub lacks_cost: bool,
    /// True if the agent did not report its tokens.
    pub lacks_tokens: bool,
}

impl UsageGap {
    /// Returns all usage gaps of a run.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Vec<Self> {
        let mut times = Vec::new();
        for recorded in events {
            Self::apply(&mut times, recorded);
        }
        times.retain(|time| time.lacks_cost || time.lacks_tokens);
        times
    }

    fn apply(times: &mut Vec<Self>, recorded: &EventRecord) {
        match &recorded.event {
            Event::AttemptStarted(attempt) => times.push(Self {
                session: attempt.session.clone(),
                from: recorded.at,
                to: None,
                lacks_cost: true,
                lacks_tokens: true,
            }),
            Event::AttemptFailed(attempt) => {
                Self::on_attempt_ended(times, &attempt.end, recorded.at)
            }
            Event::AttemptSucceeded(attempt) => {
                Self::on_attempt_ended(times, &attempt.end, recorded.at)
            }
            Event::AttemptInterrupted(attempt) => {
                if let Some(time) = Self::open_gap(times, &attempt.session) {
                    time.to = Some(recorded.at);
                }
            }
            _ => {}
        }
    }

    fn on_attempt_ended(times: &mut [Self], end: &AttemptEnd, at: Timestamp) {
        if let Some(time) = Self::open_gap(times, &end.session) {
            time.to = Some(at);
            time.lacks_cost = end.usage.cost_usd.is_none();
            time.lacks_tokens = end.usage.tokens.is_none();
        }
    }

    fn open_gap<'a>(times: &'a mut [Self], session: &SessionId) -> Option<&'a mut Self> {
        let mut times = times.iter_mut().rev();
        times.find(|time| time.session == *session && time.to.is_none())
    }
}
