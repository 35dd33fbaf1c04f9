//! Those who wait at a lane, and who of them goes next.
//!
//! First tries and retries wait in lines of their own: a retry that the budget holds must not hold the first tries that
//! fill the budget.

use super::fair_queue::{FairQueue, Ticket};
use super::lane::{Admission, Ask, Held, Lane, Try};
use crate::moment::Timestamp;

/// Those who wait at a lane.
#[derive(Debug, Clone)]
pub struct Line<T> {
    first: FairQueue<(Ask, T)>,
    again: FairQueue<(Ask, T)>,
}

/// A place in a [`Line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    first: bool,
    ticket: Ticket,
}

/// Who goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<T> {
    /// This one goes now.
    Go(T),
    /// Nobody before the moment, or before a call ends.
    Wait {
        /// When to ask again.
        until: Timestamp,
        /// What holds the one whose turn it is.
        why: Held,
    },
    /// Nobody waits.
    Nobody,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            first: FairQueue::default(),
            again: FairQueue::default(),
        }
    }
}

impl<T> Line<T> {
    /// Somebody of a session queues up; see [`FairQueue::push`] for the cost.
    pub fn push(&mut self, session: &str, cost: u64, ask: Ask, item: T) -> Place {
        let first = ask.attempt == Try::First;
        let queue = if first {
            &mut self.first
        } else {
            &mut self.again
        };
        Place {
            first,
            ticket: queue.push(session, cost, (ask, item)),
        }
    }

    /// Somebody no longer waits; none if they have gone already.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        let queue = match place.first {
            true => &mut self.first,
            false => &mut self.again,
        };
        queue.remove(place.ticket).map(|(_, item)| item)
    }

    /// Lets the next one go if the lane admits it. Retries go before first tries: they have waited for longer.
    pub fn next(&mut self, lane: &mut Lane, now: Timestamp) -> Next<T> {
        let mut held: Option<(Timestamp, Held)> = None;
        for queue in [&mut self.again, &mut self.first] {
            let Some((ask, _)) = queue.peek() else {
                continue;
            };
            match lane.admit(*ask, now) {
                Admission::Go => {
                    if let Some((_, item)) = queue.pop() {
                        return Next::Go(item);
                    }
                }
                Admission::Wait { until, why } | Admission::Refuse { until, why } => {
                    if held.is_none_or(|(known, _)| until < known) {
                        held = Some((until, why));
                    }
                }
            }
        }
        held.map_or(Next::Nobody, |(until, why)| Next::Wait { until, why })
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.first.len() + self.again.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.again.is_empty()
    }
}
