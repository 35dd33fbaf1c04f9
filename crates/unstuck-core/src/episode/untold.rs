//! The times in which nobody told what was used, so that what the gateway has counted then stands in for it.
//!
//! An agent that tells what it used has counted its calls itself: what the gateway saw of them must not count again.

use crate::event::{AttemptEnd, Event, Recorded, SessionId};
use crate::moment::Timestamp;

/// A time in which an agent ran that did not tell all that it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// The session.
    pub session: SessionId,
    /// When the attempt began.
    pub from: Timestamp,
    /// When it ended; none while it runs.
    pub to: Option<Timestamp>,
    /// Whether it did not tell what it cost.
    pub cost: bool,
    /// Whether it did not tell how many tokens it used.
    pub tokens: bool,
}

impl Untold {
    /// All such times of a run.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Vec<Self> {
        let mut times = Vec::new();
        for recorded in events {
            Self::take_in(&mut times, recorded);
        }
        times.retain(|time| time.cost || time.tokens);
        times
    }

    fn take_in(times: &mut Vec<Self>, recorded: &Recorded) {
        match &recorded.event {
            Event::AttemptStarted(attempt) => times.push(Self {
                session: attempt.session.clone(),
                from: recorded.at,
                to: None,
                cost: true,
                tokens: true,
            }),
            Event::AttemptFailed(attempt) => Self::ended(times, &attempt.end, recorded.at),
            Event::AttemptSucceeded(attempt) => Self::ended(times, &attempt.end, recorded.at),
            Event::AttemptInterrupted(attempt) => {
                if let Some(time) = Self::open(times, &attempt.session) {
                    time.to = Some(recorded.at);
                }
            }
            _ => {}
        }
    }

    fn ended(times: &mut [Self], end: &AttemptEnd, at: Timestamp) {
        if let Some(time) = Self::open(times, &end.session) {
            time.to = Some(at);
            time.cost = end.used.cost_usd.is_none();
            time.tokens = end.used.tokens.is_none();
        }
    }

    fn open<'a>(times: &'a mut [Self], session: &SessionId) -> Option<&'a mut Self> {
        let mut times = times.iter_mut().rev();
        times.find(|time| time.session == *session && time.to.is_none())
    }
}
